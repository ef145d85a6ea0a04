//! `ankka services diff` and `ankka services apply --diff`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::objects::{SERVICES, service, status};
use crate::support::{CART, Fake, Home, Ran, Reply, Stored, assert_schema};

/// A stored service with this `service` object.
fn stored(object: Value) -> Value {
    let mut stored = service("cart", 2, &status(2, "Ready", 1, 1));
    stored["spec"]["service"] = object;
    stored
}

fn image(tag: &str) -> Value {
    json!({ "image": format!("registry.example.com/acme/cart:{tag}") })
}

fn run(fake: &Fake, object: &Value, arguments: &[&str]) -> Ran {
    let home = Home::new();
    home.file("service.json", json!({ "name": "cart", "service": object }).to_string());
    home.run_with(fake, &[arguments, &["-f", "service.json"]].concat())
}

fn diff(before: Value, after: &Value) -> Ran {
    run(&Stored::new(before).serve(|_| None), after, &["services", "diff"])
}

fn json_of(before: Value, after: &Value) -> Value {
    let ran = run(&Stored::new(before).serve(|_| None), after, &["services", "diff", "-o", "json"]);
    let json = ran.json();
    assert_schema("service-diff", &json);
    assert_eq!(ran.status == 1, json["changed"] == true, "{}", ran.transcript());
    json
}

#[test]
fn nothing_is_stored_and_the_cluster_is_asked_what_it_would_store() {
    let stored = Stored::new(stored(image("1")));
    let before = stored.now();
    let fake = stored.serve(|_| None);
    assert_eq!(run(&fake, &image("2"), &["services", "diff"]).status, 1);
    assert_eq!(stored.now(), before);
    assert_eq!(fake.lines(), [format!("GET {SERVICES}/cart"), format!("PATCH {SERVICES}/cart")]);
    assert!(fake.requests()[1].query.contains("dryRun=All"), "{}", fake.requests()[1].query);
}

#[test]
fn another_image_replaces_the_instances() {
    assert_snapshot!("another-image", diff(stored(image("1")), &image("2")).transcript());
    let json = json_of(stored(image("1")), &image("2"));
    assert_eq!(json["rolls"], true);
    assert_eq!(
        json["descriptor"],
        json!([{
            "path": "service.image",
            "before": "registry.example.com/acme/cart:1", "after": "registry.example.com/acme/cart:2",
        }])
    );
    assert_eq!(json["objects"][0]["fields"][0]["path"], "spec.template.spec.containers[0].image");
}

#[test]
fn another_number_of_instances_replaces_none() {
    let mut three = image("1");
    three["resources"] = json!({ "autoscaling": { "minInstances": 3 } });
    assert_snapshot!("scaled", diff(stored(image("1")), &three).transcript());
    let json = json_of(stored(image("1")), &three);
    assert_eq!(json["rolls"], false);
    let objects: Vec<_> = json["objects"].as_array().into_iter().flatten().collect();
    assert!(objects.iter().any(|object| object["kind"] == "PodDisruptionBudget" || object["kind"] == "ConfigMap"));
    assert!(objects.iter().any(|object| object["kind"] == "Deployment"), "{objects:?}");
}

#[test]
fn saying_a_default_changes_the_descriptor_alone() {
    let mut said = image("1");
    said["port"] = json!(9000);
    let json = json_of(stored(image("1")), &said);
    assert_eq!((&json["changed"], &json["rolls"], &json["objects"]), (&json!(true), &json!(false), &json!([])));
}

#[test]
fn no_difference_is_no_output_and_status_zero() {
    let ran = diff(stored(image("1")), &image("1"));
    assert_eq!(ran.transcript(), "status: 0\n----- stdout -----\n----- stderr -----\n");
    assert_eq!(json_of(stored(image("1")), &image("1"))["changed"], false);
    let fake = Stored::new(stored(image("1"))).serve(|_| None);
    assert_eq!(run(&fake, &image("1"), &["services", "diff", "-o", "name"]).stdout, "");
    assert_eq!(run(&fake, &image("2"), &["services", "diff", "-o", "name"]).stdout, "service/cart\n");
}

