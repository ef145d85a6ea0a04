//! `ankka services history`, `rollback` and `export`.

use ankka_crds::{ServiceSpec, digest};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::objects::{SERVICES, service, status};
use crate::support::{Fake, Home, Ran, Reply, Request, Stored, assert_schema};

const REVISIONS: &str = "/apis/apps/v1/namespaces/ankka-shop/controllerrevisions";

fn run(fake: &Fake, arguments: &[&str]) -> Ran {
    Home::new().run_with(fake, &[&["services"], arguments].concat())
}

pub(crate) fn image(tag: &str) -> Value {
    json!({ "image": format!("registry.example.com/acme/cart:{tag}"), "env": [{ "name": "TAG", "value": tag }] })
}

fn digest_of(service: &Value) -> String {
    let service: ServiceSpec = serde_json::from_value(service.clone()).expect("a service object");
    digest::of_descriptor("cart", &service)
}

fn change(generation: i64, kind: &str, tag: &str) -> Value {
    let service = image(tag);
    json!({
        "generation": generation, "kind": kind, "who": "ada@example.com", "at": format!("2026-11-30T12:00:0{generation}Z"),
        "image": service["image"], "digest": digest_of(&service),
    })
}

/// Generation 5: first, second, paused, resumed by somebody whose image is unknown, third.
pub(crate) fn lived() -> Value {
    let mut resumed = change(4, "resumed", "2");
    resumed.as_object_mut().expect("an object").remove("image");
    resumed["who"] = json!("");
    let mut rolled_back = change(5, "rolled-back", "1");
    rolled_back["rolledBackTo"] = json!(1);
    let changes =
        [change(6, "applied", "3"), rolled_back, resumed, change(3, "paused", "2"), change(2, "applied", "2")];
    let mut lived = service("cart", 6, &status(6, "Ready", 1, 1));
    lived["spec"]["service"] = image("3");
    lived["metadata"]["annotations"] = json!({ "ankka.dev/changes": json!(changes).to_string() });
    lived
}

/// A server that holds this service, and keeps the descriptors with these tags.
fn keeping(stored: &Stored, tags: &'static [&'static str]) -> Fake {
    stored.serve(move |request| kept(request, tags))
}

/// What is answered about a descriptor of before when those with these tags are kept; none when it is about something else.
pub(crate) fn kept(request: &Request, tags: &[&str]) -> Option<Reply> {
    let name = request.path.strip_prefix(REVISIONS)?.strip_prefix('/')?;
    let kept = tags
        .iter()
        .map(|tag| image(tag))
        .find(|service| name == ankka_crds::names::revision("cart", &digest_of(service)));
    Some(kept.map_or_else(
        || Reply::status(404, "NotFound", "not found", &json!({ "name": name, "kind": "controllerrevisions" })),
        |service| {
            Reply::ok(json!({
                "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": { "name": name }, "revision": 2,
                "data": { "name": "cart", "service": service },
            }))
        },
    ))
}

#[test]
fn the_newest_change_comes_first_with_who_made_it() {
    let fake = keeping(&Stored::new(lived()), &[]);
    assert_snapshot!("history", run(&fake, &["history", "cart"]).transcript());
    assert_snapshot!("history-wide", run(&fake, &["history", "cart", "-o", "wide"]).stdout);
    let json = run(&fake, &["history", "cart", "-o", "json"]).json();
    assert_schema("service-history", &json);
    assert_eq!(json[1]["rolledBackTo"], 1);
    assert_eq!(fake.lines(), vec![format!("GET {SERVICES}/cart"); 3]);
    let fake = keeping(&Stored::new(service("cart", 1, &Value::Null)), &[]);
    assert_eq!(run(&fake, &["history", "cart"]).stdout, "no results\n");
    assert_eq!(run(&fake, &["history", "cart", "-o", "json"]).stdout, "[]\n");
}

#[test]
fn the_descriptor_of_a_generation_is_printed() {
    let fake = keeping(&Stored::new(lived()), &["1", "2"]);
    for (generation, tag) in [("2", "2"), ("4", "2"), ("5", "1"), ("6", "3")] {
        for format in [&[][..], &["-o", "json"]] {
            let json = run(&fake, &[&["history", "cart", "--generation", generation], format].concat()).json();
            assert_eq!(json, json!({ "name": "cart", "service": image(tag) }), "{generation}");
            assert_schema("../../service.schema", &json);
        }
    }
}

