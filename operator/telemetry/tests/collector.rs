//! A collector gets the spans of a process, and the log does not.

use std::sync::{Arc, Mutex};

use ankka_telemetry::{About, Collector, ENDPOINT, SPANS, Telemetry};
use axum::{Router, body::Bytes, extract::State, http::HeaderMap, routing::post};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use tracing_subscriber::EnvFilter;

type Received = Arc<Mutex<Vec<ExportTraceServiceRequest>>>;

async fn take(State(received): State<Received>, headers: HeaderMap, body: Bytes) {
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let request = ExportTraceServiceRequest::decode(body).expect("spans as OTLP has them");
    received.lock().expect("nobody panicked").push(request);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_gets_the_spans_with_their_parents_when_the_process_ends() {
    let received = Received::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let routes = Router::new().route("/v1/traces", post(take)).with_state(received.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await });

    let collector = Collector::read(|name| (name == ENDPOINT).then(|| endpoint.clone())).expect("usable");
    let about = About { program: "ankka-test", version: "1.2.3" };
    let telemetry = Telemetry::begin(about, EnvFilter::new("trace"), collector.as_ref()).expect("it begins");
    tracing::info_span!(target: SPANS, "reconcile", name = "cart").in_scope(|| {
        tracing::info_span!(target: SPANS, "decide").in_scope(|| tracing::info!("an event"));
        tracing::info_span!("of another target").in_scope(|| ());
    });
    telemetry.end().await;

    let received = received.lock().expect("nobody panicked");
    let [request] = received.as_slice() else { panic!("{} requests", received.len()) };
    let process = &request.resource_spans[0];
    let attributes = &process.resource.as_ref().expect("a resource").attributes;
    for (key, value) in [("service.name", "ankka-test"), ("service.version", "1.2.3")] {
        let found = attributes.iter().find(|attribute| attribute.key == key).expect(key);
        assert!(format!("{found:?}").contains(value), "{found:?}");
    }
    let spans: Vec<_> = process.scope_spans.iter().flat_map(|scope| &scope.spans).collect();
    let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["decide", "reconcile"]);
    assert_eq!((&spans[0].parent_span_id, &spans[0].trace_id), (&spans[1].span_id, &spans[1].trace_id));
    assert!(spans[1].attributes.iter().any(|attribute| attribute.key == "name"), "{:?}", spans[1].attributes);
}
