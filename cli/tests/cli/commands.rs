//! `ankka services pause`, `resume` and `restart`.

use std::thread;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::objects::{PODS, SERVICES, event, service, status};
use crate::support::{CART, Fake, Home, Ran, Reply, Stored, assert_schema};

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn running() -> Stored {
    let mut ready = status(2, "Ready", 3, 3);
    ready["imageDigest"] = json!(DIGEST);
    Stored::new(service("cart", 2, &ready))
}

fn run(fake: &Fake, arguments: &[&str]) -> Ran {
    Home::new().run_with(fake, &[&["services"], arguments].concat())
}

#[test]
fn a_pause_sets_its_own_field_under_its_own_manager_and_nothing_else() {
    let stored = running();
    let fake = stored.serve(|_| None);
    let ran = run(&fake, &["pause", "cart"]);
    assert_eq!(ran.status, 0, "{}", ran.transcript());
    assert_eq!(fake.lines(), [format!("GET {SERVICES}/cart"), format!("PATCH {SERVICES}/cart")]);
    let patch = &fake.requests()[1];
    assert_eq!(patch.content_type, "application/merge-patch+json");
    assert!(patch.query.contains("fieldManager=ankka-commands"), "{}", patch.query);
    assert!(patch.query.contains("fieldValidation=Strict"), "{}", patch.query);
    assert_eq!(patch.body, json!({ "metadata": { "resourceVersion": "7" }, "spec": { "paused": true } }));
    assert_eq!(stored.now()["spec"]["paused"], true);
}

#[test]
fn the_status_is_printed_as_get_prints_it_and_what_was_done_beside_it() {
    let stored = running();
    let fake = stored.serve(|_| None);
    assert_snapshot!("pause", run(&fake, &["pause", "cart"]).transcript());
    assert_snapshot!("pause-again", run(&fake, &["pause", "cart"]).transcript());
    assert_snapshot!("restart-paused", run(&fake, &["restart", "cart"]).transcript());
    assert_snapshot!("resume", run(&fake, &["resume", "cart"]).transcript());
    assert_snapshot!("resume-again", run(&fake, &["resume", "cart"]).transcript());
    assert_eq!(stored.now()["spec"].get("paused"), None, "a resumed service is like one that was never paused");
    for command in ["pause", "resume", "restart"] {
        assert_schema("service", &run(&fake, &[command, "cart", "-o", "json"]).json());
        assert_eq!(run(&fake, &[command, "cart", "-o", "name"]).stdout, "service/cart\n");
    }
}

#[test]
fn a_restart_says_what_runs_and_what_a_node_keeps() {
    let stored = running();
    let held = "a restart keeps the image a node already holds under this tag; to run a newer one, apply a new tag or a digest";
    let warned = stored.clone();
    let fake = stored.serve(move |request| {
        // What the admission webhook says of it comes back in a header.
        (request.method == "PATCH").then(|| Reply::ok(warned.now()).with("warning", &format!("299 - \"{held}\"")))
    });
    assert_snapshot!(run(&fake, &["restart", "cart"]).stderr, @r"
    warning: a restart keeps the image a node already holds under this tag; to run a newer one, apply a new tag or a digest
    service/cart restarted
    image registry.example.com/acme/cart:1.4.2 runs as sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
    ");
    let fake = Stored::new(service("cart", 1, &Value::Null)).serve(|_| None);
    assert_snapshot!(run(&fake, &["restart", "cart"]).stderr, @r"
    service/cart restarted
    image registry.example.com/acme/cart:1.4.2: no instance has reported which digest it runs
    ");
}

#[test]
fn restarts_at_once_all_count_and_none_is_lost_to_a_redeploy() {
    const RESTARTS: usize = 6;
    let stored = running();
    let fake = stored.serve(|_| None);
    thread::scope(|scope| {
        let mut running: Vec<_> = (0..RESTARTS).map(|_| scope.spawn(|| run(&fake, &["restart", "cart"]))).collect();
        running.push(scope.spawn(|| {
            let home = Home::new();
            home.file("service.json", CART.replace("1.4.2", "1.5.0"));
            home.run_with(&fake, &["services", "apply", "-f", "service.json"])
        }));
        // The operator reports meanwhile, which makes a new version each time.
        for _ in 0..20 {
            stored.report(status(2, "UpdateInProgress", 2, 3));
            thread::sleep(std::time::Duration::from_millis(10));
        }
        for ran in running {
            let ran = ran.join().expect("it ran");
            assert_eq!(ran.status, 0, "{}", ran.transcript());
        }
    });
    let spec = &stored.now()["spec"];
    assert_eq!(spec["restarts"], RESTARTS);
    assert_eq!(spec["service"]["image"], "registry.example.com/acme/cart:1.5.0");
}

#[test]
fn a_change_that_is_refused_as_old_again_and_again_ends_with_an_error() {
    let stored = running();
    let refused = || Reply::status(409, "Conflict", "the object has been modified", &json!({}));
    let fake = stored.serve(move |request| (request.method == "PATCH").then(refused));
    let ran = run(&fake, &["restart", "cart"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""));
    assert_eq!(
        ran.stderr,
        "error: failed to restart service 'cart': others changed it 40 times meanwhile\nhint: try again\n"
    );
}

#[test]
fn a_service_that_is_not_there_or_going_is_not_changed() {
    let stored = running();
    let fake = stored.serve(|request| {
        request.path.ends_with("/nothing").then(|| {
            Reply::status(404, "NotFound", "not found", &json!({ "name": "nothing", "kind": "ankkaservices" }))
        })
    });
    let ran = run(&fake, &["pause", "nothing"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.starts_with("error: service 'nothing' not found in project 'shop'\nhint: "), "{}", ran.stderr);
    let mut going = service("cart", 2, &Value::Null);
    going["metadata"]["deletionTimestamp"] = json!("2026-11-30T12:00:00Z");
    let fake = Stored::new(going).serve(|_| None);
    let ran = run(&fake, &["restart", "cart"]);
    assert_eq!(ran.status, 1);
    assert_eq!(
        ran.stderr,
        "error: failed to restart service 'cart': it is being deleted\nhint: nothing was changed; apply its descriptor again once it is gone\n"
    );
    assert_eq!(fake.lines(), [format!("GET {SERVICES}/cart")]);
}

#[test]
fn waiting_for_a_restart_ends_with_the_status_of_a_ready_service() {
    let stored = running();
    let fake = stored.serve(|request| match request.path.as_str() {
        SERVICES if request.watches() => {
            Some(Reply::events(&[event("MODIFIED", &service("cart", 3, &status(3, "Ready", 3, 3)))]))
        }
        SERVICES => Some(Reply::list(&[service("cart", 3, &status(2, "Ready", 3, 3))])),
        PODS if request.watches() => Some(Reply::Silence),
        PODS => Some(Reply::list(&[])),
        _ => None,
    });
    let ran = run(&fake, &["restart", "cart", "--wait=30s"]);
    assert_eq!(ran.status, 0, "{}", ran.transcript());
    assert!(ran.stdout.contains("status      Ready\n"), "{}", ran.stdout);
    assert!(ran.stderr.ends_with("service 'cart' is ready\n"), "{}", ran.stderr);
}
