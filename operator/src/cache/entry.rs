//! What is known about one service.

use std::{collections::BTreeMap, sync::Arc};

use ankka_crds::{AnkkaDatabase, AnkkaService, labels, problem, resources::NOT_OBSERVED};
use ankka_desired::{ChildKind, DatabaseState, PodState, RouteState, Seen, WorkloadState, revisions::RevisionSeen};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DeserializeGuard, error_boundary::InvalidObject};
use tokio::time::Instant;

use super::{
    compact::{StoredChild, StoredRevision},
    versioned::{Slot, Source, Stream, Versioned},
};

/// An AnkkaService as it is kept: as JSON, which takes a third of what the typed object takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredService {
    /// It can be decoded.
    Readable(Arc<[u8]>),
    /// It is stored in a form that this version does not understand.
    Unreadable(Arc<Unreadable>),
}

/// A stored service that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Why, without the value that was found.
    pub error: String,
    /// It is being deleted.
    pub terminating: bool,
}

/// Annotations that may be large and that no decision needs.
const UNNEEDED: [&str; 2] = [labels::CHANGES, "kubectl.kubernetes.io/last-applied-configuration"];

impl StoredService {
    /// Keeps what decisions need.
    pub fn new(mut service: AnkkaService) -> Self {
        service.metadata.managed_fields = None;
        // What the schema fills in is no status: nobody has looked at this service.
        service.status = service.status.filter(|status| status.observed_generation != Some(NOT_OBSERVED));
        if let Some(annotations) = &mut service.metadata.annotations {
            annotations.retain(|key, _| !UNNEEDED.contains(&key.as_str()));
        }
        match serde_json::to_vec(&service) {
            Ok(json) => Self::Readable(json.into()),
            Err(error) => Self::unreadable(&service.metadata, &error.to_string()),
        }
    }

    /// Keeps why it cannot be decoded.
    pub fn invalid(object: &InvalidObject) -> Self {
        Self::unreadable(&object.metadata, &object.error)
    }

    fn unreadable(metadata: &ObjectMeta, error: &str) -> Self {
        let terminating = metadata.deletion_timestamp.is_some();
        Self::Unreadable(Arc::new(Unreadable { error: why_unreadable(error), terminating }))
    }

    /// The service, or why it cannot be decoded.
    pub fn decode(&self) -> Result<AnkkaService, Arc<Unreadable>> {
        match self {
            Self::Readable(json) => serde_json::from_slice(json).map_err(|error| {
                Arc::new(Unreadable { error: why_unreadable(&error.to_string()), terminating: false })
            }),
            Self::Unreadable(unreadable) => Err(unreadable.clone()),
        }
    }
}

/// Why an object cannot be decoded, without the value that was found: it may be a secret one, and this is shown.
pub(crate) fn why_unreadable(error: &str) -> String {
    problem::expected(error).map_or_else(
        || "a field cannot be decoded".to_owned(),
        |expected| format!("a value is of the wrong type, expected {expected}"),
    )
}

/// What is kept of a database. One that cannot be decoded is there all the same, and nobody's login.
pub(crate) fn database_progress(database: DeserializeGuard<AnkkaDatabase>) -> (ObjectMeta, Progress) {
    match database.0 {
        Ok(database) => {
            let progress = Progress::Database(DatabaseState::of(&database));
            (database.metadata, progress)
        }
        Err(invalid) => {
            let detail = format!("the stored AnkkaDatabase cannot be read ({})", why_unreadable(&invalid.error));
            let state = DatabaseState { detail: Some(detail), ..DatabaseState::default() };
            (invalid.metadata, Progress::Database(state))
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) service: Slot<StoredService>,
    pub(super) held: Option<Instant>,
    children: [Slot<StoredChild>; ChildKind::all().len()],
    workload: Option<WorkloadState>,
    route: Option<Box<RouteState>>,
    database: Option<Box<DatabaseState>>,
    pods: Vec<Slot<PodState>>,
    revisions: Vec<Slot<StoredRevision>>,
}

/// What is known of a child beside its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing.
    None,
    /// Of a Deployment.
    Workload(WorkloadState),
    /// Of an HTTPRoute.
    Route(RouteState),
    /// Of an AnkkaDatabase.
    Database(DatabaseState),
}

impl Entry {
    pub(super) fn is_empty(&self) -> bool {
        self.service.value().is_none()
            && self.pods.is_empty()
            && self.revisions.is_empty()
            && self.children.iter().all(|child| child.value().is_none())
    }

    pub(super) fn children(&self, service: &str) -> (BTreeMap<ChildKind, Seen>, Vec<ChildKind>) {
        let seen = |kind: &ChildKind| Some((*kind, self.children[*kind as usize].value()?.seen(service)));
        let probed = |kind: &ChildKind| self.children[*kind as usize].is_probed();
        (ChildKind::all().iter().filter_map(seen).collect(), ChildKind::all().into_iter().filter(probed).collect())
    }

    /// Whether its instances are being replaced, by ones with this sidecar if one is named.
    pub(super) fn is_rolling(&self, sidecar: Option<&str>) -> bool {
        let rolling = self.workload.as_ref().filter(|workload| workload.is_rolling());
        rolling.is_some_and(|workload| sidecar.is_none() || workload.sidecar.as_deref() == sidecar)
    }

