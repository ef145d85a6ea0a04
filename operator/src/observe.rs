//! Observing: watch streams, projected into the cache, with a pass asked for where something changed.
//!
//! Nothing is kept of an object but its projection, and a listing is taken in page by page, so that memory stays low over
//! thousands of services and over a listing of them all.

use std::{
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use ankka_crds::{AnkkaProject, AnkkaService, labels};
use ankka_desired::{
    ChildKind, PodState, Seen, WorkloadState,
    project::{NamespaceSeen, POLICY},
};
use futures::StreamExt;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace, Pod, Service, ServiceAccount},
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    core::{DeserializeGuard, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use tokio::{
    sync::{Semaphore, SemaphorePermit, watch},
    task::JoinSet,
};

use crate::{
    cache::{Cache, Key, ServiceId, Source, StoredService, Stream, version_of},
    metrics::Metrics,
    queue::Queue,
};

/// How many objects one page of a listing holds: enough to be quick, few enough to be small.
const PAGE: u32 = 50;

/// How many streams may be listing at a time: what is under way of a listing takes more memory than what is kept of it.
const LISTINGS: usize = 1;

/// What observing feeds.
#[derive(Clone, Debug)]
pub struct Observer {
    /// Where projections are kept.
    pub cache: Arc<Cache>,
    /// Where passes are asked for.
    pub queue: Arc<Queue<Key>>,
    /// Where broken watches and unreadable objects are counted.
    pub metrics: Arc<Metrics>,
}

/// Says when every stream has been listed once.
#[derive(Clone, Debug)]
pub struct Synced(watch::Receiver<bool>);

impl Synced {
    /// Whether every stream has been listed once.
    pub fn now(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until every stream has been listed once. False when observing ended before.
    pub async fn wait(&mut self) -> bool {
        self.0.wait_for(|synced| *synced).await.is_ok()
    }
}

/// One kind of object, as one watch delivers it.
trait Projection: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static {
    /// The resource's name in metrics and logs.
    fn resource() -> &'static str;
    /// The stream it belongs to.
    fn stream() -> Stream;
    /// Only objects labelled as ours are watched.
    fn labelled() -> bool {
        true
    }
    /// Takes in one object, and asks for passes where it changed something.
    fn put(self, observer: &Observer, source: Source);
    /// Forgets one object.
    fn remove(self, observer: &Observer);
}

impl Observer {
    /// Starts all streams. None of them ever ends by itself.
    pub fn start(&self, client: &Client, tasks: &mut JoinSet<anyhow::Result<()>>) -> Synced {
        let (sender, receiver) = watch::channel(false);
        let turns =
            Arc::new(Turns { listings: Semaphore::new(LISTINGS), missing: AtomicUsize::new(0), synced: sender });
        let mut run = Starter { observer: self, client, tasks, turns };
        run.start::<AnkkaProjectGuard>();
        run.start::<PartialObjectMeta<Namespace>>();
        run.start::<PartialObjectMeta<NetworkPolicy>>();
        run.start::<AnkkaServiceGuard>();
        run.start::<PartialObjectMeta<ServiceAccount>>();
        run.start::<PartialObjectMeta<Role>>();
        run.start::<PartialObjectMeta<RoleBinding>>();
        run.start::<PartialObjectMeta<ConfigMap>>();
        run.start::<PartialObjectMeta<PodDisruptionBudget>>();
        run.start::<PartialObjectMeta<Service>>();
        run.start::<Deployment>();
        run.start::<Pod>();
        Synced(receiver)
    }

    /// Takes in one event. True when it completes a listing.
    fn take<K: Projection>(&self, event: Event<K>) -> bool {
        match event {
            Event::Init => self.cache.begin(K::stream()),
            Event::InitApply(object) => object.put(self, Source::Listed),
            Event::Apply(object) => object.put(self, Source::Watched),
            Event::Delete(object) => object.remove(self),
            Event::InitDone => {
                self.ask(self.cache.end(K::stream()));
                return true;
            }
        }
        false
    }

    fn ask(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            self.queue.add(key);
        }
    }
}

/// What the streams share.
struct Turns {
    /// Who may be listing.
    listings: Semaphore,
    /// How many streams have not been listed yet.
    missing: AtomicUsize,
    synced: watch::Sender<bool>,
}

struct Starter<'a> {
    observer: &'a Observer,
    client: &'a Client,
    tasks: &'a mut JoinSet<anyhow::Result<()>>,
    turns: Arc<Turns>,
}

