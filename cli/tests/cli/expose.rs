//! `ankka services expose` and `unexpose`, and what `get` says of an address.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::objects::{DEFINITION, SERVICES, event, service, status};
use crate::support::{Fake, Home, Ran, Reply, Request, Stored, assert_schema};

const URL: &str = "https://cart-shop.apps.example.com:8443";

fn run(fake: &Fake, arguments: &[&str]) -> Ran {
    Home::new().run_with(fake, &[&["services"], arguments].concat())
}

/// The definition with these annotations.
fn installed(annotations: Value) -> impl Fn(&Request) -> Option<Reply> + Send + Sync {
    move |request| {
        (request.path == DEFINITION).then(|| {
            Reply::ok(json!({
                "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                "metadata": { "name": "ankkaservices.ankka.dev", "annotations": annotations },
            }))
        })
    }
}

fn publishing() -> impl Fn(&Request) -> Option<Reply> + Send + Sync {
    installed(json!({ "ankka.dev/base-domain": "apps.example.com", "ankka.dev/https-port": "8443" }))
}

fn ready() -> Value {
    service("cart", 2, &status(2, "Ready", 1, 1))
}

/// Exposed at generation 3, and this is what the operator says of the route.
fn routed(route: Option<&str>) -> Value {
    let mut reported = status(3, "Ready", 1, 1);
    reported["route"] = json!(route);
    if matches!(route, Some("accepted" | "pending")) {
        reported["address"] = json!(URL);
    }
    let mut exposed = service("cart", 3, &reported);
    exposed["spec"]["exposed"] = json!(true);
    exposed
}

#[test]
fn only_the_address_is_data() {
    let stored = Stored::new(ready());
    let fake = stored.serve(publishing());
    let ran = run(&fake, &["expose", "cart"]);
    assert_eq!((ran.status, ran.stdout), (0, format!("{URL}\n")), "{}", ran.stderr);
    assert_eq!(ran.stderr, "service/cart exposed\nroute pending\n");
    assert_eq!(fake.requests()[2].body["spec"], json!({ "exposed": true }));
    let ran = run(&fake, &["expose", "cart"]);
    assert_eq!((ran.status, ran.stdout), (0, format!("{URL}\n")), "{}", ran.stderr);
    assert_eq!(ran.stderr, "service/cart unchanged (already exposed)\nroute pending\n");
    let json = run(&fake, &["expose", "cart", "-o", "json"]).json();
    assert_schema("service", &json);
    assert_eq!((&json["hostname"], &json["exposed"]), (&json!(URL), &json!(true)));
}

#[test]
fn an_address_is_taken_away() {
    let stored = Stored::new(routed(Some("accepted")));
    let fake = stored.serve(publishing());
    assert_snapshot!("unexpose", run(&fake, &["unexpose", "cart"]).transcript());
    assert_eq!(stored.now()["spec"].get("exposed"), None);
    let ran = run(&fake, &["unexpose", "cart", "-o", "json"]);
    assert_schema("service", &ran.json());
    assert_eq!(ran.stderr, "{\"note\":\"service/cart unchanged (not exposed)\"}\n");
}

#[test]
fn each_reason_not_to_expose_has_its_own_sentence_and_nothing_is_changed() {
    let long = "a".repeat(59);
    let mut silent = ready();
    silent["spec"]["service"]["http"] = json!(false);
    let refused = |name: &str, service: Value, annotations: Value| {
        let path = format!("{SERVICES}/{name}");
        let definition = installed(annotations);
        let fake = Fake::start(move |request| {
            definition(request).unwrap_or_else(|| match request.line() {
                line if line == format!("GET {path}") => Reply::ok(service.clone()),
                line => panic!("nobody should ask for {line}"),
            })
        });
        run(&fake, &["expose", name]).transcript()
    };
    let domain = json!({ "ankka.dev/base-domain": "apps.example.com" });
    assert_snapshot!("refused-no-http", refused("cart", silent, domain.clone()));
    assert_snapshot!("refused-label-too-long", refused(&long, service(&long, 2, &Value::Null), domain));
    assert_snapshot!(
        "refused-no-base-domain",
        refused("cart", ready(), json!({ "ankka.dev/platform-version": "0.2.0" }))
    );
}

