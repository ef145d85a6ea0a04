//! The endpoints, asked as the API server asks them.
#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

use ankka_webhook::{
    Settings,
    server::{App, LARGEST_BODY, admission, plain},
};
use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
};
use http_body_util::BodyExt;
use proptest::{collection, prelude::*};
use serde_json::{Value, json};
use tower::ServiceExt;

fn app() -> App {
    let get = |name: &str| match name {
        "POD_NAMESPACE" => Some("ankka-system".to_owned()),
        "ANKKA_WEBHOOK_BENCHMARK" => Some("1".to_owned()),
        _ => None,
    };
    App::new(Settings::read(get).unwrap())
}

async fn send(router: Router, path: &str, body: Vec<u8>) -> (StatusCode, Vec<u8>) {
    let request = Request::post(path).header("content-type", "application/json").body(Body::from(body)).unwrap();
    let response = router.oneshot(request).await.unwrap();
    let status = response.status();
    (status, response.into_body().collect().await.unwrap().to_bytes().to_vec())
}

/// The `response` to a review of this request.
async fn ask(path: &str, request: Value) -> Value {
    let (status, body) = send(admission(app()), path, review(&request).to_string().into_bytes()).await;
    assert_eq!(status, StatusCode::OK);
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (answer["apiVersion"].as_str(), answer["kind"].as_str()),
        (Some("admission.k8s.io/v1"), Some("AdmissionReview"))
    );
    assert_eq!(answer["response"]["uid"], "7f3c");
    answer["response"].clone()
}

/// A review with everything the API server puts into one.
fn review(request: &Value) -> Value {
    let mut review = json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "7f3c",
            "kind": {"group": "ankka.dev", "version": "v1alpha1", "kind": "AnkkaService"},
            "resource": {"group": "ankka.dev", "version": "v1alpha1", "resource": "ankkaservices"},
            "requestKind": {"group": "ankka.dev", "version": "v1alpha1", "kind": "AnkkaService"},
            "requestResource": {"group": "ankka.dev", "version": "v1alpha1", "resource": "ankkaservices"},
            "name": "cart", "namespace": "ankka-shop", "operation": "CREATE",
            "userInfo": {"username": "ada", "uid": "1", "groups": ["system:authenticated"], "extra": {"scopes": ["x"]}},
            "object": null, "oldObject": null, "dryRun": false,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl-create"},
        },
    });
    for (field, value) in request.as_object().unwrap() {
        review["request"][field] = value.clone();
    }
    review
}

fn service(spec: &Value) -> Value {
    json!({
        "apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaService",
        "metadata": {
            "name": "cart", "namespace": "ankka-shop", "uid": "u-1", "generation": 4,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [{"manager": "ankka", "operation": "Apply", "fieldsV1": {"f:spec": {"f:service": {}}}}],
        },
        "spec": spec,
        "status": {"lifecycle": "Ready", "readyInstances": 1},
    })
}

#[tokio::test]
async fn a_denial_carries_what_kubectl_prints_line_by_line() {
    let spec = json!({"service": {"port": 65536, "resources": {"instanceType": "huge"}}});
    let response = ask("/validate/services", json!({"object": service(&spec)})).await;
    let image = "service image must not be empty";
    let port = "service port 65536 is outside the range 1-65535";
    let size = "unknown instanceType 'huge'; one of small, medium, large";
    let cause = |field: &str, message: &str| json!({"reason": "FieldValueInvalid", "field": field, "message": message});
    assert_eq!(
        response,
        json!({
            "uid": "7f3c", "allowed": false,
            "status": {
                "status": "Failure", "code": 422, "reason": "Invalid",
                "message": format!("AnkkaService.ankka.dev \"cart\" is invalid: [spec.service.image: {image}, spec.service.port: {port}, spec.service.resources.instanceType: {size}]"),
                "details": {
                    "name": "cart", "group": "ankka.dev", "kind": "AnkkaService",
                    "causes": [
                        cause("spec.service.image", image),
                        cause("spec.service.port", port),
                        cause("spec.service.resources.instanceType", size),
                    ],
                },
            },
        })
    );
}

#[tokio::test]
async fn a_sound_service_passes_both_endpoints() {
    let object = service(&json!({"service": {"image": "i:1"}}));
    let response = ask("/validate/services", json!({"object": object})).await;
    assert_eq!(response, json!({"uid": "7f3c", "allowed": true}));
    let response = ask("/mutate/services", json!({"object": object})).await;
    assert_eq!((response["allowed"].as_bool(), response["patchType"].as_str()), (Some(true), Some("JSONPatch")));
    let patch: k8s_openapi::ByteString = serde_json::from_value(response["patch"].clone()).unwrap();
    let patch: Value = serde_json::from_slice(&patch.0).unwrap();
    assert_eq!((patch[0]["op"].as_str(), patch[0]["path"].as_str()), (Some("add"), Some("/metadata/annotations")));
    let history: Value = serde_json::from_str(patch[0]["value"]["ankka.dev/changes"].as_str().unwrap()).unwrap();
    assert_eq!((history[0]["kind"].as_str(), history[0]["who"].as_str()), (Some("applied"), Some("ada")));
}

#[tokio::test]
async fn an_unchanged_update_has_neither_patch_nor_warning() {
    let object = service(&json!({"service": {"image": "i:1", "resources": {"autoscaling": {"minInstances": 2}}}}));
    for path in ["/validate/services", "/mutate/services"] {
        let response = ask(path, json!({"operation": "UPDATE", "object": object, "oldObject": object})).await;
        assert_eq!(response, json!({"uid": "7f3c", "allowed": true}), "{path}");
    }
}

