//! The documents' own examples run as printed there; only the images are the local platform's.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use crate::suite::{
    Case, Cluster,
    cluster::{CART, eventually},
};

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("the_minimal_descriptor_runs_one_small_instance_on_port_9000", |cluster| async move {
            minimal(&cluster).await
        }),
        Case::new(
            "the_complete_descriptor_runs_three_medium_instances",
            |cluster| async move { complete(&cluster).await },
        ),
        Case::new("the_process_descriptor_runs_beside_the_sidecar", |cluster| async move { process(&cluster).await }),
    ]
}

async fn minimal(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("minimal").await?;
    cluster.apply("minimal", &json!({ "name": "cart", "service": { "image": CART } })).await?;
    let service = cluster.lifecycle(&namespace, "cart", "Ready", Duration::from_mins(1)).await?;
    let status = service.status.unwrap_or_default();
    ensure!((status.ready_instances, status.desired_instances) == (1, 1), "{status:?}");
    ensure!(cluster.address(&namespace, "cart").await?.port() == 9000, "the port is not 9000");
    let table = cluster.ok("kubectl", &["get", "ankkaservices", "-n", &namespace], "").await?;
    let header: Vec<&str> = table.lines().next().unwrap_or_default().split_whitespace().collect();
    ensure!(header == ["NAME", "STATUS", "READY", "DESIRED", "GEN", "IMAGE", "AGE"], "{table}");
    let wide = cluster.ok("kubectl", &["get", "asvc", "-n", &namespace, "-o", "wide"], "").await?;
    for column in ["ADDRESS", "DATABASE", "STORAGE", "DETAIL"] {
        ensure!(wide.contains(column), "no {column} in {wide}");
    }
    Ok(())
}

async fn complete(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("complete").await?;
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), &namespace);
    let secret = serde_json::from_value(
        json!({ "metadata": { "name": "cart-secrets" }, "stringData": { "anthropic-api-key": "not-a-real-key" } }),
    )?;
    // A second run of the suite finds it there.
    let _ = secrets.create(&PostParams::default(), &secret).await;
    let descriptor: Value = json!({
      "name": "cart",
      "service": {
        "image": CART,
        "runtime": "0.2.0",
        "env": [
          { "name": "LOG_LEVEL", "value": "info" },
          { "name": "ANTHROPIC_API_KEY", "secretKeyRef": { "name": "cart-secrets", "key": "anthropic-api-key" } }
        ],
        "labels": { "team": "checkout" },
        "annotations": { "example.com/owner": "checkout-team" },
        "http": true,
        "port": 9000,
        "resources": {
          "instanceType": "medium",
          "autoscaling": { "minInstances": 3, "maxInstances": 10, "targetCpuPercent": 80 }
        }
      }
    });
    cluster.apply("complete", &descriptor).await?;
    cluster.lifecycle(&namespace, "cart", "Ready", Duration::from_mins(2)).await?;
    let deployment: Deployment = Api::namespaced(cluster.client.clone(), &namespace).get("cart").await?;
    let shown = serde_json::to_value(&deployment)?;
    let container = &shown["spec"]["template"]["spec"]["containers"][0];
    ensure!(
        container["resources"]
            == json!({ "limits": { "cpu": "1", "memory": "1Gi" }, "requests": { "cpu": "1", "memory": "1Gi" } })
            || container["resources"]["limits"] == json!({ "cpu": "1000m", "memory": "1024Mi" }),
        "{}",
        container["resources"]
    );
    ensure!(container["imagePullPolicy"] == "IfNotPresent" && container["livenessProbe"].is_null(), "{container}");
    ensure!(
        shown["spec"]["strategy"]["rollingUpdate"] == json!({ "maxSurge": 1, "maxUnavailable": 0 }),
        "{}",
        shown["spec"]["strategy"]
    );
    for place in [&shown["metadata"], &shown["spec"]["template"]["metadata"]] {
        ensure!(
            place["labels"]["team"] == "checkout" && place["annotations"]["example.com/owner"] == "checkout-team",
            "{place}"
        );
    }
    let scalers =
        cluster.ok("kubectl", &["get", "horizontalpodautoscalers", "-n", &namespace, "-o", "name"], "").await?;
    ensure!(scalers.is_empty(), "an autoscaler was made: {scalers}");
    Ok(())
}

async fn process(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("process").await?;
    cluster
        .apply(
            "process",
            &json!({ "name": "cart", "service": { "image": CART, "hosting": "process", "protocol": "1.0" } }),
        )
        .await?;
    cluster.lifecycle(&namespace, "cart", "Ready", Duration::from_mins(1)).await?;
    let pods = cluster.pods(&namespace, "cart").await?;
    let names: Vec<_> = pods
        .iter()
        .flat_map(|pod| pod.spec.iter().flat_map(|spec| spec.containers.iter().map(|container| container.name.clone())))
        .collect();
    ensure!(names == ["sidecar", "service"], "{names:?}");
    let address = cluster.address(&namespace, "cart").await?;
    eventually("the service to answer through its sidecar", Duration::from_secs(30), async || {
        Ok(Ok(crate::suite::load::Client::fresh(address).request("/").await?))
    })
    .await?;
    Ok(())
}