#[test]
fn an_installation_that_cannot_be_seen_is_left_to_judge_by_itself() {
    let stored = Stored::new(ready());
    let hidden = |request: &Request| {
        let refused = || Reply::status(403, "Forbidden", "customresourcedefinitions is forbidden", &json!({}));
        (request.path == DEFINITION).then(refused)
    };
    let ran = run(&stored.serve(hidden), &["expose", "cart"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, ""));
    assert!(
        ran.stderr.ends_with("its address is not known yet; look with: ankka services get cart -p shop\n"),
        "{}",
        ran.stderr
    );
}

#[test]
fn waiting_ends_with_what_becomes_of_the_route() {
    let table = [
        (Some("accepted"), 0, "route accepted\n"),
        (
            Some("rejected: another service has the address"),
            1,
            "error: service 'cart' has no address outside: route rejected: another service has the address\nhint: it stays exposed, ",
        ),
        (
            Some("pending"),
            1,
            "error: service 'cart' has no address outside yet: waited 1s: its route is pending\nhint: it stays exposed; look with: ankka services get cart -p shop\n",
        ),
    ];
    for (route, exit, said) in table {
        let (definition, seen) = (publishing(), routed(route));
        let fake = Stored::new(ready()).serve(move |request| match request.path.as_str() {
            SERVICES if request.watches() => Some(Reply::events(&[event("MODIFIED", &seen)])),
            SERVICES => Some(Reply::list(&[ready()])),
            _ => definition(request),
        });
        let ran = run(&fake, &["expose", "cart", "--wait=1s"]);
        assert_eq!(ran.status, exit, "{}", ran.transcript());
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
        assert_eq!(ran.stdout, if exit == 0 { format!("{URL}\n") } else { String::new() });
    }
}

#[test]
fn get_says_where_an_exposed_service_is_or_why_nowhere() {
    let get = |service: Value| {
        let fake = Stored::new(service).serve(|_| None);
        let json = run(&fake, &["get", "cart", "-o", "json"]).json();
        assert_schema("service", &json);
        run(&fake, &["get", "cart"]).stdout
    };
    let line = |text: &str, label: &str| {
        text.lines().find_map(|line| line.strip_prefix(label).map(|value| value.trim().to_owned()))
    };
    let none = "rejected: the operator has no base domain (ANKKA_BASE_DOMAIN); no route can be rendered";
    let table = [
        (Some("accepted"), URL, None),
        (Some("pending"), URL, None),
        (None, "exposed, but no operator has reported on its route", None),
        (
            Some(none),
            "exposed, but the operator has no base domain (ANKKA_BASE_DOMAIN); no route can be rendered",
            Some("route rejected: the operator has no base domain (ANKKA_BASE_DOMAIN); no route can be rendered"),
        ),
        (
            Some("rejected: NoMatchingParent"),
            "exposed, but its route is rejected",
            Some("route rejected: NoMatchingParent"),
        ),
    ];
    for (route, hostname, detail) in table {
        let text = get(routed(route));
        assert_eq!(line(&text, "hostname").as_deref(), Some(hostname), "{text}");
        assert_eq!(line(&text, "route").as_deref(), route, "{text}");
        assert_eq!(line(&text, "detail").as_deref(), detail, "{text}");
    }
    let text = get(ready());
    assert_eq!((line(&text, "hostname").as_deref(), line(&text, "route")), (Some("not exposed"), None), "{text}");
    // What the operator says in its detail already is not said twice, and the database's reason is there too.
    let mut both = routed(Some("rejected: NoMatchingParent"));
    both["status"]["detail"] = json!("route rejected: NoMatchingParent");
    both["status"]["database"] = json!({ "phase": "database provisioning failed", "detail": "permission denied" });
    let text = get(both);
    assert_eq!(line(&text, "database").as_deref(), Some("database provisioning failed"));
    assert_eq!(line(&text, "detail").as_deref(), Some("route rejected: NoMatchingParent; database: permission denied"));
}