impl Starter<'_> {
    fn start<K: Projection>(&mut self) {
        self.turns.missing.fetch_add(1, Ordering::SeqCst);
        self.tasks.spawn(follow::<K>(self.observer.clone(), self.client.clone(), self.turns.clone()));
    }
}

async fn follow<K: Projection>(observer: Observer, client: Client, turns: Arc<Turns>) -> anyhow::Result<()> {
    let mut config = watcher::Config::default().page_size(PAGE);
    if K::labelled() {
        config = config.labels(&format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_VALUE));
    }
    let mut events = watcher(Api::<K>::all(client), config).default_backoff().boxed();
    let mut listed = false;
    let mut turn: Option<SemaphorePermit<'_>> = None;
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                if matches!(event, Event::Init) {
                    // The first page is asked for when the stream is polled again.
                    turn = Some(turns.listings.acquire().await?);
                }
                let complete = observer.take(event);
                if complete {
                    drop(turn.take());
                    if !std::mem::replace(&mut listed, true) && turns.missing.fetch_sub(1, Ordering::SeqCst) == 1 {
                        turns.synced.send_replace(true);
                    }
                }
            }
            Err(error) => {
                drop(turn.take());
                observer.metrics.watch_broke(K::resource());
                tracing::warn!(resource = K::resource(), %error, "watch broke, taking it up again");
            }
        }
    }
    anyhow::bail!("the watch of {} ended", K::resource())
}

type AnkkaServiceGuard = DeserializeGuard<AnkkaService>;
type AnkkaProjectGuard = DeserializeGuard<AnkkaProject>;

impl Projection for AnkkaServiceGuard {
    fn resource() -> &'static str {
        "ankkaservices"
    }

    fn stream() -> Stream {
        Stream::Services
    }

    fn labelled() -> bool {
        false
    }

    fn put(self, observer: &Observer, source: Source) {
        let id = service_id(self.meta().namespace.as_deref(), &self.name_any());
        let version = version_of(self.meta());
        let stored = match self.0 {
            Ok(service) => StoredService::new(service),
            Err(invalid) => {
                observer.metrics.found_unreadable();
                tracing::error!(namespace = %id.namespace, service = %id.name, error = %invalid, "stored service cannot be read");
                StoredService::invalid(invalid)
            }
        };
        if observer.cache.put_service(&id, version, stored, source) {
            observer.queue.add(Key::Service(id));
        }
    }

    fn remove(self, observer: &Observer) {
        let id = service_id(self.meta().namespace.as_deref(), &self.name_any());
        if observer.cache.remove_service(&id, version_of(self.meta())) {
            observer.queue.add(Key::Service(id));
        }
    }
}

impl Projection for AnkkaProjectGuard {
    fn resource() -> &'static str {
        "ankkaprojects"
    }

    fn stream() -> Stream {
        Stream::Projects
    }

    fn labelled() -> bool {
        false
    }

    fn put(self, observer: &Observer, source: Source) {
        let version = version_of(self.meta());
        let mut project = match self.0 {
            Ok(project) => project,
            Err(invalid) => {
                observer.metrics.found_unreadable();
                tracing::error!(project = invalid.metadata.name, error = %invalid, "stored project cannot be read");
                return;
            }
        };
        project.metadata.managed_fields = None;
        let name = project.name_any();
        if observer.cache.put_project(version, project, source) {
            observer.ask(observer.cache.keys_of_project(&name));
        }
    }

    fn remove(self, observer: &Observer) {
        let name = self.name_any();
        if observer.cache.remove_project(&name, version_of(self.meta())) {
            observer.ask(observer.cache.keys_of_project(&name));
        }
    }
}

impl Projection for PartialObjectMeta<Namespace> {
    fn resource() -> &'static str {
        "namespaces"
    }

    fn stream() -> Stream {
        Stream::Namespaces
    }

    fn put(self, observer: &Observer, source: Source) {
        let (name, version) = (self.name_any(), version_of(&self.metadata));
        if observer.cache.put_namespace(&name, version, NamespaceSeen::of(&self.metadata), source) {
            observer.ask(observer.cache.keys_in(&name));
        }
    }

    fn remove(self, observer: &Observer) {
        let name = self.name_any();
        let keys = observer.cache.keys_in(&name);
        if observer.cache.remove_namespace(&name, version_of(&self.metadata)) {
            observer.ask(keys);
        }
    }
}