#[tokio::test]
async fn warnings_are_sentences_the_api_server_passes_on_whole() {
    let even = json!({"service": {"image": "i:1", "resources": {"autoscaling": {"minInstances": 4}}}, "restarts": 1});
    let before = json!({"service": {"image": "i:1"}});
    let response = ask(
        "/validate/services",
        json!({"operation": "UPDATE", "object": service(&even), "oldObject": service(&before)}),
    )
    .await;
    let warnings = response["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 2);
    assert!(warnings.iter().all(|warning| warning.as_str().unwrap().len() <= 256));
}

#[tokio::test]
async fn a_finalizer_can_be_taken_from_an_object_that_breaks_every_rule() {
    let mut old = service(&json!({"service": {"port": 0, "hosting": "x"}}));
    old["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    old["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let mut released = old.clone();
    released["metadata"]["finalizers"] = json!([]);
    let request = json!({"operation": "UPDATE", "object": released, "oldObject": old});
    assert_eq!(ask("/validate/services", request).await["allowed"], true);
}

#[tokio::test]
async fn a_project_is_judged_by_its_own_rules() {
    let object = json!({"metadata": {"name": "Shop"}, "spec": {"imagePullSecrets": [""]}});
    let response = ask("/validate/projects", json!({"object": object, "name": "Shop", "namespace": null})).await;
    let causes = response["status"]["details"]["causes"].as_array().unwrap();
    let fields: Vec<_> = causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["metadata.name", "spec.imagePullSecrets[0]"]);
    assert_eq!(response["status"]["details"]["kind"], "AnkkaProject");
    let good = json!({"metadata": {"name": "shop"}});
    assert_eq!(ask("/validate/projects", json!({"object": good})).await["allowed"], true);
}

#[tokio::test]
async fn what_is_no_review_is_refused_with_a_reason() {
    for body in [&b""[..], b"\xef\xbb\xbf{}", b"{}", b"[]", b"null", br#"{"request":{"operation":"CREATE"}}"#] {
        let (status, answer) = send(admission(app()), "/validate/services", body.to_vec()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(String::from_utf8(answer).unwrap().starts_with("cannot read the body as an AdmissionReview"));
    }
}

#[tokio::test]
async fn a_review_of_seven_megabytes_is_read_and_a_larger_one_is_not() {
    let labels: serde_json::Map<_, _> =
        (0..20_000).map(|n| (format!("example.com/{n:040}"), json!("x".repeat(60)))).collect();
    let spec = json!({"service": {"image": "i:1", "labels": labels}});
    let body =
        review(&json!({"operation": "UPDATE", "object": service(&spec), "oldObject": service(&json!({}))})).to_string();
    assert!(body.len() > 2 * 1024 * 1024);
    let (status, _) = send(admission(app()), "/validate/services", body.into_bytes()).await;
    assert_eq!(status, StatusCode::OK);
    let (status, _) = send(admission(app()), "/validate/services", vec![b' '; LARGEST_BODY + 1]).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn the_endpoint_to_compare_with_allows_everything_and_only_in_a_benchmark() {
    let response = ask("/allow", json!({"object": service(&json!({}))})).await;
    assert_eq!(response, json!({"uid": "7f3c", "allowed": true}));
    let usual = App::new(Settings::read(|name| (name == "POD_NAMESPACE").then(|| "ankka-system".to_owned())).unwrap());
    assert_eq!(
        send(admission(usual), "/allow", review(&json!({})).to_string().into_bytes()).await.0,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn health_and_metrics_are_served_in_the_clear() {
    let app = app();
    let get = async |path: &str| {
        let response = plain(app.clone()).oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
        let status = response.status();
        (status, String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap())
    };
    let body = review(&json!({"object": service(&json!({}))})).to_string().into_bytes();
    send(admission(app.clone()), "/validate/services", body).await;
    assert_eq!(get("/healthz").await.0, StatusCode::OK);
    let (status, reason) = get("/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(reason.starts_with("not ready: no certificate"), "{reason}");
    let metrics = get("/metrics").await.1;
    assert!(metrics.contains(r#"ankka_webhook_reviews_total{endpoint="services",outcome="denied"} 1"#), "{metrics}");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let key = prop_oneof![
            ".{0,6}",
            proptest::sample::select(vec![
                "metadata",
                "name",
                "namespace",
                "annotations",
                "ankka.dev/changes",
                "generation",
                "deletionTimestamp",
                "spec",
                "service",
                "image",
                "env",
                "value",
                "secretKeyRef",
                "port",
                "labels",
                "resources",
                "autoscaling",
                "minInstances",
                "restarts",
                "storage",
                "move",
                "administrators",
                "imagePullSecrets",
            ])
            .prop_map(str::to_owned),
        ];
        prop_oneof![
            collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            collection::btree_map(key, inner, 0..6).prop_map(Value::from_iter),
        ]
    })
}

const PATHS: [&str; 3] = ["/validate/services", "/validate/projects", "/mutate/services"];

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

proptest! {
    #[test]
    fn any_bytes_get_an_answer(body: Vec<u8>, path in 0..3usize) {
        let (status, _) = block(send(admission(app()), PATHS[path], body));
        prop_assert_eq!(status, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn any_objects_get_a_review_that_is_whole(object in any_json(), old in any_json(), update: bool, path in 0..3usize) {
        let operation = if update { "UPDATE" } else { "CREATE" };
        let response = block(ask(PATHS[path], json!({"operation": operation, "object": object, "oldObject": old})));
        let allowed = response["allowed"].as_bool();
        prop_assert!(allowed.is_some());
        if allowed == Some(false) {
            prop_assert_eq!(response["status"]["code"].as_u64(), Some(422));
            prop_assert!(!response["status"]["details"]["causes"].as_array().unwrap().is_empty());
        }
        prop_assert_eq!(response.get("patch").is_some(), response.get("patchType").is_some());
    }
}
