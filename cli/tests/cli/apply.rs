//! `ankka services apply`, without waiting.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::objects::{SERVICES, service, status};
use crate::support::{CART, Fake, Home, Ran, Reply, assert_schema};

const LATER: &str = "Mon, 30 Nov 2026 12:10:00 GMT";
const NOW: &str = "Mon, 30 Nov 2026 12:00:00 GMT";

fn apply(fake: &Fake, arguments: &[&str]) -> Ran {
    let home = Home::new();
    home.file("service.json", CART);
    home.run_with(fake, &[&["services", "apply", "-f", "service.json"], arguments].concat())
}

fn answering(reply: Reply) -> Fake {
    Fake::start(move |_| reply.clone())
}

#[test]
fn one_request_stores_the_service_object_and_nothing_else() {
    let fake = answering(Reply::created(service("cart", 1, &Value::Null)));
    let ran = apply(&fake, &[]);
    assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.as_str()), (0, "service/cart created\n", ""));
    let requests = fake.requests();
    assert_eq!(fake.lines(), [format!("PATCH {SERVICES}/cart")]);
    assert!(requests[0].query.contains("fieldManager=ankka"), "{}", requests[0].query);
    assert!(!requests[0].query.contains("force") && !requests[0].query.contains("dryRun"), "{}", requests[0].query);
    assert_eq!(
        requests[0].body,
        json!({
            "apiVersion": "ankka.dev/v1alpha1",
            "kind": "AnkkaService",
            "metadata": { "name": "cart" },
            "spec": { "service": { "image": "registry.example.com/acme/cart:1.4.2" } },
        })
    );
}

#[test]
fn what_an_apply_did_is_read_from_its_answer() {
    let reported = |observed| service("cart", 2, &status(observed, "Ready", 1, 1));
    let said = |reply: Reply| apply(&answering(reply), &[]).stdout;
    assert_eq!(said(Reply::ok(reported(1)).with("date", NOW)), "service/cart configured\n");
    assert_eq!(said(Reply::ok(reported(1)).with("date", LATER)), "service/cart unchanged\n");
    assert_eq!(said(Reply::ok(reported(2)).with("date", NOW)), "service/cart unchanged\n");
}

#[test]
fn the_result_can_be_read_by_programs() {
    let fake = answering(Reply::created(service("cart", 1, &Value::Null)));
    assert_schema("service", &apply(&fake, &["-o", "json"]).json());
    assert_eq!(apply(&fake, &["-o", "name"]).stdout, "service/cart\n");
}

