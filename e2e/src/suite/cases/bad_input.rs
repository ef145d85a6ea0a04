//! Whatever is stored, the answer is one clear error, and other services are not affected.

use std::time::Duration;

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
    vec![Case::new(
        "a_stored_service_that_cannot_be_read_fails_alone",
        |cluster| async move { unreadable(&cluster).await },
    )]
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
    let hooks = [saved(cluster, HOOKS[0]).await?, saved(cluster, HOOKS[1]).await?];
    let outcome = stored_by_hand(cluster, &namespace).await;
    cluster.run("kubectl", &["delete", "ankkaservice/unreadable", "-n", &namespace, "--ignore-not-found"], "").await?;
    cluster.ok("kubectl", &["replace", "-f", "-"], &definition).await?;
    for hook in hooks {
        cluster.ok("kubectl", &["create", "-f", "-"], &hook).await?;
    }
    outcome?;
    eventually("admission to be back", Duration::from_secs(20), async || {
        let refused = cluster
            .run(
                "ankka",
                &["services", "apply", "-f", "-", "-p", "badinput", "--dry-run"],
                r#"{"name":"x","service":{"image":"a:1"}}"#,
            )
            .await?;
        Ok(if refused.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&refused.stderr).into_owned()) })
    })
    .await
}

/// Stores a service of the wrong types with the schema opened and the webhook out of the way.
async fn stored_by_hand(cluster: &Cluster, namespace: &str) -> Result<()> {
    for hook in HOOKS {
        cluster.ok("kubectl", &["delete", hook], "").await?;
    }
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