    pub(super) fn workload(&self) -> Option<WorkloadState> {
        self.workload.clone()
    }

    pub(super) fn route(&self) -> Option<RouteState> {
        self.route.as_deref().cloned()
    }

    pub(super) fn database(&self) -> Option<DatabaseState> {
        self.database.as_deref().cloned()
    }

    pub(super) fn pods(&self) -> Vec<PodState> {
        self.pods.iter().filter_map(|pod| pod.value().cloned()).collect()
    }

    /// What is kept of its descriptors, and the names of those that no watch tells about.
    pub(super) fn revisions(&self, service: &str) -> (Vec<RevisionSeen>, Vec<String>) {
        let probed = self.revisions.iter().filter(|slot| slot.is_probed()).filter_map(Slot::value);
        (
            self.revisions.iter().filter_map(|slot| Some(slot.value()?.seen(service))).collect(),
            probed.map(|stored| stored.seen(service).name).collect(),
        )
    }

    pub(super) fn put_child(
        &mut self,
        kind: ChildKind,
        child: Versioned<StoredChild>,
        progress: Progress,
        source: Source,
    ) -> bool {
        let slot = &mut self.children[kind as usize];
        if !slot.accepts(&child, source) {
            return false;
        }
        let changed = slot.put(child, source);
        let differs = match progress {
            Progress::None => false,
            Progress::Workload(workload) => self.workload.replace(workload) != self.workload,
            Progress::Route(route) => self.route.replace(Box::new(route)) != self.route,
            Progress::Database(database) => self.database.replace(Box::new(database)) != self.database,
        };
        changed || differs
    }

    pub(super) fn remove_child(&mut self, kind: ChildKind, version: u64) -> bool {
        let removed = self.children[kind as usize].remove(version);
        if removed {
            self.forget(kind);
        }
        removed
    }

    pub(super) fn put_pod(&mut self, pod: Versioned<PodState>, source: Source) -> bool {
        put(&mut self.pods, |known, new| known.name == new.name, pod, source)
    }

    pub(super) fn remove_pod(&mut self, name: &str, version: u64) -> bool {
        remove(&mut self.pods, |pod| pod.name == name, version)
    }

    /// Its ControllerRevision as it is kept; none when the name is none of `service`'s.
    pub(super) fn compact(&self, revision: &RevisionSeen, service: &str) -> Option<StoredRevision> {
        StoredRevision::new(revision, service, self.revisions.iter().filter_map(Slot::value))
    }

    pub(super) fn put_revision(&mut self, revision: Versioned<StoredRevision>, source: Source) -> bool {
        put(&mut self.revisions, StoredRevision::is_same, revision, source)
    }

    pub(super) fn remove_revision(&mut self, name: &str, version: u64) -> bool {
        remove(&mut self.revisions, |revision| revision.is_named(name), version)
    }

    /// Drops what the listing `epoch` of `stream` does not have. True when something was dropped.
    pub(super) fn drop_older(&mut self, stream: Stream, epoch: u8) -> bool {
        match stream {
            Stream::Services => self.service.drop_older(epoch),
            Stream::Pods => drop_older(&mut self.pods, epoch),
            Stream::Revisions => drop_older(&mut self.revisions, epoch),
            Stream::Child(kind) => {
                let dropped = self.children[kind as usize].drop_older(epoch);
                if dropped {
                    self.forget(kind);
                }
                dropped
            }
            Stream::Projects | Stream::Namespaces | Stream::Policies => false,
        }
    }

    fn forget(&mut self, kind: ChildKind) {
        match kind {
            ChildKind::Deployment => self.workload = None,
            ChildKind::HttpRoute => self.route = None,
            ChildKind::Database => self.database = None,
            _ => {}
        }
    }
}

/// Takes a new state of one of several objects.
fn put<T: PartialEq>(
    slots: &mut Vec<Slot<T>>,
    is_same: impl Fn(&T, &T) -> bool,
    new: Versioned<T>,
    source: Source,
) -> bool {
    let known = slots.iter_mut().find(|slot| slot.value().is_some_and(|known| is_same(known, &new.value)));
    if let Some(slot) = known {
        return slot.put(new, source);
    }
    let mut slot = Slot::default();
    slot.put(new, source);
    // There are few of them, of very many services: no room is kept for more.
    slots.reserve_exact(1);
    slots.push(slot);
    true
}

/// Forgets one of several objects unless a newer state of it is known.
fn remove<T: PartialEq>(slots: &mut Vec<Slot<T>>, is_it: impl Fn(&T) -> bool, version: u64) -> bool {
    let before = slots.len();
    slots.retain_mut(|slot| !(slot.value().is_some_and(&is_it) && slot.remove(version)));
    slots.len() < before
}

fn drop_older<T: PartialEq>(slots: &mut Vec<Slot<T>>, epoch: u8) -> bool {
    let before = slots.len();
    slots.retain_mut(|slot| !slot.drop_older(epoch));
    slots.len() < before
}
