//! A cluster in which the platform has done what it is asked by the time of the next request: for walks through several commands.

use std::sync::{Arc, Mutex};

use ankka_crds::{ServiceSpec, digest, names};
use serde_json::{Value, json};

use super::objects::{PODS, PROJECTS, REVIEWS, SERVICES, instance, project, service, status};
use super::platform::{healthy, process};
use super::{Fake, Reply, Request, Stored};

const DATABASE: &str = "/apis/ankka.dev/v1alpha1/namespaces/ankka-shop/ankkadatabases/cart";
const REVISIONS: &str = "/apis/apps/v1/namespaces/ankka-shop/controllerrevisions/";

/// What it holds: of services, `cart` or none.
#[derive(Default)]
struct Living {
    cart: Option<Stored>,
    /// What the history says, the newest first.
    changes: Vec<Value>,
    /// The descriptors there were.
    kept: Vec<Value>,
}

/// Starts one that holds nothing.
pub(crate) fn start() -> Fake {
    let living = Arc::new(Mutex::new(Living::default()));
    Fake::start(move |request| living.lock().expect("no test has panicked in it").answer(request))
}

impl Living {
    fn answer(&mut self, request: &Request) -> Reply {
        let cart = format!("{SERVICES}/cart");
        let cart = cart.as_str();
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", PROJECTS) if !request.query.contains("dryRun") => Reply::created(project("shop", true)),
            ("GET", PROJECTS) if request.watches() => Reply::Silence,
            ("GET", PROJECTS) => Reply::list(&[project("shop", true)]),
            ("POST", REVIEWS) => Reply::created(json!({ "status": { "userInfo": { "username": "ann@example.com" } } })),
            ("GET", "/apis/apps/v1/deployments") => Reply::list(&processes()),
            ("PATCH", path) if path == cart => self.patch(request),
            ("GET", path) if path == cart => self.cart.as_ref().map_or_else(absent, |cart| Reply::ok(cart.now())),
            ("DELETE", path) if path == cart => self.cart.take().map_or_else(absent, |cart| Reply::ok(cart.now())),
            ("GET", SERVICES | PODS) if request.watches() => Reply::Silence,
            ("GET", SERVICES) => Reply::list(&self.cart.iter().map(Stored::now).collect::<Vec<_>>()),
            // Who waits pages through them, and hears of the service alone.
            ("GET", PODS) if request.query.contains("limit=") => Reply::list(&[]),
            ("GET", PODS) => Reply::list(&[instance("cart-5d8f7-x2x4k", 1)]),
            ("GET", path) if path.ends_with("/log") => {
                Reply::Text(200, "2026-11-30T12:00:01.1Z listening on port 9000\n".to_owned())
            }
            ("GET", path) if path.starts_with(REVISIONS) => self.revision(&path[REVISIONS.len()..]),
            ("GET", DATABASE) => {
                let status = json!({ "database": "shop.cart", "secret": "cart-db", "login": "shop.cart" });
                Reply::ok(json!({ "metadata": { "name": "cart" }, "spec": {}, "status": status }))
            }
            ("GET", path) if path.contains("ankkabuckets/") => absent(),
            _ => healthy(request),
        }
    }

    /// Stores a change, which the webhook notes and the operator reports on.
    fn patch(&mut self, request: &Request) -> Reply {
        let dry = request.query.contains("dryRun");
        let (stored, reply) = if let Some(stored) = &self.cart {
            let before = stored.now()["metadata"]["generation"].clone();
            let reply = stored.patch(request);
            if stored.now()["metadata"]["generation"] == before {
                return reply;
            }
            (stored.clone(), reply)
        } else {
            let mut new = service("cart", 1, &Value::Null);
            new["spec"]["service"] = request.body["spec"]["service"].clone();
            let reply = Reply::created(new.clone());
            if dry {
                return reply;
            }
            (Stored::new(new), reply)
        };
        self.note(&stored, request);
        self.cart = Some(stored);
        reply
    }

    fn note(&mut self, stored: &Stored, request: &Request) {
        let now = stored.now();
        let (spec, generation) = (&now["spec"], now["metadata"]["generation"].as_i64().expect("a generation"));
        let back = &request.body["metadata"]["annotations"]["ankka.dev/rolled-back-to"];
        let kind = match (back.is_null(), request.body["spec"].get("exposed")) {
            (false, _) => "rolled-back",
            (true, Some(_)) => "exposed",
            (true, None) => "applied",
        };
        let mut change = json!({
            "generation": generation, "kind": kind, "who": "ann@example.com",
            "at": format!("2026-11-30T12:0{generation}:00Z"), "image": spec["service"]["image"],
            "digest": digest_of(&spec["service"]),
        });
        if let Some(back) = back.as_str() {
            change["rolledBackTo"] = json!(back.parse::<i64>().expect("a generation"));
        }
        self.changes.insert(0, change);
        self.kept.push(spec["service"].clone());
        let mut ready = status(generation, "Ready", 1, 1);
        ready["database"] = json!({ "phase": "provisioned" });
        if spec["exposed"] == true {
            ready["address"] = json!("https://cart-shop.apps.example.com");
            ready["route"] = json!("accepted");
        }
        stored.report(ready);
        stored.annotate("ankka.dev/changes", &json!(self.changes).to_string());
    }

    fn revision(&self, name: &str) -> Reply {
        let found = self.kept.iter().find(|service| names::revision("cart", &digest_of(service)) == name);
        found.map_or_else(absent, |service| {
            Reply::ok(json!({
                "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": { "name": name }, "revision": 1,
                "data": { "name": "cart", "service": service },
            }))
        })
    }
}

fn absent() -> Reply {
    Reply::status(404, "NotFound", "not found", &json!({ "name": "cart" }))
}

fn processes() -> [Value; 3] {
    let gateway = json!({ "ANKKA_GATEWAY_NAMESPACE": "ankka-gateway", "ANKKA_GATEWAY_NAME": "ankka" });
    let server = json!({ "ANKKA_DATABASE_HOST": "ankka-postgres.ankka-system.svc.cluster.local" });
    [process("database", 2, &server), process("operator", 2, &gateway), process("webhook", 2, &json!({}))]
}

fn digest_of(service: &Value) -> String {
    let service: ServiceSpec = serde_json::from_value(service.clone()).expect("a service object");
    digest::of_descriptor("cart", &service)
}
