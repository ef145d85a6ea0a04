//! What others do to a service's objects is undone, or left alone, as the documents say.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::suite::{
    Case, Cluster,
    cluster::{descriptor, eventually},
};

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("kubectl_scale_is_undone_within_a_second", |cluster| async move { kubectl_scale(&cluster).await }),
        Case::new("what_others_add_under_spec_is_removed_and_their_labels_stay", |cluster| async move {
            edits(&cluster).await
        }),
        Case::new("labels_and_annotations_removed_from_a_descriptor_disappear", |cluster| async move {
            labels(&cluster).await
        }),
        Case::new("a_label_taken_from_any_object_of_the_platform_comes_back", |cluster| async move {
            taken_labels(&cluster).await
        }),
        Case::new("kubectl_rollout_restart_completes", |cluster| async move { rollout_restart(&cluster).await }),
        Case::new("a_strangers_deployment_of_the_same_name_is_never_touched", |cluster| async move {
            stranger(&cluster).await
        }),
        Case::new("http_false_removes_the_service_and_http_true_brings_it_back", |cluster| async move {
            http_off_and_on(&cluster).await
        }),
        Case::new("an_unchanged_reapply_changes_nothing", |cluster| async move { unchanged(&cluster).await }),
    ]
}

async fn ready(cluster: &Cluster, name: &str, fields: Value) -> Result<String> {
    let namespace = cluster.project("drift").await?;
    cluster.apply("drift", &descriptor(name, fields)).await?;
    cluster.lifecycle(&namespace, name, "Ready", Duration::from_mins(1)).await?;
    Ok(namespace)
}

fn deployments(cluster: &Cluster, namespace: &str) -> Api<Deployment> {
    Api::namespaced(cluster.client.clone(), namespace)
}

async fn kubectl_scale(cluster: &Cluster) -> Result<()> {
    let namespace = ready(cluster, "scaled", json!({})).await?;
    let before = cluster.pod_uids(&namespace, "scaled").await?;
    cluster.ok("kubectl", &["scale", "deployment/scaled", "--replicas=7", "-n", &namespace], "").await?;
    let started = Instant::now();
    eventually("the scale to be undone", Duration::from_secs(5), async || {
        let replicas = deployments(cluster, &namespace).get("scaled").await?.spec.and_then(|spec| spec.replicas);
        Ok(if replicas == Some(1) { Ok(()) } else { Err(format!("{replicas:?} replicas")) })
    })
    .await?;
    ensure!(started.elapsed() < Duration::from_secs(1), "it took {:?}", started.elapsed());
    cluster.lifecycle(&namespace, "scaled", "Ready", Duration::from_mins(1)).await?;
    eventually("the other instances to go", Duration::from_mins(1), async || {
        let after = cluster.pod_uids(&namespace, "scaled").await?;
        Ok(if after == before { Ok(()) } else { Err(format!("{after:?} instead of {before:?}")) })
    })
    .await
}

async fn edits(cluster: &Cluster) -> Result<()> {
    let namespace = ready(cluster, "edited", json!({})).await?;
    let api = deployments(cluster, &namespace);
    let edit = json!({
        "metadata": { "labels": { "other.io/label": "stays" }, "annotations": { "other.io/seen": "1" } },
        "spec": { "template": { "spec": { "nodeSelector": { "somewhere": "else" }, "containers": [{ "name": "service", "image": "evil:1" }] } } }
    });
    api.patch("edited", &PatchParams::default(), &Patch::Strategic(edit)).await?;
    eventually("the edit to be undone", Duration::from_secs(10), async || {
        let shown = serde_json::to_value(api.get("edited").await?)?;
        let pod = &shown["spec"]["template"]["spec"];
        Ok(if pod["nodeSelector"].is_null() && pod["containers"][0]["image"] == crate::suite::cluster::CART {
            Ok(())
        } else {
            Err(pod.to_string())
        })
    })
    .await?;
    let shown = serde_json::to_value(api.get("edited").await?)?;
    ensure!(
        shown["metadata"]["labels"]["other.io/label"] == "stays"
            && shown["metadata"]["annotations"]["other.io/seen"] == "1",
        "{}",
        shown["metadata"]
    );
    cluster.lifecycle(&namespace, "edited", "Ready", Duration::from_mins(1)).await?;
    Ok(())
}

