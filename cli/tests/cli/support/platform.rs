//! A cluster with the platform in it, as `status` and `doctor` see it.

use serde_json::{Value, json};

use super::objects::{PROJECTS, SERVICES, service, status};
use super::{Reply, Request};

const CLIENT: &str = env!("CARGO_PKG_VERSION");

/// A process of the platform with this many instances ready, and these settings.
pub(crate) fn process(name: &str, ready: i32, settings: &Value) -> Value {
    let env: Vec<Value> = settings
        .as_object()
        .expect("settings by name")
        .iter()
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect();
    json!({
        "metadata": { "name": format!("ankka-{name}"), "namespace": "ankka-system" },
        "spec": {
            "replicas": 2, "selector": {},
            "template": { "spec": { "containers": [{ "name": name, "image": "i:1", "env": env }] } },
        },
        "status": { "readyReplicas": ready },
    })
}

/// What a cluster in good order answers.
pub(crate) fn healthy(request: &Request) -> Reply {
    let path = request.path.as_str();
    if path == "/version" {
        return Reply::ok(json!({
            "major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "", "buildDate": "",
            "goVersion": "", "compiler": "", "platform": "",
        }));
    }
    if let Some(name) = path.strip_prefix("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/") {
        let noted = json!({
            "ankka.dev/platform-version": CLIENT, "ankka.dev/namespace-prefix": "ankka",
            "ankka.dev/base-domain": "apps.example.com",
        });
        return Reply::ok(json!({ "metadata": { "name": name, "annotations": noted } }));
    }
    if path.starts_with("/apis/coordination.k8s.io/") {
        return Reply::ok(json!({ "metadata": { "name": "l" }, "spec": {
            "holderIdentity": "ankka-operator-1_abc", "leaseDurationSeconds": 15, "renewTime": "2099-01-01T00:00:00.000000Z",
        } }));
    }
    match (request.method.as_str(), path) {
        ("GET", "/apis/apps/v1/deployments") => {
            assert!(request.query.contains("part-of%3Dankka"), "{}", request.query);
            let gateway = json!({ "ANKKA_GATEWAY_NAMESPACE": "ankka-gateway", "ANKKA_GATEWAY_NAME": "ankka" });
            Reply::list(&[process("webhook", 2, &json!({})), process("operator", 2, &gateway)])
        }
        ("GET", "/apis/ankka.dev/v1alpha1/ankkaservices") => Reply::list(&[
            service("cart", 1, &status(1, "Ready", 1, 1)),
            service("mail", 1, &status(1, "Ready", 1, 1)),
            service("orders", 2, &status(2, "Failed", 0, 1)),
        ]),
        ("POST", SERVICES) => {
            assert!(request.query.contains("dryRun=All"), "nothing is stored: {}", request.query);
            let said = "admission webhook \"services.ankka.dev\" denied the request: service image must not be empty";
            Reply::status(422, "Invalid", said, &json!({ "kind": "ankkaservices" }))
        }
        ("POST", PROJECTS) => {
            assert!(request.query.contains("dryRun=All"), "nothing is stored: {}", request.query);
            let said = "admission webhook \"projects.ankka.dev\" denied the request: project id 'platform' is reserved for the platform's own workloads";
            Reply::status(422, "Invalid", said, &json!({ "kind": "ankkaprojects" }))
        }
        ("GET", "/api/v1/namespaces/ankka-shop") => {
            Reply::ok(json!({ "metadata": { "name": "ankka-shop", "labels": { "ankka.dev/project": "shop" } } }))
        }
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews") => {
            let allowed = request.body["spec"]["resourceAttributes"]["resource"] != "secrets";
            Reply::created(json!({ "spec": {}, "status": { "allowed": allowed } }))
        }
        ("GET", "/apis/gateway.networking.k8s.io/v1/namespaces/ankka-gateway/gateways/ankka") => Reply::ok(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": { "name": "ankka" },
            "status": { "conditions": [{ "type": "Programmed", "status": "True" }] },
        })),
        ("GET", "/api/v1/nodes") => {
            let info = json!({
                "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
                "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "operatingSystem": "linux",
                "osImage": "", "systemUUID": "",
            });
            let ready = json!([{ "type": "Ready", "status": "True" }]);
            let node = json!({ "metadata": { "name": "node-1" }, "status": { "conditions": ready, "nodeInfo": info } });
            Reply::list(&[node])
        }
        other => panic!("{other:?}"),
    }
}

/// What a cluster says of all that the caller may not see.
pub(crate) fn forbidden(request: &Request) -> Reply {
    let said = format!("it is forbidden: User \"ann\" cannot {} it", request.method.to_lowercase());
    Reply::status(403, "Forbidden", &said, &json!({}))
}
