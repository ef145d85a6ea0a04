//! Whatever is stored, the answer is one clear error, and other services are not affected.

use std::{future::Future, time::Duration};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::suite::{
    Case, Cluster,
    cluster::{descriptor, eventually},
};

const DEFINITION: &str = "customresourcedefinition/ankkaservices.ankka.dev";
const HOOKS: [&str; 2] = ["validatingwebhookconfiguration/ankka-webhook", "mutatingwebhookconfiguration/ankka-webhook"];

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "a_stored_service_that_cannot_be_read_fails_alone",
            |cluster| async move { unreadable(&cluster).await },
        ),
        Case::new("a_service_stored_under_older_rules_can_be_paused_labelled_and_deleted", |cluster| async move {
            older_rules(&cluster).await
        }),
    ]
}

/// Runs `stored` with the webhook out of the way, and puts its configurations back.
async fn without_admission(cluster: &Cluster, stored: impl Future<Output = Result<()>>) -> Result<()> {
    let hooks = [saved(cluster, HOOKS[0]).await?, saved(cluster, HOOKS[1]).await?];
    for hook in HOOKS {
        cluster.ok("kubectl", &["delete", hook], "").await?;
    }
    let outcome = stored.await;
    for hook in hooks {
        cluster.ok("kubectl", &["create", "-f", "-"], &hook).await?;
    }
    outcome?;
    eventually("admission to be back", Duration::from_secs(20), async || {
        let bad = r#"{"apiVersion":"ankka.dev/v1alpha1","kind":"AnkkaService","metadata":{"name":"x"},"spec":{"service":{}}}"#;
        let refused = cluster.run("kubectl", &["create", "--dry-run=server", "-n", "default", "-f", "-"], bad).await?;
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        Ok(if said.contains("service image must not be empty") { Ok(()) } else { Err(said) })
    })
    .await
}

/// A service that broke no rule when it was stored and breaks one now goes on, as long as its descriptor stays as it is.
async fn older_rules(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("badinput").await?;
    cluster.remove(&namespace, "old").await?;
    let old = json!({ "apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaService", "metadata": { "name": "old", "namespace": namespace },
        "spec": { "service": descriptor("old", json!({ "port": 0 }))["service"] } });
    without_admission(cluster, async {
        cluster.ok("kubectl", &["create", "-f", "-"], &old.to_string()).await.map(drop)
    })
    .await?;
    let service = cluster.lifecycle(&namespace, "old", "Failed", Duration::from_secs(20)).await?;
    let detail = service.status.and_then(|status| status.detail).unwrap_or_default();
    ensure!(detail == "service port 0 is outside the range 1-65535", "{detail}");
    let patch = async |change: &str| {
        cluster.run("kubectl", &["patch", "ankkaservice/old", "-n", &namespace, "--type=merge", "-p", change], "").await
    };
    ensure!(patch(r#"{"metadata":{"labels":{"team":"x"}}}"#).await?.status.success(), "it cannot be labelled");
    ensure!(patch(r#"{"spec":{"paused":true}}"#).await?.status.success(), "it cannot be paused");
    cluster.lifecycle(&namespace, "old", "Paused", Duration::from_secs(20)).await?;
    let changed = patch(r#"{"spec":{"service":{"image":"docker.io/local/cart:2"}}}"#).await?;
    let said = String::from_utf8_lossy(&changed.stderr).into_owned();
    ensure!(said.contains("service port 0 is outside the range 1-65535"), "its fault was admitted again: {said}");
    cluster.ok("kubectl", &["delete", "ankkaservice/old", "-n", &namespace, "--timeout=30s"], "").await.map(drop)
}

/// An object as it is stored, fit to be put back.
async fn saved(cluster: &Cluster, object: &str) -> Result<String> {
    let mut stored: Value = serde_json::from_str(&cluster.ok("kubectl", &["get", object, "-o", "json"], "").await?)?;
    if let Some(metadata) = stored["metadata"].as_object_mut() {
        metadata.retain(|field, _| ["name", "labels", "annotations"].contains(&field.as_str()));
    }
    if let Some(fields) = stored.as_object_mut() {
        fields.remove("status");
    }
    Ok(stored.to_string())
}

async fn unreadable(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("badinput").await?;
    let definition = saved(cluster, DEFINITION).await?;
    without_admission(cluster, async {
        let outcome = stored_by_hand(cluster, &namespace).await;
        cluster
            .ok("kubectl", &["delete", "ankkaservice/unreadable", "-n", &namespace, "--ignore-not-found"], "")
            .await?;
        cluster.ok("kubectl", &["replace", "-f", "-"], &definition).await?;
        outcome
    })
    .await
}

/// Stores a service of the wrong types with the schema opened.
async fn stored_by_hand(cluster: &Cluster, namespace: &str) -> Result<()> {
    let open = json!([{ "op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
        "value": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } }]);
    cluster.ok("kubectl", &["patch", DEFINITION, "--type=json", "-p", &open.to_string()], "").await?;
    let wrong = json!({ "apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaService", "metadata": { "name": "unreadable", "namespace": namespace },
        "spec": { "service": { "image": ["not", "text"], "port": "http" } } });
    eventually("the opened schema to be served", Duration::from_secs(20), async || {
        let stored = cluster.run("kubectl", &["create", "--validate=false", "-f", "-"], &wrong.to_string()).await?;
        Ok(if stored.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&stored.stderr).into_owned()) })
    })
    .await?;
    let said = eventually("the service to say that it cannot be read", Duration::from_secs(20), async || {
        let status = cluster
            .ok(
                "kubectl",
                &[
                    "get",
                    "ankkaservice/unreadable",
                    "-n",
                    namespace,
                    "-o",
                    "jsonpath={.status.lifecycle} {.status.detail}",
                ],
                "",
            )
            .await?;
        Ok(if status.starts_with("Failed") { Ok(status) } else { Err(status) })
    })
    .await?;
    ensure!(said.contains("cannot be read"), "{said}");
    cluster.ok("kubectl", &["create", "-f", "-"], &json!({ "apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaService",
        "metadata": { "name": "beside", "namespace": namespace }, "spec": { "service": descriptor("beside", json!({}))["service"] } }).to_string()).await?;
    cluster.lifecycle(namespace, "beside", "Ready", Duration::from_mins(1)).await?;
    cluster.remove(namespace, "beside").await
}
