//! The process: its tasks, and how it ends.

use std::sync::Arc;

use ankka_crds::{AnkkaBucket, names};
use ankka_requests::{
    cache::Key,
    process::{Controller, Who, all_again},
};
use ankka_runtime::{metrics::Metrics, queue::Queue, tenure::Tenure};
use kube::Config;
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
///
/// # Errors
/// When no client can be made, for the cluster or the store, or such a task ended.
pub async fn run(settings: Settings, config: Config, stop: CancellationToken) -> anyhow::Result<()> {
    let mut controller =
        Controller::<AnkkaBucket>::start(RESOURCE, metrics(), settings.timing, settings.listen, config)?;
    let store = store(&settings, &controller.tenure, &controller.metrics, &controller.queue)?;
    if let Some(store) = &store {
        let again = all_again(controller.cache.clone(), controller.queue.clone());
        controller.tasks.spawn(Monitor::new(store.garage.clone()).watch(again));
    }
    let passes = Passes::new(&settings, controller.writer.clone(), store, &controller.cache, &controller.metrics);
    let who =
        Who { namespace: &settings.own_namespace, lease: LEASE, pod: &settings.pod, concurrency: settings.concurrency };
    controller.run(who, passes, &stop).await
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
