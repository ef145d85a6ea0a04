//! `ankka status`.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::objects::{SERVICES, service, status};
use crate::support::platform::{forbidden, healthy, process};
use crate::support::{Fake, Home, Reply, assert_schema};

/// Shown as `VERSION` in what is expected.
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn the_platform_is_shown_with_who_leads_and_how_services_are() {
    let (home, fake) = (Home::new(), Fake::start(healthy));
    assert_snapshot!(home.run_with(&fake, &["status"]).transcript().replace(VERSION, "VERSION"), @r"
    status: 0
    ----- stdout -----
    client    VERSION
    platform  VERSION
    operator  2/2 ready, led by ankka-operator-1
    webhook   2/2 ready
    services  3 in all projects: 1 Failed, 2 Ready
    ----- stderr -----
    ");
    let json = home.run_with(&fake, &["status", "-o", "json"]).json();
    assert_schema("status", &json);
    assert_eq!(json["services"]["statuses"], json!({ "Failed": 1, "Ready": 2 }));
    assert_eq!((&json["unknown"], &json["warnings"]), (&json!([]), &json!([])));
}

#[test]
fn what_may_not_be_seen_is_said_to_be_unknown() {
    let home = Home::new();
    let fake = Fake::start(|request| match request.path.as_str() {
        SERVICES => Reply::list(&[service("cart", 1, &status(1, "Ready", 1, 1))]),
        path if path.contains("customresourcedefinitions") => healthy(request),
        _ => forbidden(request),
    });
    assert_snapshot!(home.run_with(&fake, &["status"]).transcript().replace(VERSION, "VERSION"), @r"
    status: 0
    ----- stdout -----
    client      VERSION
    platform    VERSION
    services    1 in project shop: 1 Ready
    components  unknown: forbidden
    ----- stderr -----
    ");
    assert_schema("status", &home.run_with(&fake, &["status", "-o", "json"]).json());
}

#[test]
fn what_is_down_is_warned_about() {
    let home = Home::new();
    let fake = Fake::start(|request| match request.path.as_str() {
        "/apis/apps/v1/deployments" => {
            Reply::list(&[process("webhook", 1, &json!({})), process("operator", 2, &json!({}))])
        }
        path if path.starts_with("/apis/coordination.k8s.io/") => {
            Reply::status(404, "NotFound", "not found", &json!({ "kind": "leases" }))
        }
        _ => healthy(request),
    });
    let ran = home.run_with(&fake, &["status"]);
    assert_eq!(
        ran.stderr,
        "warning: nobody leads operator: nothing changes until somebody does\n\
         warning: webhook has 1 of 2 instances ready; see why with: kubectl describe pods -n ankka-system -l app.kubernetes.io/name=ankka-webhook\n"
    );
}

#[test]
fn a_login_that_is_rejected_is_an_error() {
    let fake = Fake::start(|_| Reply::status(401, "Unauthorized", "Unauthorized", &json!({})));
    let ran = Home::new().run_with(&fake, &["status"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""), "{}", ran.transcript());
    assert_eq!(
        ran.stderr,
        "error: the cluster rejected the login\nhint: log in again, or use another context with --context\n"
    );
}

#[test]
fn settings_that_cannot_be_used_are_not_taken_for_a_missing_right() {
    let fake = Fake::start(|request| match request.path.as_str() {
        path if path.contains("customresourcedefinitions") => healthy(request),
        _ => forbidden(request),
    });
    let home = Home::new();
    home.file("kubeconfig", fake.kubeconfig());
    let ran = home.run(&["status", "--kubeconfig", "kubeconfig", "-p", "Shop"]);
    assert!(ran.stdout.contains("services    unknown: project id 'Shop' is invalid: "), "{}", ran.transcript());
}