impl Projection for PartialObjectMeta<NetworkPolicy> {
    fn resource() -> &'static str {
        "networkpolicies"
    }

    fn stream() -> Stream {
        Stream::Policies
    }

    fn put(self, observer: &Observer, source: Source) {
        let Some(namespace) = policy_of(&self) else { return };
        let (version, seen) = (version_of(&self.metadata), Seen::of(&self.metadata));
        if observer.cache.put_policy(namespace, version, seen, source) {
            observer.ask(projects_in(observer, namespace));
        }
    }

    fn remove(self, observer: &Observer) {
        let Some(namespace) = policy_of(&self) else { return };
        let keys = projects_in(observer, namespace);
        if observer.cache.remove_policy(namespace, version_of(&self.metadata)) {
            observer.ask(keys);
        }
    }
}

/// The namespace, when this is the policy of a project's.
fn policy_of(policy: &PartialObjectMeta<NetworkPolicy>) -> Option<&str> {
    let named = policy.metadata.name.as_deref() == Some(POLICY);
    policy.metadata.namespace.as_deref().filter(|_| named)
}

fn projects_in(observer: &Observer, namespace: &str) -> Vec<Key> {
    let mut keys = observer.cache.keys_in(namespace);
    keys.retain(|key| matches!(key, Key::Project(_)));
    keys
}

macro_rules! child {
    ($object:ty, $kind:ident, $workload:expr) => {
        impl Projection for $object {
            fn resource() -> &'static str {
                ChildKind::$kind.plural()
            }

            fn stream() -> Stream {
                Stream::Child(ChildKind::$kind)
            }

            fn put(self, observer: &Observer, source: Source) {
                let workload: fn(&Self) -> Option<WorkloadState> = $workload;
                let Some(id) = parent(ChildKind::$kind, &self) else { return };
                let (version, seen) = (version_of(self.meta()), Seen::of(self.meta()));
                if observer.cache.put_child(&id, ChildKind::$kind, version, seen, workload(&self), source) {
                    observer.queue.add(Key::Service(id));
                }
            }

            fn remove(self, observer: &Observer) {
                let Some(id) = parent(ChildKind::$kind, &self) else { return };
                if observer.cache.remove_child(&id, ChildKind::$kind, version_of(self.meta())) {
                    observer.queue.add(Key::Service(id));
                }
            }
        }
    };
}

child!(PartialObjectMeta<ServiceAccount>, ServiceAccount, |_| None);
child!(PartialObjectMeta<Role>, Role, |_| None);
child!(PartialObjectMeta<RoleBinding>, RoleBinding, |_| None);
child!(PartialObjectMeta<ConfigMap>, ConfigMap, |_| None);
child!(PartialObjectMeta<PodDisruptionBudget>, PodDisruptionBudget, |_| None);
child!(PartialObjectMeta<Service>, Service, |_| None);
child!(Deployment, Deployment, |deployment| Some(WorkloadState::of(deployment)));

impl Projection for Pod {
    fn resource() -> &'static str {
        "pods"
    }

    fn stream() -> Stream {
        Stream::Pods
    }

    fn put(self, observer: &Observer, source: Source) {
        let Some(id) = instance_of(&self) else { return };
        if observer.cache.put_pod(&id, version_of(&self.metadata), PodState::of(&self), source) {
            observer.queue.add(Key::Service(id));
        }
    }

    fn remove(self, observer: &Observer) {
        let Some(id) = instance_of(&self) else { return };
        if observer.cache.remove_pod(&id, &self.name_any(), version_of(&self.metadata)) {
            observer.queue.add(Key::Service(id));
        }
    }
}

/// The service whose child an object is by its kind and name, whoever owns it.
fn parent(kind: ChildKind, object: &impl Resource) -> Option<ServiceId> {
    let name = object.name_any();
    Some(service_id(object.meta().namespace.as_deref(), kind.service_of(&name)?))
}

/// The service a pod is an instance of: by its label, and because a ReplicaSet made it.
fn instance_of(pod: &Pod) -> Option<ServiceId> {
    let service = pod.labels().get(labels::SERVICE)?;
    let owned = pod.owner_references().iter().any(|owner| owner.kind == "ReplicaSet" && owner.controller == Some(true));
    owned.then(|| service_id(pod.metadata.namespace.as_deref(), service))
}

fn service_id(namespace: Option<&str>, name: &str) -> ServiceId {
    ServiceId::new(namespace.unwrap_or_default(), name)
}
