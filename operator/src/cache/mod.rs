//! What was observed, as projections: not whole objects, but what decisions rest on.
//!
//! Fed by watch streams and by our own writes. Of two states of an object the one with the higher resourceVersion is
//! kept, so a watch event that was under way cannot undo what the answer to our own write has said. What a new listing
//! does not contain is dropped: were it dropped wrongly, creating it again would be answered with 409, and be found ours.

mod compact;
mod entry;
mod hosts;
mod population;
mod rollouts;
mod versioned;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ankka_crds::{AnkkaProject, names};
use ankka_desired::{
    ChildKind, Claim, DatabaseState, PodState, ProjectFacts, RouteState, Seen, WorkloadState,
    project::{Kind, NamespaceSeen},
    revisions::RevisionSeen,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use tokio::time::Instant;

pub use self::entry::{Progress, StoredService, Unreadable};
pub(crate) use self::entry::{database_progress, why_unreadable};
pub use self::population::{Lifecycles, Population};
pub use self::versioned::{Source, Stream};
use self::{
    compact::{Sets, StoredChild},
    entry::Entry,
    versioned::{Epochs, Slot, Versioned},
};

/// The RoleBindings of administrators come with those of services.
const ADMINISTRATORS: Stream = Stream::Child(ChildKind::RoleBinding);

/// One service.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceId {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl ServiceId {
    /// The service `name` in `namespace`.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// What passes are about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A service.
    Service(ServiceId),
    /// A project, by its id.
    Project(Arc<str>),
}

/// Everything known about one service.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The service as stored.
    pub service: StoredService,
    /// Objects with the names of its children.
    pub children: BTreeMap<ChildKind, Seen>,
    /// Those of them that no watch tells about: they must be looked at again before they are judged.
    pub probed: Vec<ChildKind>,
    /// How its Deployment is doing.
    pub workload: Option<WorkloadState>,
    /// How its route is doing.
    pub route: Option<RouteState>,
    /// Whether the cluster knows routes.
    pub routes_served: bool,
    /// What other services claim its host name.
    pub rivals: Vec<Claim>,
    /// How far its database is.
    pub database: Option<DatabaseState>,
    /// Its pods.
    pub pods: Vec<PodState>,
    /// What is kept of its descriptors.
    pub revisions: Vec<RevisionSeen>,
    /// Names of those of them that no watch tells about.
    pub probed_revisions: Vec<String>,
    /// The project whose namespace it is in.
    pub project: Option<ProjectFacts>,
    /// Since when a small change of its status has been held back.
    pub held: Option<Instant>,
}

/// Everything known about one project.
#[derive(Clone, Debug)]
pub struct ProjectSnapshot {
    /// The project as stored.
    pub project: Arc<AnkkaProject>,
    /// The object that has the name of its namespace.
    pub namespace: Option<NamespaceSeen>,
    /// The object that has the name of its NetworkPolicy.
    pub policy: Option<Seen>,
    /// The object that has the name of its administrators' RoleBinding.
    pub administrators: Option<Seen>,
    /// Those of them that no watch tells about.
    pub probed: Vec<Kind>,
}

/// The projections of everything that is watched.
#[derive(Debug)]
pub struct Cache {
    prefix: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    namespaces: HashMap<Arc<str>, Namespace>,
    projects: HashMap<Arc<str>, Slot<Arc<AnkkaProject>>>,
    epochs: Epochs,
    sets: Sets,
    routes_served: bool,
}

#[derive(Debug, Default)]
struct Namespace {
    seen: Slot<NamespaceSeen>,
    policy: Slot<Seen>,
    administrators: Slot<Seen>,
    services: HashMap<Arc<str>, Box<Entry>>,
}

