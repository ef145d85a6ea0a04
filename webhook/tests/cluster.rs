//! What is sent to the API server: every write carries the version that was read, and touches nothing but what is ours.
#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

use ankka_webhook::certificates::{
    cluster::Real,
    keeper::{Cluster, Configuration, Stored},
};
use axum::http::{Request, Response};
use http_body_util::BodyExt;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::client::Body;
use serde_json::{Value, json};
use tower_test::mock::{Handle, pair};

type Server = Handle<Request<Body>, Response<Body>>;

fn cluster() -> (Real, Server) {
    let (service, server) = pair();
    (Real::new(kube::Client::new(service, "default"), "ankka-system"), server)
}

/// Answers one request, and tells what it was: method, path with query, content type and body.
async fn answer(server: &mut Server, status: u16, body: Value) -> (String, String, Value) {
    let (request, reply) = server.next_request().await.expect("a request");
    let line = format!("{} {}", request.method(), request.uri());
    let kind = request.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned()).unwrap_or_default();
    let sent = request.into_body().collect().await.unwrap().to_bytes();
    let response = Response::builder().status(status).header("content-type", "application/json");
    reply.send_response(response.body(Body::from(body.to_string().into_bytes())).unwrap());
    (line, kind, serde_json::from_slice(&sent).unwrap_or_default())
}

fn conflict() -> Value {
    json!({"kind": "Status", "status": "Failure", "reason": "Conflict", "code": 409, "message": "the object has been modified"})
}

fn configuration(kind: &'static str) -> Configuration {
    let bundles = ["services.ankka.dev", "projects.ankka.dev"].map(|name| (name.to_owned(), Vec::new()));
    Configuration { kind, version: "41".to_owned(), bundles: bundles.to_vec() }
}

#[tokio::test]
async fn a_bundle_is_merged_by_name_into_the_version_that_was_read() {
    for (kind, path) in [
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ] {
        for (status, body, won) in
            [(200, json!({"metadata": {"name": "ankka-webhook"}}), true), (409, conflict(), false)]
        {
            let (cluster, mut server) = cluster();
            let read = configuration(kind);
            let (wrote, (line, content, sent)) =
                tokio::join!(cluster.put_bundle(&read, "CA"), answer(&mut server, status, body));
            assert_eq!(wrote.unwrap(), won);
            let prefix = format!("PATCH /apis/admissionregistration.k8s.io/v1/{path}/ankka-webhook?");
            assert!(line.starts_with(&prefix) && line.contains("fieldManager=ankka-webhook"), "{line}");
            assert_eq!(content, "application/strategic-merge-patch+json");
            let hook = |name: &str| json!({"name": name, "clientConfig": {"caBundle": "Q0E="}});
            assert_eq!(
                sent,
                json!({
                    "metadata": {"resourceVersion": "41"},
                    "webhooks": [hook("services.ankka.dev"), hook("projects.ankka.dev")],
                })
            );
        }
    }
}

#[tokio::test]
async fn the_secret_goes_back_with_its_version_and_what_others_put_on_it() {
    let stored: Secret = serde_json::from_value(json!({
        "metadata": {"name": "ankka-webhook-certificate", "resourceVersion": "7", "labels": {"a": "b"}}, "type": "Opaque",
    }))
    .unwrap();
    for (status, body, won) in [(200, json!({"metadata": {}}), true), (409, conflict(), false)] {
        let (cluster, mut server) = cluster();
        let read = Stored { version: "7".to_owned(), data: [].into(), object: Some(Box::new(stored.clone())) };
        let data = [("tls.key".to_owned(), ByteString(b"k".to_vec()))].into();
        let (wrote, (line, _, sent)) = tokio::join!(cluster.put_secret(&read, data), answer(&mut server, status, body));
        assert_eq!(wrote.unwrap(), won);
        assert!(line.starts_with("PUT /api/v1/namespaces/ankka-system/secrets/ankka-webhook-certificate?"), "{line}");
        assert_eq!(
            (&sent["metadata"]["resourceVersion"], &sent["metadata"]["labels"]["a"]),
            (&json!("7"), &json!("b"))
        );
        assert_eq!(sent["data"], json!({"tls.key": "aw=="}));
    }
}

#[tokio::test]
async fn a_failure_says_what_was_attempted_on_what() {
    let (cluster, mut server) = cluster();
    let missing =
        json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "not there"});
    let (read, _) = tokio::join!(cluster.secret(), answer(&mut server, 404, missing));
    let error = read.unwrap_err().to_string();
    assert!(error.starts_with("failed to read the chart's Secret ankka-webhook-certificate: "), "{error}");
}
