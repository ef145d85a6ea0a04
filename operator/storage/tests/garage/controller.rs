//! A controller without its process: it observes the API server in memory and makes passes until nothing is left to do.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ankka_crds::AnkkaBucket;
use ankka_requests::{
    cache::{Cache, Key},
    observe::Observer,
    process::all_again,
};
use ankka_runtime::{
    queue::{Queue, Timing},
    tenure::{Tenure, guarded},
    workers::{Passes as _, Tasks},
};
use ankka_storage::{
    pass::Passes,
    run::{RESOURCE, metrics, store},
    settings::Settings,
    store::{Garage, Monitor},
};
use ankka_testing::api::Api;
use serde_json::{Value, json};

use crate::garage::client;

/// How often a pass may be made before a test that should have settled fails.
const LIMIT: usize = 100;

/// How long an event may be under way.
const NEWS: Duration = Duration::from_millis(20);

pub(crate) struct Controller {
    queue: Arc<Queue<Key>>,
    passes: Passes,
    tenure: Arc<Tenure>,
    api: Api,
    cache: Arc<Cache<AnkkaBucket>>,
    store: Option<Arc<Garage>>,
    tasks: Tasks,
}

impl Controller {
    /// Starts a controller of the store whose admin API is at `port`, and lets it list everything.
    pub(crate) async fn start(api: &Api, port: u16, token: &str) -> Self {
        Self::of(api, port, token, &[]).await
    }

    /// Starts one with further settings.
    pub(crate) async fn of(api: &Api, port: u16, token: &str, further: &[(&str, &str)]) -> Self {
        let admin = format!("http://127.0.0.1:{port}");
        let mut variables = BTreeMap::from([
            ("ANKKA_OBJECT_STORE_ADMIN_URL", admin.as_str()),
            ("ANKKA_OBJECT_STORE_ADMIN_TOKEN", token),
            ("ANKKA_OBJECT_STORE_ENDPOINT", "http://garage.garage-system.svc.cluster.local:3900"),
            ("ANKKA_OBJECT_STORE_REGION", "garage"),
        ]);
        variables.extend(further.iter().copied());
        Self::with(api, &variables).await
    }

    /// Starts one with these settings alone.
    pub(crate) async fn with(api: &Api, variables: &BTreeMap<&str, &str>) -> Self {
        drop(client());
        let mut settings = Settings::read(|name| variables.get(name).map(ToString::to_string)).expect("valid settings");
        let cluster = api.client();
        let tenure = Arc::new(Tenure::unlimited());
        let cache = Arc::new(Cache::default());
        settings.timing = Timing {
            resync: Duration::from_hours(1),
            min_backoff: Duration::from_millis(20),
            max_backoff: Duration::from_millis(200),
        };
        let queue = Arc::new(Queue::new(settings.timing));
        let metrics = Arc::new(metrics());
        let mut tasks = Tasks::new();
        let observer =
            Observer { resource: RESOURCE, cache: cache.clone(), queue: queue.clone(), metrics: metrics.clone() };
        let mut synced = observer.start(&cluster, &mut tasks);
        assert!(synced.wait().await, "everything is listed");
        let store = store(&settings, &tenure, &metrics, &queue).expect("a store");
        let garage = store.as_ref().map(|store| store.garage.clone());
        let passes = Passes::new(&settings, guarded(cluster, tenure.clone()), store, &cache, &metrics);
        Self { queue, passes, tenure, api: api.clone(), cache, store: garage, tasks }
    }

    /// From now on, somebody looks whether the store is up.
    pub(crate) fn monitor(&mut self) {
        let again = all_again(self.cache.clone(), self.queue.clone());
        let store = self.store.clone().expect("a store");
        self.tasks.spawn(Monitor::new(store).watch(again));
    }

