//! Objects as an API server would answer them.

use serde_json::{Value, json};

/// Where the services of project `shop` are.
pub(crate) const SERVICES: &str = "/apis/ankka.dev/v1alpha1/namespaces/ankka-shop/ankkaservices";
/// Where the projects are.
pub(crate) const PROJECTS: &str = "/apis/ankka.dev/v1alpha1/ankkaprojects";
/// Where the pods of project `shop` are.
pub(crate) const PODS: &str = "/api/v1/namespaces/ankka-shop/pods";

/// Where a login asks who it is.
pub(crate) const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// The definition of services, which says what is installed.
pub(crate) const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ankkaservices.ankka.dev";

/// A project, which is ready or has not been looked at.
pub(crate) fn project(name: &str, ready: bool) -> Value {
    let conditions = json!([{ "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-11-30T12:00:00Z" }]);
    json!({
        "apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaProject",
        "metadata": { "name": name, "uid": "u-1", "generation": 1, "resourceVersion": "5" },
        "spec": { "administrators": [{ "kind": "User", "name": "ann" }] },
        "status": if ready { json!({ "observedGeneration": 1, "namespace": format!("ankka-{name}"), "conditions": conditions }) } else { Value::Null },
    })
}

/// A service of project `shop` at this generation, with this status.
pub(crate) fn service(name: &str, generation: i64, status: &Value) -> Value {
    json!({
        "apiVersion": "ankka.dev/v1alpha1",
        "kind": "AnkkaService",
        "metadata": {
            "name": name, "namespace": "ankka-shop", "uid": "u-1", "generation": generation,
            "resourceVersion": "7",
            "managedFields": [{
                "manager": "ankka", "operation": "Apply", "apiVersion": "ankka.dev/v1alpha1",
                "time": "2026-11-30T12:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {},
            }],
        },
        "spec": { "service": { "image": "registry.example.com/acme/cart:1.4.2" } },
        "status": status,
    })
}

/// A status that says this of this generation.
pub(crate) fn status(observed: i64, lifecycle: &str, ready: i64, desired: i64) -> Value {
    json!({
        "observedGeneration": observed, "lifecycle": lifecycle,
        "readyInstances": ready, "desiredInstances": desired,
        "address": "http://cart.ankka-shop.svc.cluster.local:9000",
        "database": { "phase": "supplied" },
    })
}

/// A pod of the service `cart` whose one container is in this state.
pub(crate) fn pod(name: &str, state: &Value, restarts: i32) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "ankka-shop", "resourceVersion": "8",
            "creationTimestamp": "2099-01-01T00:00:00Z",
            "labels": { "pod-template-hash": "abc", "ankka.dev/service": "cart" },
        },
        "spec": { "containers": [{ "name": "service", "image": "i:1" }] },
        "status": {
            "conditions": [{ "type": "Ready", "status": "False" }],
            "containerStatuses": [{
                "name": "service", "image": "i:1", "imageID": "", "ready": false,
                "restartCount": restarts, "state": state,
            }],
        },
    })
}

/// An event of a watch.
pub(crate) fn event(kind: &str, object: &Value) -> Value {
    json!({ "type": kind, "object": object })
}

/// A pod of the service `cart` that a ReplicaSet made at this second and that runs.
pub(crate) fn instance(name: &str, second: u8) -> Value {
    let mut pod = pod(name, &json!({ "running": {} }), 0);
    pod["metadata"]["creationTimestamp"] = json!(format!("2026-11-30T12:00:{second:02}Z"));
    pod["metadata"]["ownerReferences"] = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "cart-abc", "uid": "r-1", "controller": true }]);
    pod["status"]["phase"] = json!("Running");
    pod["status"]["conditions"][0]["status"] = json!("True");
    pod["status"]["containerStatuses"][0]["containerID"] = json!(format!("containerd://{name}"));
    pod
}
