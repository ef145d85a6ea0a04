//! What the cluster says of one project's objects, and when it was said: to the millisecond, where statuses tell whole seconds.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use ankka_crds::{AnkkaDatabase, AnkkaService};
use anyhow::{Context, Result, bail};
use futures::TryStreamExt;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{Event, Pod},
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::JoinSet};

use super::Cluster;

/// Watches a namespace from its making until it is dropped.
pub struct Witness {
    seen: Arc<Mutex<Vec<Seen>>>,
    #[expect(dead_code, reason = "the watches end when this is dropped")]
    watches: JoinSet<Result<()>>,
}

struct Seen {
    at: Instant,
    object: Value,
}

impl Witness {
    /// Begins to watch. What is there already does not count.
    ///
    /// # Errors
    /// When it cannot be watched.
    pub async fn of(cluster: &Cluster, namespace: &str) -> Result<Self> {
        let seen = Arc::default();
        let mut watches = JoinSet::new();
        for kind in [
            ApiResource::erase::<Pod>(&()),
            ApiResource::erase::<ReplicaSet>(&()),
            ApiResource::erase::<Deployment>(&()),
            ApiResource::erase::<Event>(&()),
            ApiResource::erase::<AnkkaService>(&()),
            ApiResource::erase::<AnkkaDatabase>(&()),
        ] {
            let (begun, begins) = oneshot::channel();
            let api = Api::namespaced_with(cluster.client.clone(), namespace, &kind);
            watches.spawn(watch(api, kind.kind, begun, Arc::clone(&seen)));
            begins.await.context("a kind cannot be watched")?;
        }
        Ok(Self { seen, watches })
    }

    /// Waits for an object to be as `shows` wants it. Returns when that was first told.
    ///
    /// # Errors
    /// When none was, `limit` later.
    pub async fn until(&self, what: &str, limit: Duration, shows: impl Fn(&Value) -> bool) -> Result<Instant> {
        let begun = Instant::now();
        loop {
            if let Some(at) = self.first(&shows) {
                return Ok(at);
            }
            if begun.elapsed() > limit {
                bail!("waited {} s for {what}", limit.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn first(&self, shows: impl Fn(&Value) -> bool) -> Option<Instant> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().find(|seen| shows(&seen.object)).map(|seen| seen.at)
    }
}

async fn watch(
    api: Api<DynamicObject>,
    kind: String,
    begun: oneshot::Sender<()>,
    seen: Arc<Mutex<Vec<Seen>>>,
) -> Result<()> {
    let mut begun = Some(begun);
    let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
    while let Some(event) = events.try_next().await? {
        match event {
            watcher::Event::Apply(object) => {
                let at = Instant::now();
                let mut object = serde_json::to_value(object)?;
                object["kind"] = json!(kind);
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(Seen { at, object });
            }
            watcher::Event::InitDone => drop(begun.take().map(|begun| begun.send(()))),
            watcher::Event::Init | watcher::Event::InitApply(_) | watcher::Event::Delete(_) => {}
        }
    }
    Ok(())
}
