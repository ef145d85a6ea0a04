//! A collector is told of each review.
#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

use std::sync::{Arc, Mutex};

use ankka_telemetry::{About, Collector, Telemetry};
use ankka_webhook::{
    Settings,
    server::{App, admission},
};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::Request,
    routing::post,
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, any_value::Value},
};
use prost::Message;
use serde_json::json;
use tower::ServiceExt;
use tracing_subscriber::EnvFilter;

type Received = Arc<Mutex<Vec<ExportTraceServiceRequest>>>;

async fn take(State(received): State<Received>, body: Bytes) {
    received.lock().unwrap().push(ExportTraceServiceRequest::decode(body).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_review_is_one_span_with_its_verdict_and_no_value_of_the_descriptor() {
    let received = Received::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().route("/v1/traces", post(take)).with_state(received.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let collector = Collector::read(|_| Some(endpoint.clone())).unwrap();
    let about = About { program: "ankka-webhook", version: "0" };
    let telemetry = Telemetry::begin(about, EnvFilter::new("error"), collector.as_ref()).unwrap();

    let namespace = |name: &str| (name == "POD_NAMESPACE").then(|| "ankka-system".to_owned());
    let app = App::new(Settings::read(namespace).unwrap());
    let object = json!({
        "apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaService",
        "metadata": {"name": "cart", "namespace": "ankka-shop"},
        "spec": {"service": {"image": "", "env": [{"name": "A", "value": "a-secret-value"}]}},
    });
    let review = json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "7f3c", "name": "cart", "namespace": "ankka-shop", "operation": "CREATE",
            "userInfo": {"username": "ada"}, "object": object, "oldObject": null,
        },
    });
    let request = Request::post("/validate/services").body(Body::from(review.to_string())).unwrap();
    assert!(admission(app).oneshot(request).await.unwrap().status().is_success());
    telemetry.end().await;

    let received = received.lock().unwrap();
    assert_eq!(received.len(), 1);
    let spans: Vec<_> = received[0].resource_spans.iter().flat_map(|process| &process.scope_spans).collect();
    let [span] = spans[0].spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!(span.name, "review");
    let told = |key: &str| match &span.attributes.iter().find(|told| told.key == key)?.value {
        Some(AnyValue { value: Some(Value::StringValue(text)) }) => Some(text.clone()),
        _ => None,
    };
    let all = ["endpoint", "namespace", "name", "outcome"].map(|key| told(key).unwrap_or_default());
    assert_eq!(all, ["services", "ankka-shop", "cart", "denied"]);
    assert!(!format!("{received:?}").contains("a-secret-value"));
}