#[test]
fn a_descriptor_that_is_not_there_is_said_to_be_so() {
    let fake = keeping(&Stored::new(lived()), &[]);
    let said = |generation: &str| run(&fake, &["history", "cart", "--generation", generation]).transcript();
    assert_snapshot!("generation-not-kept", said("2"));
    assert_snapshot!("generation-before-the-history", said("1"));
    assert_snapshot!("generation-to-come", said("7"));
    let ran = run(&fake, &["history", "cart", "--generation", "2", "-o", "json"]);
    assert_schema("error", &ran.error());
    let fake = keeping(&Stored::new(service("cart", 3, &Value::Null)), &[]);
    assert_snapshot!("generation-without-history", run(&fake, &["history", "cart", "--generation", "1"]).transcript());
}

#[test]
fn what_is_kept_under_the_name_and_is_something_else_is_not_brought_back() {
    let stored = Stored::new(lived());
    let fake = stored.serve(|request| {
        request.path.starts_with(REVISIONS).then(|| {
            Reply::ok(json!({ "metadata": { "name": "x" }, "revision": 1, "data": { "name": "cart", "service": image("9") } }))
        })
    });
    let ran = run(&fake, &["rollback", "cart", "--to", "2"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""));
    assert!(
        ran.stderr.starts_with("error: the descriptor of generation 2 of service 'cart' is not kept\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(stored.now(), lived());
}

#[test]
fn a_rollback_applies_the_recorded_descriptor_and_says_which_in_the_same_request() {
    let stored = Stored::new(lived());
    let fake = keeping(&stored, &["1", "2"]);
    assert_snapshot!("rollback", run(&fake, &["rollback", "cart", "--to", "2"]).transcript());
    let requests = fake.requests();
    let patch = requests.last().expect("it was applied");
    assert_eq!(patch.content_type, "application/apply-patch+yaml");
    assert!(
        patch.query.contains("fieldManager=ankka&") || patch.query.ends_with("fieldManager=ankka"),
        "{}",
        patch.query
    );
    assert_eq!(
        patch.body,
        json!({
            "apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaService",
            "metadata": { "name": "cart", "annotations": { "ankka.dev/rolled-back-to": "2" } },
            "spec": { "service": image("2") },
        })
    );
    assert_eq!(stored.now()["spec"]["service"], image("2"));
}

#[test]
fn without_a_generation_the_descriptor_before_the_present_one_comes_back() {
    let stored = Stored::new(lived());
    let fake = keeping(&stored, &["1", "2"]);
    let ran = run(&fake, &["rollback", "cart", "-o", "json"]);
    assert_schema("service", &ran.json());
    assert_eq!(ran.stderr, "{\"note\":\"rolled back to generation 5\"}\n");
    assert_eq!(stored.now()["spec"]["service"], image("1"));
    let mut first = service("cart", 1, &Value::Null);
    first["spec"]["service"] = image("1");
    first["metadata"]["annotations"] = json!({ "ankka.dev/changes": json!([change(1, "applied", "1")]).to_string() });
    let fake = keeping(&Stored::new(first), &["1"]);
    assert_snapshot!("rollback-to-nothing", run(&fake, &["rollback", "cart"]).transcript());
}

#[test]
fn a_rollback_to_what_is_there_already_sends_nothing() {
    let fake = keeping(&Stored::new(lived()), &[]);
    let ran = run(&fake, &["rollback", "cart", "--to", "6"]);
    assert_eq!((ran.status, ran.stdout.lines().next()), (0, Some("name        cart")));
    assert_eq!(ran.stderr, "service/cart unchanged (it has the descriptor of generation 6 already)\n");
    assert_eq!(fake.lines(), [format!("GET {SERVICES}/cart")]);
}

#[test]
fn an_exported_descriptor_applies_to_the_same_thing() {
    let mut stored = lived();
    stored["spec"]["paused"] = json!(true);
    let stored = Stored::new(stored);
    let fake = keeping(&stored, &[]);
    let ran = run(&fake, &["export", "cart"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert_schema("../../service.schema", &ran.json());
    assert_eq!(run(&fake, &["export", "cart", "-o", "json"]).stdout, ran.stdout);
    let home = Home::new();
    home.file("service.json", &ran.stdout);
    let before = stored.now();
    let applied = home.run_with(&fake, &["services", "apply", "-f", "service.json"]);
    assert_eq!((applied.status, applied.stdout.as_str()), (0, "service/cart unchanged\n"), "{}", applied.stderr);
    assert_eq!(stored.now(), before);
}
