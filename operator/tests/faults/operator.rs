//! An operator without its process: it observes the API server in memory and makes passes until nothing is left to do.

use std::{sync::Arc, time::Duration};

use ankka_operator::{
    cache::{Cache, Key},
    observe::Observer,
    passes::Passes,
    queue::Queue,
    run::metrics,
    settings::Settings,
    tenure::{Tenure, guarded},
};
use ankka_runtime::workers::Passes as _;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::api::Api;

/// Longer than every wait but the resync.
const QUIET: Duration = Duration::from_secs(100);

/// How often a pass may be made before a test that should have settled fails.
const LIMIT: usize = 500;

pub(crate) struct Operator {
    queue: Arc<Queue<Key>>,
    passes: Passes,
    tenure: Arc<Tenure>,
    api: Api,
    _tasks: JoinSet<anyhow::Result<()>>,
}

/// Services are published, everything else is as by default.
pub(crate) fn variable(name: &str) -> Option<String> {
    let value = match name {
        "ANKKA_BASE_DOMAIN" => "apps.example.com",
        "ANKKA_DATABASE_SERVER" => "provisioned",
        _ => return None,
    };
    Some(value.to_owned())
}

impl Operator {
    /// Starts an operator and lets it list everything.
    pub(crate) async fn start(api: &Api) -> Self {
        Self::start_with(api, variable).await
    }

    /// [`Self::start`] with settings of the test's own.
    pub(crate) async fn start_with(api: &Api, variable: impl Fn(&str) -> Option<String>) -> Self {
        let settings = Settings::read(variable).expect("the settings are valid");
        let client = api.client();
        let tenure = Arc::new(Tenure::unlimited());
        let cache = Arc::new(Cache::new(&settings.desired.prefix));
        let queue = Arc::new(Queue::new(settings.timing));
        let metrics = Arc::new(metrics());
        let mut tasks = JoinSet::new();
        let observer = Observer { cache: cache.clone(), queue: queue.clone(), metrics: metrics.clone() };
        let mut synced = observer.start(&client, &mut tasks);
        assert!(synced.wait().await, "everything is listed");
        let (passes, _) = Passes::new(&settings, guarded(client, tenure.clone()), &cache, &queue, &metrics);
        Self { queue, passes, tenure, api: api.clone(), _tasks: tasks }
    }

    /// Makes passes until nothing is left to do, or the operator dies. Returns how many.
    pub(crate) async fn settle(&self) -> usize {
        for passes in 0..LIMIT {
            let Ok(key) = tokio::time::timeout(QUIET, self.queue.next()).await else { return passes };
            if self.api.is_dead() {
                return passes;
            }
            let next = self.passes.one(&key).await;
            self.queue.done(key, next);
        }
        panic!("it does not settle: {:#?}", self.api.writes());
    }

    /// Makes the next pass.
    pub(crate) async fn pass(&self) {
        let key = self.queue.next().await;
        let next = self.passes.one(&key).await;
        self.queue.done(key, next);
    }

    /// The lease is lost.
    pub(crate) fn lose_lease(&self) {
        self.tenure.lead(false);
    }
}

pub(crate) const PROJECT: &str = "/apis/ankka.dev/v1alpha1/ankkaprojects/shop";
pub(crate) const NAMESPACE: &str = "/api/v1/namespaces/ankka-shop";
pub(crate) const ADMINISTRATORS: &str =
    "/apis/rbac.authorization.k8s.io/v1/namespaces/ankka-shop/rolebindings/ankka:administrators";
pub(crate) const SERVICE: &str = "/apis/ankka.dev/v1alpha1/namespaces/ankka-shop/ankkaservices/cart";
pub(crate) const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/ankka-shop/deployments/cart";

pub(crate) const DATABASE: &str = "/apis/ankka.dev/v1alpha1/namespaces/ankka-shop/ankkadatabases/cart";

/// The path of one of the service's objects, e.g. of `/api/v1` and `services/cart`.
pub(crate) fn in_shop(group: &str, object: &str) -> String {
    format!("{group}/namespaces/ankka-shop/{object}")
}

pub(crate) fn project() -> Value {
    json!({"apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaProject", "metadata": {"name": "shop"}, "spec": {}})
}

pub(crate) fn service(name: &str) -> Value {
    json!({
        "apiVersion": "ankka.dev/v1alpha1",
        "kind": "AnkkaService",
        "metadata": {"name": name, "namespace": "ankka-shop"},
        "spec": {"service": {
            "image": "registry.example.com/acme/cart:1",
            "labels": {"team": "checkout"},
        }},
    })
}

/// A cluster with one settled project.
pub(crate) async fn shop() -> Api {
    let api = Api::default();
    api.put(PROJECT, project());
    Operator::start(&api).await.settle().await;
    api.copy()
}

/// A cluster with one settled service.
pub(crate) async fn cart() -> Api {
    let api = shop().await;
    api.put(SERVICE, service("cart"));
    Operator::start(&api).await.settle().await;
    assert_eq!(lifecycle(&api), "Ready", "{:#?}", api.get(SERVICE));
    api.copy()
}

pub(crate) fn lifecycle(api: &Api) -> String {
    api.get(SERVICE).expect("stored")["status"]["lifecycle"].as_str().unwrap_or_default().to_owned()
}