impl Cache {
    /// An empty cache. `prefix` is the one of project namespaces.
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), state: Mutex::default() }
    }

    /// A listing begins: what it does not contain is dropped by [`Self::end`].
    pub fn begin(&self, stream: Stream) {
        self.lock().epochs.begin(stream);
    }

    /// A listing is complete. Returns what has vanished since the one before, and what rested on it.
    pub fn end(&self, stream: Stream) -> Vec<Key> {
        let mut state = self.lock();
        let epoch = state.epochs.current(stream);
        let mut gone = Vec::new();
        if stream == Stream::Projects {
            let State { projects, namespaces, .. } = &mut *state;
            projects.retain(|id, slot| {
                let kept = !slot.drop_older(epoch);
                if !kept {
                    gone.push(Key::Project(id.clone()));
                    let namespace = namespaces.get_key_value(names::namespace(&self.prefix, id).as_str());
                    gone.extend(namespace.into_iter().flat_map(|(name, content)| content.service_keys(name)));
                }
                kept
            });
        }
        for (namespace, content) in &mut state.namespaces {
            match stream {
                Stream::Namespaces if content.seen.drop_older(epoch) => {
                    gone.extend(content.keys(namespace, &self.prefix));
                }
                Stream::Policies if content.policy.drop_older(epoch) => {
                    gone.extend(project_key(namespace, &self.prefix));
                }
                _ => {
                    if stream == ADMINISTRATORS && content.administrators.drop_older(epoch) {
                        gone.extend(project_key(namespace, &self.prefix));
                    }
                    for (name, entry) in &mut content.services {
                        if entry.drop_older(stream, epoch) {
                            gone.push(Key::Service(ServiceId { namespace: namespace.clone(), name: name.clone() }));
                        }
                    }
                    content.services.retain(|_, entry| !entry.is_empty());
                }
            }
        }
        state.namespaces.retain(|_, content| !content.is_empty());
        gone
    }

    /// Stores a service. True when it differs from what was known.
    pub fn put_service(&self, id: &ServiceId, version: u64, service: StoredService, source: Source) -> bool {
        let mut state = self.lock();
        let epoch = state.epochs.mark(Stream::Services, source);
        state.entry(id).service.put(Versioned::new(version, epoch, service), source)
    }

    /// Stores what has the name of a service's child. True when it differs from what was known.
    pub fn put_child(
        &self,
        id: &ServiceId,
        kind: ChildKind,
        version: u64,
        seen: Seen,
        progress: Progress,
        source: Source,
    ) -> bool {
        let mut state = self.lock();
        let epoch = state.epochs.mark(Stream::Child(kind), source);
        let own = state.sets.share(kind, &seen.own);
        let stored = StoredChild::new(seen, &id.name, own);
        state.entry(id).put_child(kind, Versioned::new(version, epoch, stored), progress, source)
    }

    /// Stores a pod. True when it differs from what was known.
    pub fn put_pod(&self, id: &ServiceId, version: u64, pod: PodState, source: Source) -> bool {
        let mut state = self.lock();
        let epoch = state.epochs.mark(Stream::Pods, source);
        state.entry(id).put_pod(Versioned::new(version, epoch, pod), source)
    }

    /// Stores what has the name of one of a service's ControllerRevisions. True when it differs from what was known.
    pub fn put_revision(&self, id: &ServiceId, version: u64, revision: &RevisionSeen, source: Source) -> bool {
        let mut state = self.lock();
        let epoch = state.epochs.mark(Stream::Revisions, source);
        let entry = state.entry(id);
        let stored = entry.compact(revision, &id.name);
        stored.is_some_and(|stored| entry.put_revision(Versioned::new(version, epoch, stored), source))
    }

    /// Stores a project. True when it differs from what was known.
    pub fn put_project(&self, version: u64, project: AnkkaProject, source: Source) -> bool {
        let mut state = self.lock();
        let epoch = state.epochs.mark(Stream::Projects, source);
        let id = project.name_any().into();
        state.projects.entry(id).or_default().put(Versioned::new(version, epoch, Arc::new(project)), source)
    }

    /// Stores a namespace. True when it differs from what was known.
    pub fn put_namespace(&self, name: &str, version: u64, seen: NamespaceSeen, source: Source) -> bool {
        let mut state = self.lock();
        let epoch = state.epochs.mark(Stream::Namespaces, source);
        state.namespace(&name.into()).seen.put(Versioned::new(version, epoch, seen), source)
    }

    /// Stores the NetworkPolicy that has the name of a project's. True when it differs from what was known.
    pub fn put_policy(&self, namespace: &str, version: u64, seen: Seen, source: Source) -> bool {
        let mut state = self.lock();
        let epoch = state.epochs.mark(Stream::Policies, source);
        state.namespace(&namespace.into()).policy.put(Versioned::new(version, epoch, seen), source)
    }

    /// Stores the RoleBinding that has the name of a project's administrators'. True when it differs from what was known.
    pub fn put_administrators(&self, namespace: &str, version: u64, seen: Seen, source: Source) -> bool {
        let mut state = self.lock();
        let epoch = state.epochs.mark(ADMINISTRATORS, source);
        state.namespace(&namespace.into()).administrators.put(Versioned::new(version, epoch, seen), source)
    }

    /// Forgets a service unless a newer state of it is known. True when it was known.
    pub fn remove_service(&self, id: &ServiceId, version: u64) -> bool {
        self.with_entry(id, |entry| entry.service.remove(version))
    }

    /// Forgets a child unless a newer state of it is known. True when it was known.
    pub fn remove_child(&self, id: &ServiceId, kind: ChildKind, version: u64) -> bool {
        self.with_entry(id, |entry| entry.remove_child(kind, version))
    }

    /// Forgets a pod. True when it was known.
    pub fn remove_pod(&self, id: &ServiceId, name: &str, version: u64) -> bool {
        self.with_entry(id, |entry| entry.remove_pod(name, version))
    }

    /// Forgets a ControllerRevision. True when it was known.
    pub fn remove_revision(&self, id: &ServiceId, name: &str, version: u64) -> bool {
        self.with_entry(id, |entry| entry.remove_revision(name, version))
    }

    /// Forgets a project. True when it was known.
    pub fn remove_project(&self, id: &str, version: u64) -> bool {
        let mut state = self.lock();
        let removed = state.projects.get_mut(id).is_some_and(|slot| slot.remove(version));
        if removed {
            state.projects.remove(id);
        }
        removed
    }

    /// Forgets a namespace, or one that is no longer labelled as ours. True when it was known.
    pub fn remove_namespace(&self, name: &str, version: u64) -> bool {
        let mut state = self.lock();
        let removed = state.namespaces.get_mut(name).is_some_and(|content| content.seen.remove(version));
        state.tidy(name);
        removed
    }

    /// Forgets a project's NetworkPolicy. True when it was known.
    pub fn remove_policy(&self, namespace: &str, version: u64) -> bool {
        let mut state = self.lock();
        let removed = state.namespaces.get_mut(namespace).is_some_and(|content| content.policy.remove(version));
        state.tidy(namespace);
        removed
    }

    /// Forgets the RoleBinding of a project's administrators. True when it was known.
    pub fn remove_administrators(&self, namespace: &str, version: u64) -> bool {
        let mut state = self.lock();
        let removed = state.namespaces.get_mut(namespace).is_some_and(|content| content.administrators.remove(version));
        state.tidy(namespace);
        removed
    }

    /// Notes since when a small change of a service's status is held back, or that none is.
    pub fn hold(&self, id: &ServiceId, since: Option<Instant>) {
        self.with_entry(id, |entry| {
            entry.held = since;
            false
        });
    }

    /// Everything known about a service; none when it is gone.
    pub fn service(&self, id: &ServiceId) -> Option<Snapshot> {
        let state = self.lock();
        let entry = state.namespaces.get(&id.namespace)?.services.get(&id.name)?;
        let service = entry.service.value()?.clone();
        let (children, probed) = entry.children(&id.name);
        let (revisions, probed_revisions) = entry.revisions(&id.name);
        Some(Snapshot {
            service,
            children,
            probed,
            workload: entry.workload(),
            route: entry.route(),
            routes_served: state.routes_served,
            rivals: state.claims_beside(id, &self.prefix),
            database: entry.database(),
            pods: entry.pods(),
            revisions,
            probed_revisions,
            project: state.project_facts(&id.namespace, &self.prefix),
            held: entry.held,
        })
    }

    /// Everything known about a project; none when it is gone.
    pub fn project(&self, id: &str) -> Option<ProjectSnapshot> {
        let state = self.lock();
        let project = state.projects.get(id)?.value()?.clone();
        let namespace = state.namespaces.get(names::namespace(&self.prefix, id).as_str());
        let probed = namespace.map(|content| {
            let probed = [
                (Kind::Namespace, content.seen.is_probed()),
                (Kind::NetworkPolicy, content.policy.is_probed()),
                (Kind::Administrators, content.administrators.is_probed()),
            ];
            probed.into_iter().filter_map(|(kind, probed)| probed.then_some(kind)).collect()
        });
        Some(ProjectSnapshot {
            project,
            namespace: namespace.and_then(|content| content.seen.value().cloned()),
            policy: namespace.and_then(|content| content.policy.value().cloned()),
            administrators: namespace.and_then(|content| content.administrators.value().cloned()),
            probed: probed.unwrap_or_default(),
        })
    }

    /// All services and projects.
    pub fn keys(&self) -> Vec<Key> {
        let state = self.lock();
        let projects = state.projects.keys().cloned().map(Key::Project);
        let services = state.namespaces.iter().flat_map(|(namespace, content)| content.service_keys(namespace));
        projects.chain(services).collect()
    }

    /// A namespace's project and services.
    pub fn keys_in(&self, namespace: &str) -> Vec<Key> {
        let state = self.lock();
        let known = state.namespaces.get_key_value(namespace);
        known.map_or_else(Vec::new, |(name, content)| content.keys(name, &self.prefix).collect())
    }

    /// A project, and the services in its namespace.
    pub fn keys_of_project(&self, id: &str) -> Vec<Key> {
        let mut keys = self.keys_in(&names::namespace(&self.prefix, id));
        keys.retain(|key| matches!(key, Key::Service(_)));
        keys.push(Key::Project(id.into()));
        keys
    }

    /// How many services are known.
    pub fn services(&self) -> usize {
        self.lock().namespaces.values().map(|content| content.services.len()).sum()
    }

    fn with_entry(&self, id: &ServiceId, change: impl FnOnce(&mut Entry) -> bool) -> bool {
        let mut state = self.lock();
        let Some(content) = state.namespaces.get_mut(&id.namespace) else { return false };
        let Some(entry) = content.services.get_mut(&id.name) else { return false };
        let changed = change(entry);
        if entry.is_empty() {
            content.services.remove(&id.name);
            state.tidy(&id.namespace);
        }
        changed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn namespace(&mut self, name: &Arc<str>) -> &mut Namespace {
        self.namespaces.entry(name.clone()).or_default()
    }

    fn entry(&mut self, id: &ServiceId) -> &mut Entry {
        self.namespace(&id.namespace).services.entry(id.name.clone()).or_default()
    }

    fn tidy(&mut self, namespace: &str) {
        if self.namespaces.get(namespace).is_some_and(Namespace::is_empty) {
            self.namespaces.remove(namespace);
        }
    }

    fn project_facts(&self, namespace: &str, prefix: &str) -> Option<ProjectFacts> {
        let id = names::project_of(prefix, namespace)?;
        let project = self.projects.get(id)?.value()?;
        let seen = self.namespaces.get(namespace)?.seen.value().filter(|seen| seen.is_of(id))?;
        Some(ProjectFacts {
            image_pull_secrets: project.spec.image_pull_secrets.clone(),
            terminating: seen.terminating,
        })
    }
}

impl Namespace {
    fn is_empty(&self) -> bool {
        self.seen.value().is_none()
            && self.policy.value().is_none()
            && self.administrators.value().is_none()
            && self.services.is_empty()
    }

    fn service_keys(&self, namespace: &Arc<str>) -> impl Iterator<Item = Key> {
        let with_service = self.services.iter().filter(|(_, entry)| entry.service.value().is_some());
        with_service.map(|(name, _)| Key::Service(ServiceId { namespace: namespace.clone(), name: name.clone() }))
    }

    fn keys(&self, namespace: &Arc<str>, prefix: &str) -> impl Iterator<Item = Key> {
        self.service_keys(namespace).chain(project_key(namespace, prefix))
    }
}

fn project_key(namespace: &str, prefix: &str) -> Option<Key> {
    names::project_of(prefix, namespace).map(|id| Key::Project(id.into()))
}

/// The resourceVersion as a number: newer states of one resource have higher ones. Zero when it is none.
pub fn version_of(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
