//! Services' databases as a test sees them: the login in a service's Secret, tried on the real server.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde::Deserialize;
use tokio_postgres::{Config, NoTls};

use super::{Cluster, load::Client};

/// What a service is given to log in with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Name of the server inside the cluster.
    pub host: String,
    /// Port under that name.
    pub port: String,
    /// The database.
    pub name: String,
    /// The role that logs in.
    pub user: String,
    /// Its password.
    pub password: String,
}

/// What the example service answers when it is asked for its database.
#[derive(Debug, Deserialize)]
pub struct Visit {
    /// The role that logged in.
    pub login: String,
    /// The role it acts as.
    pub role: String,
    /// The database it is in.
    pub database: String,
    /// Rows left by visits, this one's included.
    pub visits: i64,
}

impl Login {
    /// The login in the Secret of a service; none when there is no Secret.
    ///
    /// # Errors
    /// When the Secret is not what the platform issues: another type, a key missing, a password of another shape.
    pub async fn of(cluster: &Cluster, namespace: &str, service: &str) -> Result<Option<Self>> {
        let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), namespace);
        let Some(secret) = secrets.get_opt(&ankka_crds::names::database_secret(service)).await? else {
            return Ok(None);
        };
        ensure!(secret.type_.as_deref() == Some(ankka_crds::names::DATABASE_SECRET_TYPE), "{:?}", secret.type_);
        let mut data: BTreeMap<_, _> = secret.data.unwrap_or_default();
        let mut value = |key: &str| {
            let value = data.remove(key).with_context(|| format!("the Secret has no {key}"))?;
            String::from_utf8(value.0).with_context(|| format!("{key} is not UTF-8"))
        };
        let login = Self {
            host: value("ANKKA_DB_HOST")?,
            port: value("ANKKA_DB_PORT")?,
            name: value("ANKKA_DB_NAME")?,
            user: value("ANKKA_DB_USER")?,
            password: value("ANKKA_DB_PASSWORD")?,
        };
        ensure!(
            login.password.len() == 40 && login.password.bytes().all(|byte| byte.is_ascii_alphanumeric()),
            "the password is not 40 letters and digits"
        );
        Ok(Some(login))
    }

    /// Logs in to `database` and says who it is there.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn try_on(&self, cluster: &Cluster, database: &str) -> Result<String> {
        let address = cluster.platform.require_local()?.database()?.address;
        let mut config = Config::new();
        config.host(address.ip().to_string()).port(address.port()).dbname(database);
        config.user(&self.user).password(&self.password).application_name("e2e");
        let (client, connection) = config.connect(NoTls).await.with_context(|| format!("{} was refused", self.user))?;
        let connection = tokio::spawn(connection);
        let row = client.query_one("SELECT current_user::text", &[]).await?;
        drop(client);
        connection.await??;
        Ok(row.get(0))
    }
}

/// Has an instance of the example service log in to its database.
///
/// # Errors
/// When it does not answer, or could not log in.
pub async fn visit(cluster: &Cluster, namespace: &str, service: &str) -> Result<Visit> {
    let mut client = Client::fresh(cluster.address(namespace, service).await?);
    Ok(serde_json::from_slice(&client.request("/database").await?)?)
}
