//! The process: its tasks, and how it ends.

use std::sync::Arc;

use ankka_crds::AnkkaDatabase;
use ankka_requests::{
    cache::{Cache, Key},
    observe::Observer,
};
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
pub async fn run(settings: Settings, mut config: Config, stop: CancellationToken) -> anyhow::Result<()> {
    // Repetitions are ours to make: each has to ask first whether the lease is still held.
    config.default_retry = false;
    let client = Client::try_from(config).context("failed to build a client for the cluster")?;
    let tenure = Arc::new(Tenure::default());
    let writer = guarded(client.clone(), tenure.clone());

    let cache = Arc::new(Cache::<AnkkaDatabase>::default());
    let queue = Arc::new(Queue::new(settings.timing));
    let mut metrics = metrics();
    metrics.look_up(Lateness(queue.clone()));
    let metrics = Arc::new(metrics);
    let mut tasks = Tasks::new();

    let observer =
        Observer { resource: RESOURCE, cache: cache.clone(), queue: queue.clone(), metrics: metrics.clone() };
    let mut synced = observer.start(&client, &mut tasks);
    let (waiting, known) = (queue.clone(), cache.clone());
    let health = Health {
        metrics: metrics.clone(),
        waiting: Arc::new(move || waiting.depth()),
        known: Arc::new(move || known.len()),
        synced: synced.clone(),
    };
    tasks.spawn(http::serve(settings.listen, health));
    let cluster = tokio::select! {
        id = cluster::id(&client) => id?,
        () = stop.cancelled() => return Ok(()),
    };
    tracing::info!(cluster, "this is the cluster that the database server is claimed for");
    let claim = Claim { cluster, take_over: settings.take_over.clone() };
    let server = Arc::new(Postgres::new(settings.connection.clone(), claim, tenure.clone(), metrics.clone()));
    tasks.spawn(Monitor::new(server.clone()).watch(all_again(cache.clone(), queue.clone())));
    let passes = Passes::new(&settings, writer, server, &cache, &metrics);

    tokio::select! {
        warm = synced.wait() => anyhow::ensure!(warm, "observing the cluster ended"),
        ended = tasks.join_next() => return Err(end_of(ended)),
        () = stop.cancelled() => return Ok(()),
    }
    tracing::info!(databases = cache.len(), "caches are warm, standing by");
    let replica = Replica {
        client: &client,
        namespace: &settings.own_namespace,
        lease: LEASE,
        pod: &settings.pod,
        // A worker has one connection at a time.
        concurrency: settings.connections,
        tenure,
        metrics: &metrics,
    };
    replica.run(&mut tasks, &queue, passes, || cache.keys(), &stop).await
}

/// Asks for a pass over every database.
pub fn all_again(cache: Arc<Cache<AnkkaDatabase>>, queue: Arc<Queue<Key>>) -> impl Fn() + Send + 'static {
    move || cache.keys().into_iter().for_each(|key| queue.add(key))
}
