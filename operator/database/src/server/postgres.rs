//! The connections to the server, and what is sent over them.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ankka_runtime::{metrics::Metrics, tenure::Tenure};
use tokio::task::AbortHandle;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage, error::SqlState};

use super::{
    connect::{Connection, Tls},
    facts::{Observed, question},
    refusal::ServerError,
    statements::{self, Claim, OWN_DATABASE, Step},
};
use crate::{
    names::Names,
    password::{Password, PasswordKey},
};

/// What is added to a statement's own time limit before its connection counts as dead.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the server says to a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// It may come in.
    Accepted,
    /// Its password is another one, or has ended.
    WrongPassword(String),
    /// It is refused for another reason.
    Refused(String),
}

/// The server. Connections are made when they are needed and kept; there are as many as there are callers at a time, beside
/// those that try a login.
pub struct Postgres {
    connection: Connection,
    claim: Claim,
    tenure: Arc<Tenure>,
    metrics: Arc<Metrics>,
    idle: Mutex<Vec<Session>>,
    /// Why the server cannot be reached, for as long as it cannot.
    down: Mutex<Option<String>>,
}

/// One connection of the administrator.
pub(super) struct Session {
    client: Client,
    /// The server's version, e.g. 150018.
    version: u32,
    /// It has been used before.
    used: bool,
    task: AbortHandle,
}

impl Session {
    /// Sends a statement whose answer is of no interest.
    pub(super) async fn ask(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.client.batch_execute(sql).await
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Rows = Vec<Vec<Option<String>>>;

impl Postgres {
    /// The server at `connection`, which is claimed for a cluster and to which nothing is written unless `tenure` holds.
    pub fn new(connection: Connection, claim: Claim, tenure: Arc<Tenure>, metrics: Arc<Metrics>) -> Self {
        Self { connection, claim, tenure, metrics, idle: Mutex::default(), down: Mutex::default() }
    }

    /// The cluster that it is claimed for by us.
    pub fn cluster(&self) -> &str {
        &self.claim.cluster
    }

    /// Where it is.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Takes in why the server cannot be reached, or that it can. True when the one has become the other. The first reason
    /// stays, so that a server on its way up changes no status.
    pub(super) fn found(&self, unreachable: Option<String>) -> bool {
        let mut down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*down, &unreachable) {
            (None, Some(reason)) => {
                tracing::warn!(reason, "the database server cannot be reached: passes wait for it without trying");
                self.idle().clear();
            }
            (Some(_), None) => tracing::info!("the database server can be reached again"),
            _ => return false,
        }
        *down = unreachable;
        true
    }

    fn reachable(&self) -> Result<(), ServerError> {
        let down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        down.clone().map_or(Ok(()), |reason| Err(ServerError::Down(reason)))
    }

    /// The key of all passwords, and everything that belongs to one service.
    ///
    /// # Errors
    /// When the server does not answer, or not with that.
    pub async fn observe(&self, names: &Names) -> Result<(PasswordKey, Observed), ServerError> {
        let attempted = self.at(&format!("look for database '{}'", names.database));
        let sql = |version| question(names, version);
        let session = self.session().await?;
        let used = session.used;
        let rows = match self.send(session, &attempted, sql).await {
            // The server may have been started again since: only a new connection tells.
            Err(ServerError::Unavailable(_)) if used => {
                self.idle().clear();
                self.send(self.session().await?, &attempted, sql).await?
            }
            answer => answer?,
        };
        let unexpected = |what: &str| ServerError::Refused(format!("failed to {attempted}: {what}"));
        let mut columns = rows.into_iter().next().unwrap_or_default().into_iter().flatten();
        let (Some(first), second) = (columns.next(), columns.next()) else {
            return Err(unexpected("the server answered nothing"));
        };
        let Some(found) = second else {
            return Err(unexpected(
                "table ankka.password_key in database 'ankka' is empty; drop that table, and it is made anew",
            ));
        };
        let key = PasswordKey::from_hex(&first).ok_or_else(|| unexpected("the key in ankka.password_key is none"))?;
        let observed = serde_json::from_str(&found).map_err(|error| unexpected(&error.to_string()))?;
        Ok((key, observed))
    }

    /// Carries out one step.
    ///
    /// # Errors
    /// When the server refused or did not answer. In the latter case the step may have been carried out.
    pub async fn carry_out(
        &self,
        step: &Step,
        names: &Names,
        key: &PasswordKey,
        superuser: bool,
    ) -> Result<(), ServerError> {
        let attempted = self.at(&step.doing(names));
        let session = self.session().await?;
        self.may_write()?;
        self.send(session, &attempted, |version| step.sql(names, key, superuser, version)).await?;
        let (verb, kind) = step.counted();
        self.metrics.wrote(verb, kind);
        Ok(())
    }

    /// Gives each of these logins an end after `grace`, unless it has one already, and says when each ends.
    ///
    /// # Errors
    /// As [`Self::carry_out`].
    pub async fn end(&self, logins: &[String], grace: Duration) -> Result<Vec<(String, String)>, ServerError> {
        let attempted = self.at(&format!("give an end to '{}'", logins.join("', '")));
        let session = self.session().await?;
        self.may_write()?;
        let sql = format!("{}; {}", statements::end(logins, grace), statements::ends(logins));
        let rows = self.send(session, &attempted, |_| sql).await?;
        self.metrics.wrote("update", "role");
        Ok(rows
            .into_iter()
            .filter_map(|row| {
                let mut columns = row.into_iter().flatten();
                Some((columns.next()?, columns.next()?))
            })
            .collect())
    }

    /// Whether the server lets this login into its database.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn accepts(&self, names: &Names, login: &str, password: &Password) -> Result<Acceptance, ServerError> {
        let attempted = self.at(&format!("log in as '{login}'"));
        let config = self.connection.login(&names.database, login, password);
        match self.connect(&config, &attempted).await {
            Ok(_) => Ok(Acceptance::Accepted),
            Err(Failure::Known(error)) => Err(error),
            Err(Failure::Answered(error)) => match ServerError::of(&attempted, &error) {
                ServerError::Refused(why) if error.code() == Some(&SqlState::INVALID_PASSWORD) => {
                    Ok(Acceptance::WrongPassword(why))
                }
                ServerError::Refused(why) => Ok(Acceptance::Refused(why)),
                passing => Err(passing),
            },
        }
    }

