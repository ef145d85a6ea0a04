//! Reporting: status and events.
//!
//! A status is written only when it says something new, for the state of the object that was judged: if that has changed
//! since, the API server refuses, and the object is judged again. Events are best effort.

use std::{sync::Arc, time::Duration};

use ankka_crds::{AnkkaService, AnkkaServiceStatus, labels::MANAGER};
use ankka_desired::{EventType, event, with_times};
use jiff::Timestamp;
use kube::{
    Client, Resource, ResourceExt,
    core::DeserializeGuard,
    runtime::events::{Event, EventType as Kind, Recorder, Reporter},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tokio::{sync::mpsc, time::Instant};

use crate::{
    cache::{Cache, Key, ServiceId, Source, StoredService, version_of},
    error::Error,
    queue::Queue,
    wire::{Target, Wire},
};

/// How long a change that only counts ready instances may be held back: they mostly come together.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long the word that a new service is in progress may be held back while others wait to be begun at all.
const RUSH: Duration = Duration::from_secs(30);

/// How long an event waits for passes that are due.
const YIELD: Duration = Duration::from_secs(5);

/// How long publishing one event may take.
const TELLING: Duration = Duration::from_secs(10);

/// How many events may wait to be published. More are dropped.
const EVENTS: usize = 4096;

/// How reporting went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// The status is what it should be.
    Done,
    /// A small change is held back for this long.
    Held(Duration),
    /// The object has changed, or is gone: judge again.
    Judge,
}

/// Writes statuses and publishes events.
#[derive(Clone)]
pub struct Statuses {
    /// Sends the requests.
    pub wire: Wire,
    /// Learns the answers.
    pub cache: Arc<Cache>,
    /// Says whether others wait.
    pub queue: Arc<Queue<Key>>,
    /// Takes events.
    pub events: Events,
}

impl Statuses {
    /// Reports on `service`, which was judged as it is here. `held` is since when a small change has been held back.
    pub async fn service(
        &self,
        id: &ServiceId,
        service: &AnkkaService,
        new: AnkkaServiceStatus,
        held: Option<Instant>,
    ) -> Result<Reported, Error> {
        let old = service.status.as_ref();
        let Some(new) = with_times(old, new, &now()) else {
            self.cache.hold(id, None);
            return Ok(Reported::Done);
        };
        if let Some(left) = self.patience(old, &new, held.map_or(Duration::ZERO, |since| since.elapsed())) {
            self.cache.hold(id, Some(held.unwrap_or_else(Instant::now)));
            return Ok(Reported::Held(left));
        }
        let answer: Option<DeserializeGuard<AnkkaService>> = self.put(service, &new).await?;
        let Some(answer) = answer else { return Ok(Reported::Judge) };
        let version = version_of(answer.meta());
        let stored = answer.0.map_or_else(|invalid| StoredService::invalid(&invalid), StoredService::new);
        self.cache.put_service(id, version, stored, Source::Answered);
        self.cache.hold(id, None);
        self.events.offer(service, old, &new);
        Ok(Reported::Done)
    }

    /// How long this change can still wait, when it may; it has waited for `waited`.
    fn patience(
        &self,
        old: Option<&AnkkaServiceStatus>,
        new: &AnkkaServiceStatus,
        waited: Duration,
    ) -> Option<Duration> {
        if new.lifecycle.as_deref() != Some("UpdateInProgress") {
            return None;
        }
        let left = match old {
            Some(old) if only_counts(old, new) => PATIENCE.saturating_sub(waited),
            None if self.queue.is_busy() => RUSH.saturating_sub(waited).min(PATIENCE),
            _ => Duration::ZERO,
        };
        (!left.is_zero()).then_some(left)
    }

