//! `ankka services get` and `list`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::objects::{SERVICES, service, status};
use crate::support::{Fake, Home, Reply, assert_schema};

fn holding(services: Vec<Value>) -> Fake {
    Fake::start(move |request| match request.line() {
        line if line == format!("GET {SERVICES}") => Reply::list(&services),
        line => services
            .iter()
            .find(|service| line == format!("GET {SERVICES}/{}", service["metadata"]["name"].as_str().expect("a name")))
            .map_or_else(
                || {
                    Reply::status(
                        404,
                        "NotFound",
                        "ankkaservices.ankka.dev \"x\" not found",
                        &json!({ "name": "x", "group": "ankka.dev", "kind": "ankkaservices" }),
                    )
                },
                |service| Reply::ok(service.clone()),
            ),
    })
}

fn some() -> Vec<Value> {
    let mut process = service("mail", 5, &status(4, "Ready", 1, 1));
    process["spec"]["service"] = json!({ "image": "mail:2", "hosting": "process", "protocol": "1.0", "resources": { "autoscaling": { "minInstances": 3 } } });
    let mut failed = status(1, "Failed", 0, 1);
    failed["detail"] = json!("ImagePullBackOff: manifest unknown");
    failed["objectStorage"] = json!({ "phase": "provisioned" });
    vec![
        service("cart", 2, &status(2, "Ready", 3, 3)),
        process,
        service("new", 1, &Value::Null),
        service("orders", 1, &failed),
    ]
}

#[test]
fn a_list_is_a_table_with_the_documented_columns() {
    let (home, fake) = (Home::new(), holding(some()));
    assert_snapshot!("list", home.run_with(&fake, &["services", "list"]).transcript());
    assert_snapshot!("list-wide", home.run_with(&fake, &["services", "list", "-o", "wide"]).transcript());
    assert_eq!(
        home.run_with(&fake, &["services", "list", "-o", "name"]).stdout,
        "service/cart\nservice/mail\nservice/new\nservice/orders\n"
    );
    let json = home.run_with(&fake, &["services", "list", "-o", "json"]).json();
    assert_schema("services-list", &json);
    let yaml = home.run_with(&fake, &["services", "list", "-o", "yaml"]).stdout;
    assert_eq!(serde_yaml_ng::from_str::<Value>(&yaml).expect("YAML"), json);
}

#[test]
fn logins_of_before_are_shown_with_their_ends_and_who_still_uses_one_is_said() {
    let mut stuck = status(2, "UpdateInProgress", 2, 2);
    stuck["detail"] = json!("ImagePullBackOff: manifest unknown; check the image's name and tag");
    stuck["database"] = json!({
        "phase": "provisioned",
        "detail": "2 instances still use login 'shop.cart', which ends at 2026-11-30T13:00:00Z; mend what holds up the rollout",
        "formerLogins": [
            { "login": "shop.cart", "endsAt": "2026-11-30T13:00:00Z" },
            { "login": "shop.cart#1", "endsAt": "2026-11-30T13:20:00Z" },
        ],
    });
    let (home, fake) = (Home::new(), holding(vec![service("cart", 2, &stuck)]));
    assert_snapshot!("get-former-logins", home.run_with(&fake, &["services", "get", "cart"]).transcript());
    let json = home.run_with(&fake, &["services", "get", "cart", "-o", "json"]).json();
    assert_schema("service", &json);
    assert_eq!(json["formerLogins"][1]["endsAt"], "2026-11-30T13:20:00Z");
}

#[test]
fn a_service_that_is_being_deleted_says_so() {
    let mut going = service("cart", 2, &status(1, "Ready", 1, 1));
    going["metadata"]["deletionTimestamp"] = json!("2026-11-30T12:00:00Z");
    let ran = Home::new().run_with(&holding(vec![going]), &["services", "get", "cart"]);
    assert!(ran.stdout.contains("detail      it is being deleted\n"), "{}", ran.stdout);
}

#[test]
fn one_request_is_enough() {
    let (home, fake) = (Home::new(), holding(some()));
    home.run_with(&fake, &["services", "get", "cart"]);
    assert_eq!(fake.lines(), [format!("GET {SERVICES}/cart")]);
}

#[test]
fn an_empty_list_says_so() {
    let empty = |namespace: fn() -> Reply| {
        Fake::start(move |request| match request.path.as_str() {
            SERVICES => Reply::list(&[]),
            "/api/v1/namespaces/ankka-shop" => namespace(),
            path => panic!("nobody should ask for {path}"),
        })
    };
    let there = || Reply::ok(json!({ "metadata": { "name": "ankka-shop" } }));
    let hidden = || Reply::status(403, "Forbidden", "namespaces is forbidden", &json!({ "kind": "namespaces" }));
    for namespace in [there, hidden] {
        let (home, fake) = (Home::new(), empty(namespace));
        assert_eq!(home.run_with(&fake, &["services", "list"]).stdout, "no results\n");
        assert_eq!(home.run_with(&fake, &["services", "list", "-o", "json"]).stdout, "[]\n");
        assert_eq!(home.run_with(&fake, &["services", "list", "-o", "name"]).stdout, "");
    }
    let absent = || Reply::status(404, "NotFound", "not found", &json!({ "kind": "namespaces" }));
    let ran = Home::new().run_with(&empty(absent), &["services", "list"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.starts_with("error: project 'shop' not found"), "{}", ran.stderr);
}

#[test]
fn one_service_is_shown_in_lines() {
    let (home, fake) = (Home::new(), holding(some()));
    for name in ["cart", "mail", "new", "orders"] {
        assert_snapshot!(format!("get-{name}"), home.run_with(&fake, &["services", "get", name]).transcript());
        let json = home.run_with(&fake, &["services", "get", name, "-o", "json"]).json();
        assert_schema("service", &json);
    }
    assert_snapshot!("get-cart-wide", home.run_with(&fake, &["services", "get", "cart", "-o", "wide"]).transcript());
    assert_snapshot!("get-cart-json", home.run_with(&fake, &["services", "get", "cart", "-o", "json"]).transcript());
    assert_snapshot!("get-cart-yaml", home.run_with(&fake, &["services", "get", "cart", "-o", "yaml"]).transcript());
    assert_eq!(home.run_with(&fake, &["services", "get", "cart", "-o", "name"]).stdout, "service/cart\n");
}

#[test]
fn a_service_that_is_not_there_is_an_error_with_advice() {
    let (home, fake) = (Home::new(), holding(some()));
    assert_snapshot!(home.run_with(&fake, &["services", "get", "nothing"]).transcript(), @r"
    status: 1
    ----- stdout -----
    ----- stderr -----
    error: service 'nothing' not found in project 'shop'
    hint: see what is there with: ankka services list -p shop
    ");
    let ran = home.run_with(&fake, &["services", "get", "nothing", "-o", "json"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""));
    assert_schema("error", &ran.error());
}

#[test]
fn a_name_that_cannot_be_is_refused_without_asking() {
    let (home, fake) = (Home::new(), holding(some()));
    let ran = home.run_with(&fake, &["services", "get", "../../secrets"]);
    assert_eq!(ran.status, 1);
    assert_eq!(
        ran.stderr,
        "error: service name '../../secrets' is invalid: lowercase letters, digits and '-', starting with a letter\n"
    );
    assert!(fake.requests().is_empty());
}
