//! One pass over one database: observe, decide, act, report.

use std::{sync::Arc, time::Duration};

use ankka_crds::{AnkkaDatabase, names::database_secret, resources::AnkkaDatabaseStatus};
use ankka_requests::{
    cache::{Cache, Key},
    place::{Elsewhere, project_of},
    report::{self, SOON, is_news},
};
use ankka_runtime::{
    metrics::Metrics,
    queue::Next,
    wire::Wire,
    workers::{self, Subject},
};
use jiff::Timestamp;
use kube::Client;

use crate::{
    decide::{Facts, Intent, Plan, decide},
    error::Error,
    names::Names,
    password::PasswordKey,
    secret::{self, Written},
    server::{Acceptance, Observed, Postgres, ServerError, Step},
    settings::Settings,
    status::{Outcome, former, told, with_times},
};

/// How long one pass may take.
const DEADLINE: Duration = Duration::from_mins(2);

/// How often what was found may differ from what was decided on before a pass gives up for now.
const ROUNDS: usize = 3;

/// Name under which the controller writes.
pub const MANAGER: &str = "ankka-database";

/// Passes over databases.
pub struct Passes {
    prefix: String,
    own_namespace: String,
    grace: Duration,
    cache: Arc<Cache<AnkkaDatabase>>,
    server: Arc<Postgres>,
    wire: Wire,
}

impl Passes {
    /// Passes over what is in `cache`, which write through `client` and to `server`.
    pub fn new(
        settings: &Settings,
        client: Client,
        server: Arc<Postgres>,
        cache: &Arc<Cache<AnkkaDatabase>>,
        metrics: &Arc<Metrics>,
    ) -> Self {
        Self {
            prefix: settings.prefix.clone(),
            own_namespace: settings.own_namespace.clone(),
            grace: settings.grace,
            cache: cache.clone(),
            server,
            wire: Wire { client, manager: MANAGER, metrics: metrics.clone() },
        }
    }

    async fn pass(&self, key: &Key) -> Result<Next, Error> {
        for _ in 0..ROUNDS {
            let Some(database) = self.cache.get(key) else { return Ok(Next::Forget) };
            if database.metadata.deletion_timestamp.is_some() {
                return Ok(Next::Resync);
            }
            let namespace = self.cache.namespace(&key.namespace);
            let project = match project_of(&self.prefix, &self.own_namespace, &key.namespace, namespace.as_ref()) {
                Ok(project) => project,
                Err(Elsewhere::Terminating) => return Ok(Next::Resync),
                Err(Elsewhere::NoProject(_)) if namespace.is_none() && is_news(&*database) => {
                    return Ok(Next::After(SOON));
                }
                Err(Elsewhere::NoProject(why)) => {
                    let known = database.status.clone().unwrap_or_default();
                    let status = told(&database, known, Outcome::Failed("NoProject", &why));
                    return Ok(match self.report(&database, status).await? {
                        Some(_) => Next::Resync,
                        None => Next::After(SOON),
                    });
                }
            };
            let names = Names::new(project, &key.name);
            let mut work = Work { passes: self, key, names, database };
            match work.all().await {
                Ok(Some(())) => return Ok(Next::Resync),
                // The API server knows a newer state than the one that was judged: it is on its way here.
                Ok(None) => return Ok(Next::After(SOON)),
                Err(Error::Server(ServerError::Raced(_))) => {}
                Err(error) => return report::unfinished(key, work.explain(&error).await, error),
            }
        }
        Err(Error::Unsteady(format!("database {} in {}", key.name, key.namespace)))
    }

    /// Writes a status, when it says something new. None when the state of the object that was judged is no longer the stored
    /// one; else the object with that status.
    async fn report(
        &self,
        database: &Arc<AnkkaDatabase>,
        status: AnkkaDatabaseStatus,
    ) -> Result<Option<Arc<AnkkaDatabase>>, Error> {
        let now = report::shown(Timestamp::now());
        let Some(status) = with_times(database.status.as_ref(), status, &now) else {
            return Ok(Some(database.clone()));
        };
        Ok(report::write(&self.wire, &self.cache, &**database, "AnkkaDatabase/status", &status).await?)
    }
}

impl workers::Passes<Key> for Passes {
    async fn one(&self, key: &Key) -> Next {
        let subject = Subject { kind: "Database", namespace: Some(&key.namespace), name: &key.name };
        workers::reported(subject, &self.wire.metrics, DEADLINE, self.pass(key)).await
    }
}

/// What one pass is at.
struct Work<'a> {
    passes: &'a Passes,
    key: &'a Key,
    names: Names,
    /// As it was judged, or as our own last report has left it.
    database: Arc<AnkkaDatabase>,
}

