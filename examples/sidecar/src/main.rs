//! A small sidecar: it belongs to the cluster for a process in another language and passes HTTP on to it. See its README.

use std::{sync::Arc, time::Duration};

use ankka_example_common::{Cluster, Limits, MANAGEMENT_PORT, listen, log, optional, port, run};
use axum::{Router, extract::State, http::StatusCode, routing::get};
use tokio::{net::TcpStream, time::timeout};

mod forward;

/// Longest wait for the process to take a connection when the sidecar is asked whether it is ready.
const PROBE: Duration = Duration::from_millis(500);

struct Sidecar {
    process: String,
    cluster: Cluster,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    log();
    let process = optional("ANKKA_PROCESS_ADDRESS")?.unwrap_or_else(|| "127.0.0.1:9010".to_owned());
    let app = forward::router(&process)?;
    let sidecar = Arc::new(Sidecar { process, cluster: Cluster::from_env()? });

    let listener = listen(port("ANKKA_HTTP_PORT")?.unwrap_or(9000)).await?;
    let ready = Router::new().route("/ready", get(ready)).with_state(sidecar.clone());
    let management = (listen(MANAGEMENT_PORT).await?, ready);
    let limits = Limits { idle: Duration::from_secs(1), longest: Duration::from_secs(20) };
    run(listener, app, Some(management), &sidecar.cluster, limits).await
}

async fn ready(State(sidecar): State<Arc<Sidecar>>) -> (StatusCode, String) {
    match timeout(PROBE, TcpStream::connect(&sidecar.process)).await {
        Ok(Ok(_)) => sidecar.cluster.state().answer(),
        Ok(Err(error)) => not_listening(&sidecar.process, &error),
        Err(late) => not_listening(&sidecar.process, &late),
    }
}

fn not_listening(process: &str, why: &dyn std::fmt::Display) -> (StatusCode, String) {
    (StatusCode::SERVICE_UNAVAILABLE, format!("the process at {process} takes no connection: {why}\n"))
}
