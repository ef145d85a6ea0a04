//! `ankka services delete`.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::objects::{PODS, SERVICES, service, status};
use crate::support::{Fake, Home, Reply, Request, assert_schema};

const DATA: &str = "/apis/ankka.dev/v1alpha1/namespaces/ankka-shop";

fn absent(kind: &str) -> Reply {
    Reply::status(404, "NotFound", "not found", &json!({ "name": "cart", "kind": kind }))
}

fn cluster(request: &Request) -> Reply {
    let metadata = json!({ "name": "cart", "namespace": "ankka-shop" });
    match (request.method.as_str(), request.path.as_str()) {
        ("DELETE", path) if path == format!("{SERVICES}/cart") => {
            Reply::ok(service("cart", 1, &status(1, "Ready", 1, 1)))
        }
        ("GET", path) if path == format!("{DATA}/ankkadatabases/cart") => {
            Reply::ok(json!({ "metadata": metadata, "spec": {}, "status": { "database": "shop.cart" } }))
        }
        ("GET", path) if path == format!("{DATA}/ankkabuckets/cart") => {
            Reply::ok(json!({ "metadata": metadata, "spec": { "store": "garage", "credential": true } }))
        }
        ("GET", PODS) => Reply::list(&[]),
        _ => absent("ankkaservices"),
    }
}

#[test]
fn what_stays_is_named() {
    let (home, fake) = (Home::new(), Fake::start(cluster));
    assert_snapshot!(home.run_with(&fake, &["services", "delete", "cart"]).transcript(), @r"
    status: 0
    ----- stdout -----
    service/cart deleted
    ----- stderr -----
    kept: database 'shop.cart'
    kept: credential 'cart-db'
    kept: bucket 'shop.cart'
    kept: credential 'cart-storage'
    applying the service again finds them
    ");
    assert!(fake.requests().iter().all(|request| !request.path.contains("secrets")), "no Secret is read");
    let json = home.run_with(&fake, &["services", "delete", "cart", "-o", "json"]).json();
    assert_schema("service-deleted", &json);
}

#[test]
fn a_service_that_is_not_there_is_an_error() {
    let (home, fake) = (Home::new(), Fake::start(cluster));
    let ran = home.run_with(&fake, &["services", "delete", "nothing"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.starts_with("error: service 'nothing' not found in project 'shop'\n"), "{}", ran.stderr);
}

#[test]
fn waiting_ends_when_the_service_and_its_instances_are_gone() {
    let (home, fake) = (Home::new(), Fake::start(cluster));
    let ran = home.run_with(&fake, &["services", "delete", "cart", "--wait=30s"]);
    assert_eq!(ran.status, 0, "{}", ran.transcript());
    let instances = fake.requests().into_iter().find(|request| request.path == PODS).expect("it looked");
    assert!(instances.query.contains("ankka.dev%2Fservice%3Dcart"), "{}", instances.query);
}