impl Work<'_> {
    /// Makes the database what it should be and says how it is. None when it was not the newest state that was judged.
    async fn all(&mut self) -> Result<Option<()>, Error> {
        let server = &self.passes.server;
        let (key, observed) = server.observe(&self.names).await?;
        let fingerprint = key.fingerprint();
        let facts = Facts {
            database: &self.database,
            names: &self.names,
            observed: &observed,
            key: &fingerprint,
            cluster: server.cluster(),
        };
        let plan = match decide(&facts) {
            Ok(plan) => plan,
            Err(obstacle) => return self.fail(obstacle.reason, obstacle.detail).await,
        };
        if let Some(intent) = plan.intent
            && self.intend(intent).await?.is_none()
        {
            return Ok(None);
        }
        for step in &plan.steps {
            server.carry_out(step, &self.names, &key, observed.superuser).await?;
        }
        let login = self.names.login(plan.generation);
        if let Acceptance::WrongPassword(why) | Acceptance::Refused(why) =
            self.accepted(&plan, &observed, &key, &login).await?
        {
            return self.fail("LoginRefused", why).await;
        }
        let password = key.password(&login);
        let (namespace, name) = (&self.key.namespace, &self.key.name);
        let body = secret::body(namespace, name, &self.names, server.connection(), &login, &password);
        if let Written::Stranger(why) = secret::write(&self.passes.wire, namespace, name, &body).await? {
            return self.fail("NameTaken", why).await;
        }
        let mut ending = plan.ending;
        if !plan.end.is_empty() {
            let ends = server.end(&plan.end, self.passes.grace).await?;
            ending.extend(ends.into_iter().filter_map(|(login, at)| Some((self.names.generation(&login)?, at))));
        }
        let known = AnkkaDatabaseStatus {
            database: Some(self.names.database.clone()),
            secret: Some(database_secret(name)),
            login: Some(login),
            credential_generation: plan.generation,
            password_key: Some(fingerprint),
            former_logins: former(&ending, |generation| self.names.login(generation)),
            ..self.known()
        };
        let status = told(&self.database, known, Outcome::Provisioned);
        Ok(self.passes.report(&self.database, status).await?.map(drop))
    }

    /// Writes down what is about to be done, before it is done.
    async fn intend(&mut self, intent: Intent) -> Result<Option<()>, Error> {
        let known = AnkkaDatabaseStatus {
            database: Some(self.names.database.clone()),
            recovered: intent.recovered,
            ..self.known()
        };
        let status = told(&self.database, known, Outcome::Making);
        let Some(stored) = self.passes.report(&self.database, status).await? else { return Ok(None) };
        self.database = stored;
        Ok(Some(()))
    }

    /// Whether the server lets the login in, whose password is set again when somebody has changed it.
    async fn accepted(
        &self,
        plan: &Plan,
        observed: &Observed,
        key: &PasswordKey,
        login: &str,
    ) -> Result<Acceptance, Error> {
        let server = &self.passes.server;
        let password = key.password(login);
        let first = server.accepts(&self.names, login, &password).await?;
        if !matches!(first, Acceptance::WrongPassword(_)) {
            return Ok(first);
        }
        tracing::info!(login, "the login's password is not the one in its Secret, setting it again");
        let step = Step::SetPassword(plan.generation);
        server.carry_out(&step, &self.names, key, observed.superuser).await?;
        Ok(server.accepts(&self.names, login, &password).await?)
    }

    /// Says that somebody has to act.
    async fn fail(&self, reason: &'static str, why: String) -> Result<Option<()>, Error> {
        let status = told(&self.database, self.known(), Outcome::Failed(reason, &why));
        self.passes.report(&self.database, status).await?;
        Err(Error::Obstacle(why))
    }

    /// Says why a pass did not finish, where that is of interest to whoever waits for the database. None when it was not the
    /// newest state that was judged.
    async fn explain(&self, error: &Error) -> Result<Option<()>, Error> {
        let refusal;
        let outcome = match error {
            Error::Server(ServerError::Unavailable(why) | ServerError::Down(why)) => Outcome::Waiting(why),
            Error::Server(ServerError::Refused(why)) => Outcome::Failed("Refused", why),
            Error::Api(error) => match error.refusal() {
                Some(why) => {
                    refusal = why;
                    Outcome::Failed("WriteRefused", &refusal)
                }
                None => return Ok(Some(())),
            },
            _ => return Ok(Some(())),
        };
        let status = told(&self.database, self.known(), outcome);
        Ok(self.passes.report(&self.database, status).await?.map(drop))
    }

    fn known(&self) -> AnkkaDatabaseStatus {
        self.database.status.clone().unwrap_or_default()
    }
}