    fn at(&self, doing: &str) -> String {
        format!("{doing} at {}", self.connection.address())
    }

    fn may_write(&self) -> Result<(), ServerError> {
        if self.tenure.holds() { Ok(()) } else { Err(ServerError::LeaseLost) }
    }

    /// Sends statements and takes their rows. The connection is kept unless it failed.
    async fn send(
        &self,
        session: Session,
        attempted: &str,
        sql: impl FnOnce(u32) -> String,
    ) -> Result<Rows, ServerError> {
        let sql = sql(session.version);
        let limit = self.connection.statement_timeout + PATIENCE;
        let Ok(answer) = tokio::time::timeout(limit, session.client.simple_query(&sql)).await else {
            return Err(unanswered(attempted, limit));
        };
        match answer {
            Ok(messages) => {
                self.keep(session);
                Ok(rows(&messages))
            }
            Err(error) => {
                let error = ServerError::of(attempted, &error);
                if matches!(error, ServerError::Refused(_)) && !session.client.is_closed() {
                    self.keep(session);
                }
                Err(error)
            }
        }
    }

    fn keep(&self, mut session: Session) {
        session.used = true;
        self.idle().push(session);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection to the platform's own database, which is made when it is not there.
    async fn session(&self) -> Result<Session, ServerError> {
        self.reachable()?;
        let found = {
            let mut idle = self.idle();
            idle.retain(|session| !session.client.is_closed());
            idle.pop()
        };
        if let Some(session) = found {
            return Ok(session);
        }
        let attempted = self.at(&format!("connect as '{}'", self.connection.user));
        let own = self.connection.administrator(OWN_DATABASE);
        let session = match self.connect(&own, &attempted).await {
            Err(Failure::Answered(error)) if error.code() == Some(&SqlState::INVALID_CATALOG_NAME) => {
                self.make_own_database(&attempted).await?;
                self.connect(&own, &attempted).await
            }
            other => other,
        };
        let session = session.map_err(|failure| failure.into_error(&attempted))?;
        self.prepared(session).await
    }

    /// A new connection to the platform's own database, which is left as it is.
    pub(super) async fn connect_to_own(&self) -> Result<Session, ServerError> {
        let attempted = self.at(&format!("connect as '{}'", self.connection.user));
        let own = self.connection.administrator(OWN_DATABASE);
        self.connect(&own, &attempted).await.map_err(|failure| failure.into_error(&attempted))
    }

    async fn make_own_database(&self, attempted: &str) -> Result<(), ServerError> {
        let maintenance = self.connection.administrator(&self.connection.maintenance_database);
        let session = self.connect(&maintenance, attempted).await.map_err(|failure| failure.into_error(attempted))?;
        self.may_write()?;
        let attempted = self.at(&format!("create database '{OWN_DATABASE}'"));
        let sql = format!("CREATE DATABASE {OWN_DATABASE} TEMPLATE template0");
        let limit = self.connection.statement_timeout + PATIENCE;
        match tokio::time::timeout(limit, session.client.batch_execute(&sql)).await {
            Err(_) => Err(unanswered(&attempted, limit)),
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => match ServerError::of(&attempted, &error) {
                // Another connection of ours, or another replica, was first.
                ServerError::Raced(_) => Ok(()),
                other => Err(other),
            },
        }
    }

    async fn prepared(&self, session: Session) -> Result<Session, ServerError> {
        let attempted = self.at(&format!("prepare database '{OWN_DATABASE}'"));
        let limit = self.connection.statement_timeout + PATIENCE;
        let prepare = async {
            let refused = |error: tokio_postgres::Error| ServerError::of(&attempted, &error);
            let first = |messages: &[SimpleQueryMessage]| rows(messages).into_iter().next()?.into_iter().next()?;
            let unprepared = first(&session.client.simple_query(statements::IS_UNPREPARED).await.map_err(refused)?);
            if unprepared.as_deref() == Some("t") {
                self.may_write()?;
                session.ask(statements::PREPARE).await.map_err(refused)?;
            }
            let claimed = first(&session.client.simple_query(statements::CLAIMED_FOR).await.map_err(refused)?);
            if self.claim.is_open(claimed.as_deref()) {
                self.may_write()?;
                session.ask(&self.claim.sql()).await.map_err(refused)?;
            }
            Ok(())
        };
        tokio::time::timeout(limit, prepare).await.unwrap_or_else(|_| Err(unanswered(&attempted, limit)))?;
        Ok(session)
    }

    async fn connect(&self, config: &Config, attempted: &str) -> Result<Session, Failure> {
        let limit = self.connection.connect_timeout;
        let connecting = async {
            if self.connection.tls == Tls::Disable {
                let (client, connection) = config.connect(NoTls).await.map_err(Failure::Answered)?;
                let version = version(connection.parameter("server_version"));
                let task = tokio::spawn(async { drop(connection.await) }).abort_handle();
                return Ok(Session { client, version, used: false, task });
            }
            let verifier = self
                .connection
                .verifier()
                .map_err(|error| Failure::Known(ServerError::Refused(format!("failed to {attempted}: {error:#}"))))?;
            let (client, connection) = config.connect(verifier).await.map_err(Failure::Answered)?;
            let version = version(connection.parameter("server_version"));
            let task = tokio::spawn(async { drop(connection.await) }).abort_handle();
            Ok(Session { client, version, used: false, task })
        };
        match tokio::time::timeout(limit, connecting).await {
            Ok(result) => result,
            Err(_) => Err(Failure::Known(unanswered(attempted, limit))),
        }
    }
}

/// Why there is no connection.
enum Failure {
    /// What went wrong is to be judged.
    Answered(tokio_postgres::Error),
    /// What went wrong is known.
    Known(ServerError),
}

impl Failure {
    fn into_error(self, attempted: &str) -> ServerError {
        match self {
            Self::Known(error) => error,
            Self::Answered(error) => ServerError::of(attempted, &error),
        }
    }
}

fn unanswered(attempted: &str, limit: Duration) -> ServerError {
    ServerError::Unavailable(format!("failed to {attempted}: no answer within {} s", limit.as_secs()))
}

/// `16.4 (Debian 16.4-1)` is 160000: the minor version makes no difference.
fn version(text: Option<&str>) -> u32 {
    let major = text.unwrap_or_default().split(|character: char| !character.is_ascii_digit()).next();
    major.and_then(|major| major.parse::<u32>().ok()).unwrap_or_default() * 10_000
}

fn rows(messages: &[SimpleQueryMessage]) -> Rows {
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect()),
        _ => None,
    });
    rows.collect()
}