async fn labels(cluster: &Cluster) -> Result<()> {
    let namespace = ready(cluster, "labelled", json!({ "labels": { "team": "a", "version": "1", "app.kubernetes.io/name": "mine" }, "annotations": { "example.com/owner": "x" } })).await?;
    let api = deployments(cluster, &namespace);
    let foreign = json!({ "metadata": { "annotations": { "other.io/seen": "1" } } });
    api.patch("labelled", &PatchParams::default(), &Patch::Merge(foreign)).await?;
    let identity = |shown: &Value| shown["metadata"]["labels"]["app.kubernetes.io/name"] == "labelled";
    ensure!(
        identity(&serde_json::to_value(api.get("labelled").await?)?),
        "a label of the descriptor replaced one of the platform's"
    );
    cluster.apply("drift", &descriptor("labelled", json!({ "labels": { "team": "b" } }))).await?;
    cluster.lifecycle(&namespace, "labelled", "Ready", Duration::from_secs(90)).await?;
    let service: Service = Api::namespaced(cluster.client.clone(), &namespace).get("labelled").await?;
    let shown = serde_json::to_value(api.get("labelled").await?)?;
    for place in
        [&shown["metadata"], &shown["spec"]["template"]["metadata"], &serde_json::to_value(&service)?["metadata"]]
    {
        ensure!(
            place["labels"]["team"] == "b"
                && place["labels"]["version"].is_null()
                && place["annotations"]["example.com/owner"].is_null(),
            "{place}"
        );
    }
    ensure!(shown["metadata"]["annotations"]["other.io/seen"] == "1", "another tool's annotation went");
    Ok(())
}

async fn taken_labels(cluster: &Cluster) -> Result<()> {
    let three = json!({ "resources": { "autoscaling": { "minInstances": 3 } } });
    let namespace = ready(cluster, "looted", three).await?;
    let objects = [
        ("serviceaccount", "ankka-looted"),
        ("role", "ankka-looted"),
        ("rolebinding", "ankka-looted"),
        ("configmap", "looted-cluster"),
        ("poddisruptionbudget", "looted"),
        ("service", "looted"),
        ("deployment", "looted"),
        ("networkpolicy", "ankka-project"),
    ];
    let label = async |kind: &str, name: &str| {
        let path = r"jsonpath={.metadata.labels.ankka\.dev/project}";
        cluster.ok("kubectl", &["get", kind, name, "-n", &namespace, "-o", path], "").await
    };
    for (kind, name) in objects {
        cluster
            .ok("kubectl", &["label", kind, name, "-n", &namespace, "--overwrite", "ankka.dev/project=other"], "")
            .await?;
    }
    cluster.ok("kubectl", &["label", "namespace", &namespace, "ankka.dev/project-"], "").await?;
    for (kind, name) in objects.into_iter().chain([("namespace", namespace.as_str())]) {
        eventually(&format!("the label of {kind} {name} to come back"), Duration::from_secs(20), async || {
            let now = label(kind, name).await?;
            Ok(if now == "drift" { Ok(()) } else { Err(now) })
        })
        .await?;
    }
    cluster.remove(&namespace, "looted").await
}

async fn rollout_restart(cluster: &Cluster) -> Result<()> {
    let namespace = ready(cluster, "restarted", json!({})).await?;
    let before = cluster.pod_uids(&namespace, "restarted").await?;
    cluster.ok("kubectl", &["rollout", "restart", "deployment/restarted", "-n", &namespace], "").await?;
    cluster
        .ok("kubectl", &["rollout", "status", "deployment/restarted", "-n", &namespace, "--timeout=90s"], "")
        .await?;
    cluster.lifecycle(&namespace, "restarted", "Ready", Duration::from_mins(1)).await?;
    let after = cluster.pod_uids(&namespace, "restarted").await?;
    ensure!(after.len() == 1 && after != before, "{before:?}, then {after:?}");
    Ok(())
}

