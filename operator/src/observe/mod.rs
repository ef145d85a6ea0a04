//! Observing: watch streams, projected into the cache, with a pass asked for where something changed.
//!
//! Nothing is kept of an object but its projection, and a listing is taken in page by page, so that memory stays low over
//! thousands of services and over a listing of them all.

mod gateway;
mod projections;

use std::{
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ankka_crds::labels;
use ankka_desired::ChildKind;
use ankka_runtime::synced::Synced;
use futures::StreamExt;
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, Deployment},
    core::v1::{ConfigMap, Namespace, Pod, Service, ServiceAccount},
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client, Resource,
    core::PartialObjectMeta,
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

use self::projections::{AnkkaDatabaseGuard, AnkkaProjectGuard, AnkkaServiceGuard};
use crate::{
    cache::{Cache, Key, ServiceId, Source, Stream},
    metrics::Metrics,
    queue::Queue,
};

/// How many objects one page of a listing holds: enough to be quick, few enough to be small.
const PAGE: u32 = 50;

/// How many streams may be listing at a time: what is under way of a listing takes more memory than what is kept of it.
const LISTINGS: usize = 1;

/// How long a listing may stand still before it is begun again: nothing else notices a connection that died under it.
const STALL: Duration = Duration::from_mins(1);

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
    /// A listing of the kind is complete.
    fn listed(_observer: &Observer) {}
}

impl Observer {
    /// Starts all streams. None of them ever ends by itself.
    pub fn start(&self, client: &Client, tasks: &mut JoinSet<anyhow::Result<()>>) -> Synced {
        let (sender, synced) = Synced::channel();
        let turns =
            Arc::new(Turns { listings: Semaphore::new(LISTINGS), missing: AtomicUsize::new(0), synced: sender });
        let mut run = Starter { observer: self, client, tasks, turns };
        run.start::<AnkkaProjectGuard>();
        run.start::<PartialObjectMeta<Namespace>>();
        run.start::<PartialObjectMeta<NetworkPolicy>>();
        run.start::<AnkkaServiceGuard>();
        run.start::<AnkkaDatabaseGuard>();
        run.start::<PartialObjectMeta<ServiceAccount>>();
        run.start::<PartialObjectMeta<Role>>();
        run.start::<PartialObjectMeta<RoleBinding>>();
        run.start::<PartialObjectMeta<ConfigMap>>();
        run.start::<PartialObjectMeta<PodDisruptionBudget>>();
        run.start::<PartialObjectMeta<Service>>();
        run.start::<Deployment>();
        run.start::<Pod>();
        run.start::<PartialObjectMeta<ControllerRevision>>();
        run.start_routes();
        synced
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
                K::listed(self);
                return true;
            }
        }
        false
    }

    /// Asks for passes over the services whose own route depends on this one's.
    fn ask_rivals(&self, id: &ServiceId, kind: ChildKind) {
        if kind == ChildKind::HttpRoute {
            self.ask(self.cache.rivals(id));
        }
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
        let (observer, client, arrival) = (self.observer.clone(), self.client.clone(), self.arrival());
        self.tasks.spawn(async move {
            let mut arrival = arrival;
            follow::<K>(&observer, &client, &mut arrival, |_| false).await?;
            anyhow::bail!("the watch of {} ended", K::resource())
        });
    }

    fn start_routes(&mut self) {
        self.tasks.spawn(gateway::follow(self.observer.clone(), self.client.clone(), self.arrival()));
    }

    fn arrival(&self) -> Arrival {
        self.turns.missing.fetch_add(1, Ordering::SeqCst);
        Arrival { turns: self.turns.clone(), over: false }
    }
}

/// Says once that a stream has been listed.
struct Arrival {
    turns: Arc<Turns>,
    over: bool,
}

impl Arrival {
    fn arrive(&mut self) {
        if !std::mem::replace(&mut self.over, true) && self.turns.missing.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.turns.synced.send_replace(true);
        }
    }
}

/// Takes in one stream, and takes it up again when it breaks, unless it breaks with an error that `ends` it.
async fn follow<K: Projection>(
    observer: &Observer,
    client: &Client,
    arrival: &mut Arrival,
    ends: fn(&watcher::Error) -> bool,
) -> anyhow::Result<()> {
    let turns = arrival.turns.clone();
    let mut config = watcher::Config::default().page_size(PAGE);
    if K::labelled() {
        config = config.labels(&format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_VALUE));
    }
    let events = || watcher(Api::<K>::all(client.clone()), config.clone()).default_backoff().boxed();
    let mut stream = events();
    let mut turn: Option<SemaphorePermit<'_>> = None;
    loop {
        let limit = if turn.is_some() { STALL } else { Duration::MAX };
        match tokio::time::timeout(limit, stream.next()).await {
            Ok(Some(Ok(event))) => {
                if matches!(event, Event::Init) {
                    // The first page is asked for when the stream is polled again.
                    turn = Some(turns.listings.acquire().await?);
                }
                if observer.take(event) {
                    drop(turn.take());
                    arrival.arrive();
                }
            }
            Ok(Some(Err(error))) if ends(&error) => return Ok(()),
            Ok(Some(Err(error))) => {
                drop(turn.take());
                observer.metrics.watch_broke(K::resource());
                tracing::warn!(resource = K::resource(), %error, "watch broke, taking it up again");
            }
            Ok(None) => anyhow::bail!("the watch of {} ended", K::resource()),
            Err(_) => {
                drop(turn.take());
                observer.metrics.watch_broke(K::resource());
                tracing::warn!(resource = K::resource(), "the listing stands still, beginning it again");
                stream = events();
            }
        }
    }
}
