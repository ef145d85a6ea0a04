//! A controller without its process: it observes the API server in memory and makes passes until nothing is left to do.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ankka_crds::AnkkaDatabase;
use ankka_database::{
    pass::Passes,
    run::{RESOURCE, metrics},
    server::{Claim, Monitor, Postgres},
    settings::Settings,
};
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
use ankka_testing::api::Api;
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::postgres::{PASSWORD, SUPERUSER, login};

/// How often a pass may be made before a test that should have settled fails.
const LIMIT: usize = 100;

/// How long an event may be under way.
const NEWS: Duration = Duration::from_millis(30);

pub(crate) struct Controller {
    queue: Arc<Queue<Key>>,
    passes: Passes,
    tenure: Arc<Tenure>,
    api: Api,
    cache: Arc<Cache<AnkkaDatabase>>,
    server: Arc<Postgres>,
    tasks: Tasks,
}

/// Who administers the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Administrator {
    Superuser,
    /// May make roles and databases, and nothing else.
    Ordinary,
}

pub(crate) const ORDINARY: &str = "CREATE ROLE admin LOGIN CREATEROLE CREATEDB PASSWORD 'ordinary'";

impl Controller {
    /// Starts a controller, administering the server at `port` as the superuser, and lets it list everything.
    pub(crate) async fn start(api: &Api, port: u16) -> Self {
        Self::of(api, port, Administrator::Superuser, &[]).await
    }

    /// Starts one with further settings; `CLUSTER` is the id of its cluster.
    pub(crate) async fn of(api: &Api, port: u16, administrator: Administrator, further: &[(&str, &str)]) -> Self {
        let port = port.to_string();
        let (user, password) = match administrator {
            Administrator::Superuser => (SUPERUSER, PASSWORD),
            Administrator::Ordinary => ("admin", "ordinary"),
        };
        let mut variables = BTreeMap::from([
            ("ANKKA_DATABASE_HOST", "127.0.0.1"),
            ("ANKKA_DATABASE_PORT", &port),
            ("ANKKA_DATABASE_TLS", "disable"),
            ("ANKKA_DATABASE_USER", user),
            ("ANKKA_DATABASE_PASSWORD", password),
        ]);
        variables.extend(further.iter().copied());
        let settings = Settings::read(|name| variables.get(name).map(ToString::to_string)).expect("valid settings");
        let client = api.client();
        let tenure = Arc::new(Tenure::unlimited());
        let cache = Arc::new(Cache::default());
        let queue = Arc::new(Queue::new(Timing {
            resync: Duration::from_hours(1),
            min_backoff: Duration::from_millis(20),
            max_backoff: Duration::from_millis(200),
        }));
        let metrics = Arc::new(metrics());
        let mut tasks = Tasks::new();
        let observer =
            Observer { resource: RESOURCE, cache: cache.clone(), queue: queue.clone(), metrics: metrics.clone() };
        let mut synced = observer.start(&client, &mut tasks);
        assert!(synced.wait().await, "everything is listed");
        let cluster = variables.get("CLUSTER").map_or("this one", |id| *id).to_owned();
        let claim = Claim { cluster, take_over: settings.take_over.clone() };
        let server = Arc::new(Postgres::new(settings.connection.clone(), claim, tenure.clone(), metrics.clone()));
        let passes = Passes::new(&settings, guarded(client, tenure.clone()), server.clone(), &cache, &metrics);
        Self { queue, passes, tenure, api: api.clone(), cache, server, tasks }
    }

    /// From now on, somebody looks whether the server is up.
    pub(crate) fn monitor(&mut self) {
        let again = all_again(self.cache.clone(), self.queue.clone());
        self.tasks.spawn(Monitor::new(self.server.clone()).watch(again));
    }

    /// Waits until a pass is asked for.
    pub(crate) async fn asked(&self) {
        let until = tokio::time::Instant::now() + Duration::from_secs(5);
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
pub(crate) const DATABASE: &str = "/apis/ankka.dev/v1alpha1/namespaces/ankka-shop/ankkadatabases/cart";
pub(crate) const SECRET: &str = "/api/v1/namespaces/ankka-shop/secrets/cart-db";

/// A cluster with one project.
pub(crate) fn shop() -> Api {
    let api = Api::without_others();
    api.put("/api/v1/namespaces/ankka-shop", namespace("shop"));
    api
}

pub(crate) fn namespace(project: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": format!("ankka-{project}"),
            "labels": {"app.kubernetes.io/managed-by": "ankka", "ankka.dev/project": project},
        },
    })
}

/// Asks for the database of a service.
pub(crate) fn ask_for(api: &Api, project: &str, service: &str) {
    let path = format!("/apis/ankka.dev/v1alpha1/namespaces/ankka-{project}/ankkadatabases/{service}");
    let metadata = json!({"name": service, "namespace": format!("ankka-{project}")});
    let body = json!({"apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaDatabase", "metadata": metadata, "spec": {}});
    api.put(&path, body);
}

pub(crate) fn status(api: &Api) -> Value {
    api.get(DATABASE).expect("it is stored")["status"].clone()
}

pub(crate) fn phase(api: &Api) -> String {
    status(api)["phase"].as_str().unwrap_or_default().to_owned()
}

/// What a Secret says.
pub(crate) fn credential(api: &Api, path: &str) -> BTreeMap<String, String> {
    let secret = api.get(path).unwrap_or_else(|| panic!("there is no {path}"));
    let secret: k8s_openapi::api::core::v1::Secret = serde_json::from_value(secret).expect("a Secret");
    assert_eq!(secret.type_.as_deref(), Some("ankka.dev/database-credential"));
    let text = |value: k8s_openapi::ByteString| String::from_utf8(value.0).expect("text");
    secret.data.into_iter().flatten().map(|(key, value)| (key, text(value))).collect()
}

/// Logs in as a service does.
pub(crate) async fn enter(api: &Api, path: &str) -> Result<Client, tokio_postgres::Error> {
    let credential = credential(api, path);
    let port = credential["ANKKA_DB_PORT"].parse().expect("a port");
    login(port, &credential["ANKKA_DB_NAME"], &credential["ANKKA_DB_USER"], &credential["ANKKA_DB_PASSWORD"]).await
}