async fn stranger(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("drift").await?;
    let api = deployments(cluster, &namespace);
    let foreign: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "stranger" },
        "spec": { "replicas": 0, "selector": { "matchLabels": { "app": "stranger" } },
            "template": { "metadata": { "labels": { "app": "stranger" } }, "spec": { "containers": [{ "name": "c", "image": "elsewhere:1" }] } } }
    }))?;
    let made = api.create(&PostParams::default(), &foreign).await?;
    cluster.apply("drift", &descriptor("stranger", json!({}))).await?;
    let service = cluster.lifecycle(&namespace, "stranger", "Failed", Duration::from_secs(20)).await?;
    let detail = service.status.and_then(|status| status.detail).unwrap_or_default();
    ensure!(detail.contains("stranger") && detail.to_lowercase().contains("deployment"), "{detail}");
    let now = api.get("stranger").await?;
    ensure!(
        now.metadata.generation == made.metadata.generation && now.metadata.labels == made.metadata.labels,
        "it was touched: {:?}",
        now.metadata
    );
    api.delete("stranger", &DeleteParams::default()).await?;
    cluster.ok("ankka", &["services", "delete", "stranger", "-p", "drift"], "").await?;
    Ok(())
}

async fn http_off_and_on(cluster: &Cluster) -> Result<()> {
    let namespace = ready(cluster, "silent", json!({ "port": 8080 })).await?;
    let services: Api<Service> = Api::namespaced(cluster.client.clone(), &namespace);
    ensure!(cluster.address(&namespace, "silent").await?.port() == 8080, "the port is not 8080");
    cluster.apply("drift", &descriptor("silent", json!({ "http": false }))).await?;
    cluster.lifecycle(&namespace, "silent", "Ready", Duration::from_secs(90)).await?;
    ensure!(services.get_opt("silent").await?.is_none(), "the Service is still there");
    let shown = serde_json::to_value(deployments(cluster, &namespace).get("silent").await?)?;
    let container = &shown["spec"]["template"]["spec"]["containers"][0];
    ensure!(
        !container["ports"].to_string().contains("\"http\"")
            && !container["env"].to_string().contains("ANKKA_HTTP_PORT"),
        "{container}"
    );
    cluster.apply("drift", &descriptor("silent", json!({ "port": 9090 }))).await?;
    cluster.lifecycle(&namespace, "silent", "Ready", Duration::from_secs(90)).await?;
    ensure!(cluster.address(&namespace, "silent").await?.port() == 9090, "the port is not 9090");
    Ok(())
}

async fn unchanged(cluster: &Cluster) -> Result<()> {
    let namespace = ready(cluster, "same", json!({ "labels": { "a": "1", "b": "2" } })).await?;
    let versions = async || -> Result<BTreeMap<String, String>> {
        let listed = cluster
            .ok(
                "kubectl",
                &[
                    "get",
                    "deployments,services,configmaps,serviceaccounts,roles,rolebindings,ankkaservices",
                    "-n",
                    &namespace,
                    "-o",
                    "json",
                ],
                "",
            )
            .await?;
        let listed: Value = serde_json::from_str(&listed)?;
        Ok(listed["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|item| item["metadata"]["name"].as_str().is_some_and(|name| name.contains("same")))
            .map(|item| {
                (
                    format!("{} {}", item["kind"], item["metadata"]["name"]),
                    item["metadata"]["resourceVersion"].to_string(),
                )
            })
            .collect())
    };
    let before = versions().await?;
    ensure!(before.len() >= 7, "{before:?}");
    let said = cluster.apply("drift", &descriptor("same", json!({ "labels": { "b": "2", "a": "1" } }))).await?;
    ensure!(said.contains("unchanged"), "{said}");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = versions().await?;
    ensure!(before == after, "{before:?}, then {after:?}");
    Ok(())
}