    /// Waits until a pass is asked for.
    pub(crate) async fn asked(&self) {
        let until = tokio::time::Instant::now() + Duration::from_secs(10);
        while !self.queue.is_busy() {
            assert!(tokio::time::Instant::now() < until, "nothing asks for a pass");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Makes passes until nothing is left to do, or the controller dies.
    pub(crate) async fn settle(&self) {
        for _ in 0..LIMIT {
            while let Ok(key) = tokio::time::timeout(NEWS, self.queue.next()).await {
                let next = self.passes.one(&key).await;
                self.queue.done(key, next);
                if self.api.is_dead() {
                    return;
                }
            }
            match self.queue.until_next() {
                Some(wait) if wait < Duration::from_mins(1) => {}
                _ => return,
            }
        }
        panic!("it does not settle: {:#?}", self.api.writes());
    }

    /// Makes the next pass.
    pub(crate) async fn pass(&self) {
        let key = self.queue.next().await;
        let next = self.passes.one(&key).await;
        self.queue.done(key, next);
    }

    /// Asks for a pass, as the resync does.
    pub(crate) fn look_at(&self, name: &str) {
        self.queue.add(Key { namespace: NAMESPACE.into(), name: name.into() });
    }

    /// The lease is lost.
    pub(crate) fn lose_lease(&self) {
        self.tenure.lead(false);
    }
}

pub(crate) const NAMESPACE: &str = "ankka-shop";

/// A service of the project `shop`, by its name.
#[derive(Clone, Debug)]
pub(crate) struct Service(pub(crate) String);

impl Service {
    pub(crate) fn named(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The path of its request.
    pub(crate) fn request(&self) -> String {
        format!("/apis/ankka.dev/v1alpha1/namespaces/{NAMESPACE}/ankkabuckets/{}", self.0)
    }

    /// The path of its Secret.
    pub(crate) fn secret(&self) -> String {
        format!("/api/v1/namespaces/{NAMESPACE}/secrets/{}-storage", self.0)
    }

    /// The name of its bucket.
    pub(crate) fn bucket(&self) -> String {
        format!("shop.{}", self.0)
    }

    /// Asks for its bucket.
    pub(crate) fn ask(&self, api: &Api) {
        let metadata = json!({"name": self.0, "namespace": NAMESPACE});
        let spec = json!({"store": "garage", "credential": true});
        let body =
            json!({"apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaBucket", "metadata": metadata, "spec": spec});
        api.put(&self.request(), body);
    }

    /// Asks for its credential to be issued again.
    pub(crate) fn reissue(&self, api: &Api, generation: i64) {
        api.edit(&self.request(), |bucket| bucket["spec"]["credentialGeneration"] = generation.into());
    }

    pub(crate) fn status(&self, api: &Api) -> Value {
        api.get(&self.request()).expect("it is stored")["status"].clone()
    }

    pub(crate) fn phase(&self, api: &Api) -> String {
        self.status(api)["phase"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn detail(&self, api: &Api) -> String {
        self.status(api)["detail"].as_str().unwrap_or_default().to_owned()
    }

    /// What its Secret says: a key's id and secret.
    pub(crate) fn credential(&self, api: &Api) -> (String, String) {
        let secret = api.get(&self.secret()).unwrap_or_else(|| panic!("there is no {}", self.secret()));
        let secret: k8s_openapi::api::core::v1::Secret = serde_json::from_value(secret).expect("a Secret");
        assert_eq!(secret.type_.as_deref(), Some("ankka.dev/storage-credential"));
        let data = secret.data.expect("data");
        let text = |key: &str| String::from_utf8(data[key].0.clone()).expect("text");
        assert_eq!(data.len(), 2);
        (text("ANKKA_S3_ACCESS_KEY"), text("ANKKA_S3_SECRET_KEY"))
    }
}

/// A cluster with one project.
pub(crate) fn shop() -> Api {
    let api = Api::without_others();
    let labels = json!({"app.kubernetes.io/managed-by": "ankka", "ankka.dev/project": "shop"});
    let metadata = json!({"name": NAMESPACE, "labels": labels});
    api.put("/api/v1/namespaces/ankka-shop", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}));
    api
}
