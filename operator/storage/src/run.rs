//! The process: its tasks, and how it ends.

use std::sync::Arc;

use ankka_crds::{AnkkaBucket, names};
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
    pass::{Passes, Store},
    settings::Settings,
    store::{Census, Garage, Monitor},
};

/// Name of the Lease.
const LEASE: &str = "ankka-storage";

/// What is observed.
pub const RESOURCE: &str = "ankkabuckets";

/// What is counted.
pub fn metrics() -> Metrics {
    Metrics::new("ankka_storage", "buckets")
}

/// Runs until `stop` is cancelled, which is a good end, or any essential task ends, which is an error.
pub async fn run(settings: Settings, mut config: Config, stop: CancellationToken) -> anyhow::Result<()> {
    // Repetitions are ours to make: each has to ask first whether the lease is still held.
    config.default_retry = false;
    let client = Client::try_from(config).context("failed to build a client for the cluster")?;
    let tenure = Arc::new(Tenure::default());
    let writer = guarded(client.clone(), tenure.clone());

    let cache = Arc::new(Cache::<AnkkaBucket>::default());
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
    let store = store(&settings, &tenure, &metrics, &queue)?;
    if let Some(store) = &store {
        tasks.spawn(Monitor::new(store.garage.clone()).watch(all_again(cache.clone(), queue.clone())));
    }
    let passes = Passes::new(&settings, writer, store, &cache, &metrics);

    tokio::select! {
        warm = synced.wait() => anyhow::ensure!(warm, "observing the cluster ended"),
        ended = tasks.join_next() => return Err(end_of(ended)),
        () = stop.cancelled() => return Ok(()),
    }
    tracing::info!(buckets = cache.len(), "caches are warm, standing by");
    let replica = Replica {
        client: &client,
        namespace: &settings.own_namespace,
        lease: LEASE,
        pod: &settings.pod,
        concurrency: settings.concurrency,
        tenure,
        metrics: &metrics,
    };
    replica.run(&mut tasks, &queue, passes, || cache.keys(), &stop).await
}

/// The store of the settings; none when the installation has none.
///
/// # Errors
/// When the authorities that are to be trusted cannot be read.
pub fn store(
    settings: &Settings,
    tenure: &Arc<Tenure>,
    metrics: &Arc<Metrics>,
    queue: &Arc<Queue<Key>>,
) -> anyhow::Result<Option<Store>> {
    let Some(set) = &settings.store else { return Ok(None) };
    let garage = Garage::new(set, tenure.clone(), metrics.clone())?;
    let (queue, prefix) = (queue.clone(), settings.prefix.clone());
    let census = Census::new(settings.timing.resync, move |bucket| {
        if let Some((project, service)) = bucket.split_once('.') {
            queue.add(Key { namespace: names::namespace(&prefix, project).into(), name: service.into() });
        }
    });
    Ok(Some(Store { garage: Arc::new(garage), census, endpoint: set.endpoint.clone(), region: set.region.clone() }))
}

/// Asks for a pass over every bucket.
pub fn all_again(cache: Arc<Cache<AnkkaBucket>>, queue: Arc<Queue<Key>>) -> impl Fn() + Send + 'static {
    move || cache.keys().into_iter().for_each(|key| queue.add(key))
}
