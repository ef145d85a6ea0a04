//! A plain client in the database controller's place: it looks at nothing, decides nothing, and sends what it was told.

use std::{sync::Arc, time::Duration};

use ankka_crds::{AnkkaDatabase, names::database_secret, resources::AnkkaDatabaseStatus};
use ankka_database::{
    names::Names,
    password::Password,
    secret,
    server::{Connection, Tls},
    status::{Outcome, told, with_times},
};
use anyhow::{Context, Result};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, api::PostParams};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio::sync::{Mutex, mpsc::UnboundedReceiver};
use tokio_postgres::{Config, config::SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::fleet::name;
use crate::platform::DatabaseServer;

/// As many as the controller has unless it is told otherwise.
const CONNECTIONS: usize = 4;

/// The client, connected.
pub(super) struct Plain {
    databases: Api<AnkkaDatabase>,
    secrets: Api<Secret>,
    postgres: Vec<tokio_postgres::Client>,
    /// What is said of the server in Secrets.
    connection: Connection,
    namespace: String,
    project: &'static str,
    /// What to send for the first database; in others' statements their names stand instead.
    statements: Vec<String>,
    recorded: String,
}

impl Plain {
    /// Connects to `server`. `statements` were sent for the database `recorded`.
    pub(super) async fn connect(
        client: Client,
        server: &DatabaseServer,
        (namespace, project): (&str, &'static str),
        (recorded, statements): (String, Vec<String>),
    ) -> Result<Self> {
        let mut postgres = Vec::new();
        for _ in 0..CONNECTIONS {
            postgres.push(connect(server).await.context("the plain client cannot connect")?);
        }
        let connection = Connection {
            host: server.host.to_owned(),
            port: server.port,
            tls: Tls::VerifyFull,
            authorities: Some(server.authority.clone()),
            user: server.administrator.0.to_owned(),
            password: Password::from(server.administrator.1.clone()),
            maintenance_database: "postgres".to_owned(),
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
        };
        Ok(Self {
            databases: Api::namespaced(client.clone(), namespace),
            secrets: Api::namespaced(client, namespace),
            postgres,
            connection,
            namespace: namespace.to_owned(),
            project,
            statements,
            recorded,
        })
    }

    /// Provisions what is asked for, one database on a connection at a time, until nothing more will be.
    pub(super) async fn all(&self, asked: UnboundedReceiver<(usize, AnkkaDatabase)>) -> Result<()> {
        let asked = Arc::new(Mutex::new(asked));
        let workers = self.postgres.iter().map(|postgres| {
            let asked = asked.clone();
            async move {
                loop {
                    let next = asked.lock().await.recv().await;
                    let Some((number, database)) = next else { return Ok(()) };
                    self.one(postgres, &name(number), database).await?;
                }
            }
        });
        try_join_all(workers).await.map(drop)
    }

    /// What the controller does for one database, in its order: the question, the first status, the steps, the Secret, the last status.
    async fn one(&self, postgres: &tokio_postgres::Client, service: &str, database: AnkkaDatabase) -> Result<()> {
        let names = Names::new(self.project, service);
        let send = async |statement: &String| {
            let statement = statement.replace(&self.recorded, &names.database);
            postgres.simple_query(&statement).await.map(drop).with_context(|| format!("refused: {statement}"))
        };
        let (question, steps) = self.statements.split_first().context("nothing to send")?;
        send(question).await?;
        let known = AnkkaDatabaseStatus { database: Some(names.database.clone()), ..AnkkaDatabaseStatus::default() };
        let database = self.report(service, database, known, Outcome::Making).await?;
        for step in steps {
            send(step).await?;
        }
        let (login, password) = (names.login(0), Password::from("a".repeat(40)));
        let body = secret::body(&self.namespace, service, &names, &self.connection, &login, &password);
        let secret: Secret = serde_json::from_value(body)?;
        self.secrets.create(&by_us(), &secret).await.context("failed to write a Secret")?;
        let known = AnkkaDatabaseStatus {
            secret: Some(database_secret(service)),
            login: Some(login),
            password_key: Some("0".repeat(12)),
            ..database.status.clone().unwrap_or_default()
        };
        self.report(service, database, known, Outcome::Provisioned).await.map(drop)
    }

    async fn report(
        &self,
        service: &str,
        mut database: AnkkaDatabase,
        known: AnkkaDatabaseStatus,
        outcome: Outcome<'_>,
    ) -> Result<AnkkaDatabase> {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        database.status = with_times(database.status.as_ref(), told(&database, known, outcome), &now);
        database.metadata.managed_fields = None;
        let stored = self.databases.replace_status(service, &by_us(), &database).await;
        stored.context("failed to write a status")
    }
}

fn by_us() -> PostParams {
    PostParams { field_manager: Some(ankka_database::pass::MANAGER.to_owned()), ..PostParams::default() }
}

/// A connection such as the controller's: to its own database on the server, over TLS, with the certificate verified.
async fn connect(server: &DatabaseServer) -> Result<tokio_postgres::Client> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(&server.authority)? {
        roots.add(certificate?)?;
    }
    let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let mut config = Config::new();
    config.host(server.host).hostaddr(server.address.ip()).port(server.address.port()).dbname("ankka");
    config.user(server.administrator.0).password(&server.administrator.1).application_name("plain");
    config.ssl_mode(SslMode::Require);
    let (client, connection) = config.connect(MakeRustlsConnect::new(tls)).await?;
    tokio::spawn(connection);
    Ok(client)
}
