//! `ankka services database`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::objects::{PODS, SERVICES, event, pod, service, status};
use crate::support::{Fake, Home, Ran, Reply, Request, Stored, assert_schema};

const DATABASE: &str = "/apis/ankka.dev/v1alpha1/namespaces/ankka-shop/ankkadatabases/cart";

fn reissue(fake: &Fake, arguments: &[&str]) -> Ran {
    Home::new().run_with(fake, &[&["services", "database", "reissue", "cart"], arguments].concat())
}

fn provisioned() -> Value {
    let mut reported = status(2, "Ready", 1, 1);
    reported["database"] = json!({ "phase": "provisioned" });
    service("cart", 2, &reported)
}

/// The service's database with this status; none when there is none.
fn database(status: Value) -> impl Fn(&Request) -> Option<Reply> + Send + Sync {
    move |request| {
        (request.path == DATABASE).then(|| match &status {
            Value::Null => Reply::status(404, "NotFound", "not found", &json!({ "kind": "ankkadatabases" })),
            status => Reply::ok(json!({ "metadata": { "name": "cart" }, "spec": {}, "status": status })),
        })
    }
}

fn in_place(generation: i64) -> Value {
    json!({ "phase": "provisioned", "secret": "cart-db", "login": "shop.cart", "credentialGeneration": generation })
}

#[test]
fn a_newer_login_is_asked_for_than_any_before() {
    for (asked, held, wanted) in [(None, 0, 1), (Some(1), 1, 2), (Some(1), 4, 5), (Some(5), 4, 6)] {
        let mut service = provisioned();
        if let Some(asked) = asked {
            service["spec"]["database"] = json!({ "credentialGeneration": asked });
        }
        let fake = Stored::new(service).serve(database(in_place(held)));
        let ran = reissue(&fake, &[]);
        assert_eq!(ran.status, 0, "{}", ran.transcript());
        let patch = fake.requests().pop().expect("it was changed");
        assert_eq!(patch.line(), format!("PATCH {SERVICES}/cart"));
        assert_eq!(patch.body["spec"], json!({ "database": { "credentialGeneration": wanted } }));
        assert!(patch.query.contains("fieldManager=ankka-commands"), "{}", patch.query);
    }
}

#[test]
fn the_status_is_printed_and_which_login_is_on_its_way_out() {
    let fake = Stored::new(provisioned()).serve(database(in_place(0)));
    assert_snapshot!("reissue", reissue(&fake, &[]).transcript());
    assert_schema("service", &reissue(&fake, &["-o", "json"]).json());
    assert!(fake.requests().iter().all(|request| !request.path.contains("secrets")), "no Secret is read");
}

#[test]
fn what_has_no_login_of_ours_is_refused() {
    let mut supplied = provisioned();
    supplied["spec"]["service"]["env"] = json!([{ "name": "ANKKA_DB_HOST", "value": "db.example.com" }]);
    let refused = |service: Value, status: Value| {
        let stored = Stored::new(service.clone());
        let ran = reissue(&stored.serve(database(status)), &[]);
        assert_eq!(stored.now(), service);
        ran.transcript()
    };
    assert_snapshot!("reissue-supplied", refused(supplied, in_place(0)));
    let waiting = json!({ "phase": "waiting for database" });
    let too_early = refused(provisioned(), waiting);
    assert_snapshot!("reissue-too-early", too_early);
    assert_eq!(refused(provisioned(), Value::Null), too_early);
}

#[test]
fn waiting_ends_when_every_instance_uses_the_new_login() {
    let instance = |login: Option<&str>| {
        let mut instance = pod("cart-1", &json!({ "running": {} }), 0);
        instance["metadata"]["annotations"] = json!({ "ankka.dev/database-credential-generation": login });
        instance["status"]["conditions"] = json!([{ "type": "Ready", "status": "True" }]);
        instance
    };
    let cluster = move |fresh: bool| {
        let held = database(in_place(0));
        Stored::new(provisioned()).serve(move |request| {
            let ready = || service("cart", 3, &status(3, "Ready", 1, 1));
            match request.path.as_str() {
                SERVICES if request.watches() => Some(Reply::events(&[event("MODIFIED", &ready())])),
                SERVICES => Some(Reply::list(&[ready()])),
                PODS if request.watches() => Some(Reply::Silence),
                PODS => Some(Reply::list(&[instance(fresh.then_some("1"))])),
                _ => held(request),
            }
        })
    };
    let ran = reissue(&cluster(true), &["--wait=20s"]);
    assert_eq!(ran.status, 0, "{}", ran.transcript());
    assert!(ran.stderr.ends_with("service 'cart' is ready\n"), "{}", ran.stderr);
    // The service is ready all the time: only its instances tell.
    let ran = reissue(&cluster(false), &["--wait=1s"]);
    assert_eq!(ran.status, 1, "{}", ran.transcript());
    assert!(ran.stderr.contains("waited 1s: the instances use the database login of before"), "{}", ran.stderr);
}
