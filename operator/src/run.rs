//! The process: its tasks, and how it ends.

use std::sync::Arc;

use ankka_runtime::{
    http::{self, Health},
    metrics::Metrics,
    queue::{Lateness, Queue},
    tenure::{Tenure, guarded},
    workers::{Replica, Tasks, end_of},
};
use anyhow::Context;
use kube::{Client, Config};
use tokio_util::sync::CancellationToken;

use crate::{
    cache::{Cache, Lifecycles},
    observe::Observer,
    passes::Passes,
    report,
    settings::Settings,
};

/// Name of the Lease.
const LEASE: &str = "ankka-operator";

/// What is counted.
pub fn metrics() -> Metrics {
    Metrics::new("ankka_operator", "services")
}

/// Runs until `stop` is cancelled, which is a good end, or any essential task ends, which is an error.
pub async fn run(settings: Settings, mut config: Config, stop: CancellationToken) -> anyhow::Result<()> {
    // Repetitions are ours to make: each has to ask first whether the lease is still held.
    config.default_retry = false;
    let client = Client::try_from(config).context("failed to build a client for the cluster")?;
    let tenure = Arc::new(Tenure::default());
    let writer = guarded(client.clone(), tenure.clone());

    let cache = Arc::new(Cache::new(&settings.desired.prefix));
    let queue = Arc::new(Queue::new(settings.timing));
    let mut metrics = metrics();
    metrics.look_up(Lateness(queue.clone()));
    metrics.look_up(Lifecycles(cache.clone()));
    let metrics = Arc::new(metrics);
    let mut tasks = Tasks::new();

    let observer = Observer { cache: cache.clone(), queue: queue.clone(), metrics: metrics.clone() };
    let mut synced = observer.start(&client, &mut tasks);
    let health = Health {
        metrics: metrics.clone(),
        waiting: Arc::new({
            let queue = queue.clone();
            move || queue.depth()
        }),
        known: Arc::new({
            let cache = cache.clone();
            move || cache.services()
        }),
        synced: synced.clone(),
    };
    tasks.spawn(http::serve(settings.listen, health));
    let (passes, notices) = Passes::new(&settings, writer.clone(), &cache, &queue, &metrics);
    tasks.spawn(report::publish(writer, settings.pod.clone(), queue.clone(), notices));

    tokio::select! {
        warm = synced.wait() => anyhow::ensure!(warm, "observing the cluster ended"),
        ended = tasks.join_next() => return Err(end_of(ended)),
        () = stop.cancelled() => return Ok(()),
    }
    tracing::info!(services = cache.services(), "caches are warm, standing by");
    let replica = Replica {
        client: &client,
        namespace: &settings.desired.own_namespace,
        lease: LEASE,
        pod: &settings.pod,
        concurrency: settings.concurrency,
        tenure,
        metrics: &metrics,
    };
    replica.run(&mut tasks, &queue, passes, || cache.keys(), &stop).await
}
