//! A small service: it says who it is and how many instances it found. See its README.

use std::{sync::Arc, time::Duration};

use ankka_example_common::{Cluster, Limits, MANAGEMENT_PORT, listen, log, optional, port, run};
use anyhow::Context;
use tokio::net::TcpListener;

mod database;
mod routes;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    log();
    let cart = Arc::new(routes::Cart {
        service: optional("ANKKA_CLUSTER_SERVICE")?.unwrap_or_else(|| "cart".to_owned()),
        instance: optional("POD_IP")?.or(optional("HOSTNAME")?).unwrap_or_else(|| "local".to_owned()),
        shown: optional("CART_SHOW")?.unwrap_or_default().split(',').map(|name| name.trim().to_owned()).collect(),
        cluster: Cluster::from_env()?,
    });
    let app = routes::public(cart.clone());

    // Behind a sidecar only the sidecar is asked whether the instance is ready, and only it is reached from outside.
    if let Some(port) = port("ANKKA_PROCESS_PORT")? {
        let listener = TcpListener::bind(("127.0.0.1", port))
            .await
            .with_context(|| format!("failed to listen on 127.0.0.1:{port}"))?;
        // Longer than the sidecar's own, so that whatever it still passes on finds the process there.
        let limits = Limits { idle: Duration::from_secs(3), longest: Duration::from_secs(22) };
        return run(listener, app, None, &cart.cluster, limits).await;
    }

    let listener = listen(port("ANKKA_HTTP_PORT")?.unwrap_or(9000)).await?;
    let management = (listen(MANAGEMENT_PORT).await?, routes::management(cart.clone()));
    let limits = Limits { idle: Duration::from_secs(1), longest: Duration::from_secs(20) };
    run(listener, app, Some(management), &cart.cluster, limits).await
}
