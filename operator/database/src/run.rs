//! The process: its tasks, and how it ends.

use std::sync::Arc;

use ankka_crds::AnkkaDatabase;
use ankka_requests::process::{Controller, Who, all_again};
use ankka_runtime::metrics::Metrics;
use kube::Config;
use tokio_util::sync::CancellationToken;

use crate::{
    cluster,
    pass::Passes,
    server::{Claim, Monitor, Postgres},
    settings::Settings,
};

/// Name of the Lease.
const LEASE: &str = "ankka-database";

/// What is observed.
pub const RESOURCE: &str = "ankkadatabases";

/// What is counted.
pub fn metrics() -> Metrics {
    Metrics::new("ankka_database", "databases")
}

/// Runs until `stop` is cancelled, which is a good end, or any essential task ends, which is an error.
///
/// # Errors
/// When no client can be made, the cluster's id is refused, or such a task ended.
pub async fn run(settings: Settings, config: Config, stop: CancellationToken) -> anyhow::Result<()> {
    let mut controller =
        Controller::<AnkkaDatabase>::start(RESOURCE, metrics(), settings.timing, settings.listen, config)?;
    let cluster = tokio::select! {
        id = cluster::id(&controller.client) => id?,
        () = stop.cancelled() => return Ok(()),
    };
    tracing::info!(cluster, "this is the cluster that the database server is claimed for");
    let claim = Claim { cluster, take_over: settings.take_over.clone() };
    let (tenure, metrics) = (controller.tenure.clone(), controller.metrics.clone());
    let server = Arc::new(Postgres::new(settings.connection.clone(), claim, tenure, metrics));
    let again = all_again(controller.cache.clone(), controller.queue.clone());
    controller.tasks.spawn(Monitor::new(server.clone()).watch(again));
    let passes = Passes::new(&settings, controller.writer.clone(), server, &controller.cache, &controller.metrics);
    let who = Who {
        namespace: &settings.own_namespace,
        lease: LEASE,
        pod: &settings.pod,
        // A worker has one connection at a time.
        concurrency: settings.connections,
    };
    controller.run(who, passes, &stop).await
}