#[test]
fn what_is_applied_to_a_service_that_is_being_deleted_is_not_said_to_be_done() {
    let mut going = service("cart", 2, &status(1, "Ready", 1, 1));
    going["metadata"]["deletionTimestamp"] = json!("2026-11-30T12:00:00Z");
    let ran = apply(&answering(Reply::ok(going)), &["--wait=30s"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("error: service 'cart' is being deleted"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: apply it again once it is gone"), "{}", ran.stderr);
}

#[test]
fn a_dry_run_asks_the_server() {
    let fake = answering(Reply::ok(service("cart", 1, &Value::Null)));
    let ran = apply(&fake, &["--dry-run"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "service/cart validated (server dry run)\n"));
    assert!(fake.requests()[0].query.contains("dryRun=All"));
}

#[test]
fn a_conflict_is_taken_over_and_said() {
    let fake = Fake::start(|request| {
        if request.query.contains("force=true") {
            return Reply::ok(service("cart", 3, &status(2, "Ready", 1, 1))).with("date", NOW);
        }
        let cause = |manager| json!({ "reason": "FieldManagerConflict", "message": format!("conflict with \"{manager}\" using ankka.dev/v1alpha1"), "field": ".spec.service" });
        Reply::status(
            409,
            "Conflict",
            "Apply failed with 2 conflicts",
            &json!({ "causes": [cause("kubectl-edit"), cause("kubectl-edit")] }),
        )
    });
    assert_snapshot!(apply(&fake, &[]).transcript(), @r"
    status: 0
    ----- stdout -----
    service/cart configured
    ----- stderr -----
    warning: took over from 'kubectl-edit'
    ");
    assert_eq!(fake.requests().len(), 2);
}

#[test]
fn warnings_of_the_cluster_are_printed() {
    let warning = r#"299 - "minInstances is 2: use an odd number""#;
    let ran = apply(&answering(Reply::created(service("cart", 1, &Value::Null)).with("warning", warning)), &[]);
    assert_eq!(ran.stderr, "warning: minInstances is 2: use an odd number\n");
    let fake = answering(Reply::created(service("cart", 1, &Value::Null)).with("warning", warning));
    let ran = apply(&fake, &["-o", "json"]);
    assert_eq!(ran.error(), json!({ "warning": "minInstances is 2: use an odd number" }));
}

fn denial() -> Reply {
    let causes = [
        json!({ "reason": "FieldValueInvalid", "message": "the image is not allowed here", "field": "spec.service.image" }),
        json!({ "reason": "FieldValueInvalid", "message": "service port 0 is outside the range 1-65535", "field": "spec.service.port" }),
    ];
    Reply::status(
        422,
        "Invalid",
        "admission webhook \"services.ankka.dev\" denied the request: the image is not allowed here; service port 0 is outside the range 1-65535",
        &json!({ "name": "cart", "group": "ankka.dev", "kind": "AnkkaService", "causes": causes }),
    )
}

#[test]
fn a_denial_shows_each_problem_and_where_the_field_is() {
    assert_snapshot!(apply(&answering(denial()), &[]).transcript());
    let ran = apply(&answering(denial()), &["-o", "json"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""));
    assert_schema("error", &ran.error());
    assert_eq!(ran.error()["error"]["problems"][0]["line"], 1);
}

#[test]
fn a_descriptor_with_problems_is_never_sent() {
    let (home, fake) = (Home::new(), answering(Reply::ok(Value::Null)));
    home.file("service.json", r#"{"name":"cart","service":{"image":"a","image":"b"}}"#);
    let arguments = ["services", "apply", "-f", "service.json"];
    assert_snapshot!(home.run_with(&fake, &arguments).transcript());
    let ran = home.run_with(&fake, &[&arguments[..], &["-o", "json"]].concat());
    assert_schema("error", &ran.error());
    assert!(fake.requests().is_empty());
}

#[test]
fn refusals_say_what_to_do() {
    let table = [
        (
            "missing-project",
            Reply::status(
                404,
                "NotFound",
                "namespaces \"ankka-shop\" not found",
                &json!({ "name": "ankka-shop", "kind": "namespaces" }),
            ),
        ),
        ("missing-kind", Reply::Text(404, "404 page not found\n".to_owned())),
        (
            "forbidden",
            Reply::status(
                403,
                "Forbidden",
                "ankkaservices.ankka.dev \"cart\" is forbidden: User \"ann\" cannot patch resource \"ankkaservices\" in API group \"ankka.dev\" in the namespace \"ankka-shop\"",
                &json!({ "name": "cart", "group": "ankka.dev", "kind": "ankkaservices" }),
            ),
        ),
        ("unauthorized", Reply::status(401, "Unauthorized", "Unauthorized", &json!({}))),
        (
            "webhook-down",
            Reply::status(
                500,
                "InternalError",
                "Internal error occurred: failed calling webhook \"services.ankka.dev\": failed to call webhook: Post \"https://ankka-webhook.ankka-system.svc:443/validate/services?timeout=5s\": dial tcp 10.0.0.7:443: connect: connection refused",
                &json!({ "causes": [{ "message": "failed calling webhook" }] }),
            ),
        ),
        (
            "terminating",
            Reply::status(
                403,
                "Forbidden",
                "ankkaservices.ankka.dev \"cart\" is forbidden: unable to create new content in namespace ankka-shop because it is being terminated",
                &json!({ "kind": "ankkaservices", "causes": [{ "reason": "NamespaceTerminating", "message": "namespace ankka-shop is being terminated", "field": "metadata.namespace" }] }),
            ),
        ),
        ("too-large", Reply::status(500, "", "etcdserver: request is too large", &json!({}))),
    ];
    for (name, reply) in table {
        assert_snapshot!(format!("refused-{name}"), apply(&answering(reply), &[]).transcript());
    }
}