#[test]
fn what_an_exposed_service_loses_without_http_is_shown() {
    let mut exposed = stored(image("1"));
    exposed["spec"]["exposed"] = json!(true);
    let mut silent = image("1");
    silent["http"] = json!(false);
    let json = json_of(exposed, &silent);
    let removed: Vec<_> =
        json["objects"].as_array().into_iter().flatten().filter(|object| object["change"] == "removed").collect();
    let kinds: Vec<_> = removed.iter().map(|object| object["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds, ["Service", "HTTPRoute"]);
    assert_eq!(json["rolls"], true);
}

#[test]
fn a_database_stays_when_the_service_brings_its_own() {
    let mut supplied = image("1");
    supplied["env"] = json!([{ "name": "ANKKA_DB_HOST", "value": "db.example.com" }]);
    let json = json_of(stored(image("1")), &supplied);
    let kinds: Vec<_> =
        json["objects"].as_array().into_iter().flatten().filter_map(|object| object["kind"].as_str()).collect();
    assert_eq!((kinds, &json["rolls"]), (vec!["Deployment"], &json!(true)));
}

#[test]
fn a_paused_service_has_no_instances_to_replace() {
    let mut paused = stored(image("1"));
    paused["spec"]["paused"] = json!(true);
    assert_eq!(json_of(paused.clone(), &image("2"))["rolls"], false);
    let text = diff(paused, &image("2")).stdout;
    assert!(
        text.ends_with("no instance runs: the service is paused, and starts with this when it is resumed\n"),
        "{text}"
    );
}

#[test]
fn a_new_service_is_shown_completely() {
    let fake = Fake::start(|request| match request.method.as_str() {
        "GET" => Reply::status(404, "NotFound", "not found", &json!({ "name": "cart", "kind": "ankkaservices" })),
        _ => Reply::created(stored(image("1"))),
    });
    assert_snapshot!("created", run(&fake, &image("1"), &["services", "diff"]).transcript());
    let json = run(&fake, &image("1"), &["services", "diff", "-o", "json"]).json();
    assert_schema("service-diff", &json);
    assert_eq!((&json["created"], &json["rolls"]), (&json!(true), &json!(false)));
}

#[test]
fn what_was_stored_under_older_rules_is_compared_as_far_as_it_can_be() {
    let mut old = image("1");
    old["port"] = json!(0);
    let ran = diff(stored(old.clone()), &image("2"));
    assert_eq!(ran.status, 1);
    assert!(ran.stdout.contains("whether instances would be replaced cannot be told"), "{}", ran.stdout);
    assert_eq!(json_of(stored(old), &image("2"))["rolls"], Value::Null);
}

#[test]
fn trouble_is_status_two() {
    let fake = Stored::new(stored(image("1"))).serve(|_| None);
    let ran = run(&fake, &json!({ "image": "", "port": 0 }), &["services", "diff"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("service image must not be empty"), "{}", ran.stderr);
    assert!(fake.requests().is_empty());

    let denied = Stored::new(stored(image("1"))).serve(|request| {
        let causes = [json!({ "reason": "FieldValueInvalid", "message": "the image is not allowed here", "field": "spec.service.image" })];
        (request.method == "PATCH").then(|| Reply::status(422, "Invalid", "denied", &json!({ "causes": causes })))
    });
    assert_snapshot!("denied", run(&denied, &image("2"), &["services", "diff"]).transcript());
    let ran = run(&denied, &image("2"), &["services", "diff", "-o", "json"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""));
    assert_schema("error", &ran.error());

    let home = Home::new();
    assert_eq!(home.run_with(&fake, &["services", "diff", "-f", "nothing.json"]).status, 2);
    let refused = Fake::start(|_| Reply::status(403, "Forbidden", "User \"ann\" cannot get", &json!({})));
    assert_eq!(run(&refused, &image("2"), &["services", "diff"]).status, 2);
}

#[test]
fn apply_shows_the_same_and_applies_nothing() {
    let stored = Stored::new(stored(image("1")));
    let (before, fake) = (stored.now(), stored.serve(|_| None));
    let shown = run(&fake, &image("2"), &["services", "diff"]);
    let ran = run(&fake, &image("2"), &["services", "apply", "--diff"]);
    assert_eq!((ran.status, &ran.stdout, &ran.stderr), (1, &shown.stdout, &shown.stderr));
    assert_eq!(run(&fake, &image("1"), &["services", "apply", "--diff"]).status, 0);
    assert_eq!(stored.now(), before);
    let home = Home::new();
    home.file("service.json", CART);
    for also in ["--dry-run", "--wait", "--no-wait"] {
        assert_eq!(home.run(&["services", "apply", "-f", "service.json", "--diff", also]).status, 2);
    }
}

#[test]
fn what_would_be_taken_over_is_not_said_to_have_been() {
    let fake = Stored::new(stored(image("1"))).serve(|request| {
        let cause = json!({ "reason": "FieldManagerConflict", "message": "conflict with \"kubectl-edit\" using ankka.dev/v1alpha1", "field": ".spec.service" });
        (request.method == "PATCH" && !request.query.contains("force=true"))
            .then(|| Reply::status(409, "Conflict", "Apply failed with 1 conflict", &json!({ "causes": [cause] })))
    });
    assert_eq!(run(&fake, &image("2"), &["services", "diff"]).stderr, "warning: would take over from 'kubectl-edit'\n");
}