    /// PUTs `status` for the state of `object` that was judged. None when that state is no longer the stored one.
    pub async fn put<K, S, T>(&self, object: &K, status: &S) -> Result<Option<T>, Error>
    where
        K: Resource<DynamicType = ()>,
        S: Serialize,
        T: DeserializeOwned,
    {
        let (name, namespace) = (object.name_any(), object.namespace());
        let metadata = object.meta();
        // The API server takes nothing but the status from this; UID and resourceVersion are its conditions.
        let body = json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
            },
            "status": status,
        });
        let target = Target {
            collection: &K::url_path(&(), namespace.as_deref()),
            kind: status_kind(&K::kind(&())),
            name: &name,
            namespace: namespace.as_deref(),
        };
        match self.wire.update_status(target, &body).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn status_kind(kind: &str) -> &'static str {
    if kind == "AnkkaProject" { "AnkkaProject/status" } else { "AnkkaService/status" }
}

/// The present, as statuses write it: RFC 3339 in whole seconds.
pub fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Whether the two differ in nothing but how many instances are ready.
fn only_counts(old: &AnkkaServiceStatus, new: &AnkkaServiceStatus) -> bool {
    let same = AnkkaServiceStatus { ready_instances: old.ready_instances, ..new.clone() };
    same == *old
}

/// Takes events and never waits.
#[derive(Clone, Debug)]
pub struct Events(mpsc::Sender<Notice>);

/// An event, and what it is about.
pub type Notice = (k8s_openapi::api::core::v1::ObjectReference, ankka_desired::Event);

impl Events {
    /// Where to offer events, and where they come out.
    pub fn channel() -> (Self, mpsc::Receiver<Notice>) {
        let (sender, receiver) = mpsc::channel(EVENTS);
        (Self(sender), receiver)
    }

    fn offer(&self, service: &AnkkaService, old: Option<&AnkkaServiceStatus>, new: &AnkkaServiceStatus) {
        if let Some(event) = event(old, new)
            && self.0.try_send((service.object_ref(&()), event)).is_err()
        {
            tracing::debug!(service = service.name_any(), "too many events, one is dropped");
        }
    }
}

/// Publishes events one after the other until nobody can offer any. One recorder for all: it folds repetitions. What has
/// to be done comes before what is told about it: while passes are due in `queue`, events wait.
pub async fn publish(
    client: Client,
    pod: String,
    queue: Arc<Queue<Key>>,
    mut notices: mpsc::Receiver<Notice>,
) -> anyhow::Result<()> {
    let recorder = Recorder::new(client, Reporter { controller: MANAGER.to_owned(), instance: Some(pod) });
    while let Some((about, event)) = notices.recv().await {
        let begun = Instant::now();
        while queue.is_busy() && begun.elapsed() < YIELD {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let event = Event {
            type_: match event.type_ {
                EventType::Normal => Kind::Normal,
                EventType::Warning => Kind::Warning,
            },
            reason: event.reason.to_owned(),
            note: Some(event.note),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        match tokio::time::timeout(TELLING, recorder.publish(&event, &about)).await {
            Ok(Ok(())) => {}
            // In a namespace that is being deleted no event can be made; nothing depends on them.
            Ok(Err(error)) => tracing::debug!(name = about.name, %error, "an event was not published"),
            Err(_) => tracing::debug!(name = about.name, "an event was not published in time"),
        }
    }
    anyhow::bail!("nobody offers events any more")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(lifecycle: &str, ready: i64) -> AnkkaServiceStatus {
        AnkkaServiceStatus {
            lifecycle: Some(lifecycle.to_owned()),
            ready_instances: ready,
            desired_instances: 3,
            ..AnkkaServiceStatus::default()
        }
    }

    #[test]
    fn only_the_number_of_ready_instances_is_a_small_change() {
        assert!(only_counts(&status("UpdateInProgress", 0), &status("UpdateInProgress", 1)));
        assert!(!only_counts(&status("UpdateInProgress", 0), &status("Ready", 3)));
        let told = AnkkaServiceStatus { detail: Some("x".to_owned()), ..status("UpdateInProgress", 0) };
        assert!(!only_counts(&status("UpdateInProgress", 0), &told));
    }

    #[test]
    fn the_present_is_written_in_whole_seconds() {
        let now = now();
        assert!(now.len() == 20 && now.ends_with('Z') && now.parse::<Timestamp>().is_ok(), "{now}");
    }
}
