//! The service's database, reached with what the platform gave the instance in its environment.

use std::{env, time::Duration};

use anyhow::{Context, anyhow};
use serde_json::{Value, json};
use tokio_postgres::{Config, NoTls};

/// Longest wait for the server to take a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Two instances that made the table at the same moment would be in each other's way.
const LEAVE_A_ROW: &str = "
    DO $$ BEGIN
        IF to_regclass('visits') IS NULL THEN
            PERFORM pg_advisory_xact_lock(1);
            CREATE TABLE IF NOT EXISTS visits (at timestamptz NOT NULL DEFAULT now());
        END IF;
    END $$;
    INSERT INTO visits DEFAULT VALUES;";

/// Logs in, leaves a row, and tells who it is and how many rows there are by now.
///
/// # Errors
/// A variable that is missing, and whatever the server says to the login or a statement.
pub(crate) async fn visit() -> anyhow::Result<Value> {
    let (client, connection) = config()?.connect(NoTls).await.context("failed to log in to the database")?;
    let connection = tokio::spawn(connection);
    client.batch_execute(LEAVE_A_ROW).await.context("failed to leave a row")?;
    let row = client
        .query_one(
            "SELECT session_user::text, current_user::text, current_database()::text, (SELECT count(*) FROM visits)",
            &[],
        )
        .await
        .context("failed to count the rows")?;
    drop(client);
    connection.await?.context("the connection did not end well")?;
    Ok(json!({
        "login": row.get::<_, String>(0),
        "role": row.get::<_, String>(1),
        "database": row.get::<_, String>(2),
        "visits": row.get::<_, i64>(3),
    }))
}

fn config() -> anyhow::Result<Config> {
    let variable = |name: &str| env::var(name).map_err(|_| anyhow!("{name} is not set: the service has no database"));
    let mut config = Config::new();
    config
        .host(variable("ANKKA_DB_HOST")?)
        .port(variable("ANKKA_DB_PORT")?.parse().context("ANKKA_DB_PORT is no port")?)
        .dbname(variable("ANKKA_DB_NAME")?)
        .user(variable("ANKKA_DB_USER")?)
        .password(variable("ANKKA_DB_PASSWORD")?)
        .application_name("cart")
        .connect_timeout(CONNECT_WITHIN);
    Ok(config)
}
