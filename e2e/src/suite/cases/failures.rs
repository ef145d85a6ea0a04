//! A service that cannot run says why, and what runs already goes on.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Event, ResourceQuota, Secret};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::platform::images::PAUSE;
use crate::suite::{
    Case, Cluster,
    cluster::{CART, descriptor, eventually},
    load::Load,
};

/// What the cart writes when it cannot read the settings of its ServiceAccount.
const COMPLAINT: &str = "failed to parse cluster url";

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("a_broken_image_leaves_the_old_instances_serving_and_says_so", |cluster| async move {
            broken_image(&cluster).await
        }),
        Case::new("a_missing_secret_is_named_and_recovers_by_itself", |cluster| async move {
            missing_secret(&cluster).await
        }),
        Case::new("a_quota_is_quoted_and_the_rollout_completes_once_it_is_raised", |cluster| async move {
            quota(&cluster).await
        }),
        Case::new("a_runtime_out_of_range_is_unavailable_with_both_versions", |cluster| async move {
            runtime(&cluster).await
        }),
        Case::new("a_bucket_without_a_store_fails_with_the_reason", |cluster| async move { no_store(&cluster).await }),
        Case::new("an_image_name_with_capitals_is_reported_by_the_node", |cluster| async move {
            image_name(&cluster).await
        }),
        Case::new("a_crash_is_told_with_its_exit_code_and_the_log_by_the_command_line_alone", |cluster| async move {
            crash(&cluster).await
        }),
        Case::new("an_instance_that_never_answers_is_seen_long_before_the_progress_deadline", |cluster| async move {
            silent(&cluster).await
        }),
    ]
}

/// Waits until the service's detail contains `wanted`, and returns its lifecycle.
async fn detail(cluster: &Cluster, namespace: &str, name: &str, wanted: &str) -> Result<String> {
    eventually(&format!("{name} to say {wanted:?}"), Duration::from_mins(1), async || {
        let status = cluster.service(namespace, name).await?.status.unwrap_or_default();
        let said = status.detail.unwrap_or_default();
        Ok(if said.contains(wanted) { Ok(status.lifecycle.unwrap_or_default()) } else { Err(said) })
    })
    .await
}

async fn broken_image(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("failures").await?;
    cluster.apply("failures", &descriptor("broken", json!({}))).await?;
    cluster.lifecycle(&namespace, "broken", "Ready", Duration::from_mins(1)).await?;
    let load = Load::start(cluster.address(&namespace, "broken").await?, 2, 2).await?;
    let broken = json!({ "name": "broken", "service": { "image": "127.0.0.1:1/nobody/here:1" } });
    cluster.apply("failures", &broken).await?;
    let lifecycle = detail(cluster, &namespace, "broken", "Image").await?;
    ensure!(lifecycle == "UpdateInProgress" || lifecycle == "Failed", "{lifecycle}");
    let waited = cluster
        .run("ankka", &["services", "apply", "-f", "-", "-p", "failures", "--wait=20s"], &broken.to_string())
        .await?;
    ensure!(waited.status.code() == Some(1), "apply --wait ended with {}", waited.status);
    cluster.apply("failures", &descriptor("broken", json!({}))).await?;
    cluster.lifecycle(&namespace, "broken", "Ready", Duration::from_mins(1)).await?;
    load.stop().await.flawless(50)
}

async fn missing_secret(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("failures").await?;
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), &namespace);
    cluster.remove(&namespace, "patient").await?;
    let _ = secrets.delete("late", &DeleteParams::default()).await;
    cluster
        .apply(
            "failures",
            &descriptor(
                "patient",
                json!({ "env": [{ "name": "TOKEN", "secretKeyRef": { "name": "late", "key": "token" } }] }),
            ),
        )
        .await?;
    detail(cluster, &namespace, "patient", "late").await?;
    let without: Secret =
        serde_json::from_value(json!({ "metadata": { "name": "late" }, "stringData": { "other": "x" } }))?;
    secrets.create(&PostParams::default(), &without).await?;
    detail(cluster, &namespace, "patient", "token").await?;
    let with: Secret =
        serde_json::from_value(json!({ "metadata": { "name": "late" }, "stringData": { "token": "x" } }))?;
    secrets.replace("late", &PostParams::default(), &with).await?;
    cluster.lifecycle(&namespace, "patient", "Ready", Duration::from_mins(2)).await?;
    Ok(())
}

async fn quota(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("quota").await?;
    let quotas: Api<ResourceQuota> = Api::namespaced(cluster.client.clone(), &namespace);
    let quota: ResourceQuota =
        serde_json::from_value(json!({ "metadata": { "name": "one" }, "spec": { "hard": { "pods": "1" } } }))?;
    let _ = quotas.delete("one", &DeleteParams::default()).await;
    cluster.apply("quota", &descriptor("frugal", json!({}))).await?;
    cluster.lifecycle(&namespace, "frugal", "Ready", Duration::from_mins(1)).await?;
    quotas.create(&PostParams::default(), &quota).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = cluster.pod_uids(&namespace, "frugal").await?;
    cluster.apply("quota", &descriptor("frugal", json!({ "env": [{ "name": "REVISION", "value": "2" }] }))).await?;
    let lifecycle = detail(cluster, &namespace, "frugal", "exceeded quota").await?;
    ensure!(lifecycle == "UpdateInProgress", "{lifecycle}");
    ensure!(cluster.pod_uids(&namespace, "frugal").await? == before, "the old instance was stopped");
    quotas.delete("one", &DeleteParams::default()).await?;
    cluster.lifecycle(&namespace, "frugal", "Ready", Duration::from_mins(3)).await?;
    Ok(())
}

async fn runtime(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("failures").await?;
    cluster.apply("failures", &descriptor("future", json!({ "runtime": "0.9.0" }))).await?;
    let service = cluster.lifecycle(&namespace, "future", "Unavailable", Duration::from_secs(20)).await?;
    let said = service.status.unwrap_or_default();
    let expected = "runtime 0.9.0 is outside the platform's supported range: runtimes 0.1.x–0.2.x (platform 0.2.0); \
                    build the image against a supported version and apply it again";
    ensure!(said.detail.as_deref() == Some(expected), "{:?}", said.detail);
    ensure!(
        said.conditions.iter().any(|condition| condition.type_ == "Stalled" && condition.status == "True"),
        "{:?}",
        said.conditions
    );
    ensure!(cluster.pods(&namespace, "future").await?.is_empty(), "an instance was started");
    Ok(())
}

async fn no_store(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("failures").await?;
    cluster.apply("failures", &descriptor("reports", json!({ "provisionObjectStorage": true }))).await?;
    let service = cluster.lifecycle(&namespace, "reports", "Failed", Duration::from_secs(20)).await?;
    let status = service.status.unwrap_or_default();
    ensure!(
        status.object_storage.is_some_and(|storage| storage.phase == "object storage provisioning failed"),
        "no phase"
    );
    ensure!(
        status.detail.as_deref() == Some("object storage: the installation has no object store"),
        "{:?}",
        status.detail
    );
    ensure!(cluster.pods(&namespace, "reports").await?.is_empty(), "an instance was started");
    Ok(())
}

async fn image_name(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("failures").await?;
    let capitals: Value = json!({ "name": "capitals", "service": { "image": "ACME/Cart:1" } });
    cluster.apply("failures", &capitals).await?;
    detail(cluster, &namespace, "capitals", "InvalidImageName").await?;
    let waited = cluster
        .run("ankka", &["services", "apply", "-f", "-", "-p", "failures", "--wait=60s"], &capitals.to_string())
        .await?;
    ensure!(waited.status.code() == Some(1), "apply --wait ended with {}", waited.status);
    cluster.ok("ankka", &["services", "delete", "capitals", "-p", "failures"], "").await?;
    Ok(())
}

/// A program that says what is wrong, and ends.
async fn crash(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("failures").await?;
    // The cart reads its ServiceAccount's settings first of all, and says what is wrong with them.
    let env = json!([{ "name": "KUBERNETES_SERVICE_HOST", "value": "no host" }]);
    let crashing = json!({ "name": "crashing", "service": { "image": CART, "env": env } });
    let waited = cluster
        .run("ankka", &["services", "apply", "-f", "-", "-p", "failures", "--wait=120s"], &crashing.to_string())
        .await?;
    ensure!(waited.status.code() == Some(1), "apply --wait ended with {}", waited.status);
    let printed = String::from_utf8_lossy(&waited.stderr);
    ensure!(printed.contains("crashed 3 times") && printed.contains("the last lines of"), "{printed}");
    ensure!(printed.contains(COMPLAINT), "what the program wrote is not shown: {printed}");

    detail(cluster, &namespace, "crashing", "container service ended with exit code 1").await?;
    let status = serde_json::to_string(&cluster.service(&namespace, "crashing").await?.status)?;
    ensure!(status.contains("ankka services logs crashing --previous -p failures"), "no next step: {status}");
    ensure!(!status.contains(COMPLAINT), "a line of the log is in the status: {status}");
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), &namespace);
    let about = ListParams::default().fields("involvedObject.kind=AnkkaService,involvedObject.name=crashing");
    let told: Vec<_> = events.list(&about).await?.into_iter().filter_map(|event| event.message).collect();
    ensure!(told.iter().any(|told| told.contains("ended with exit code 1")), "no event says why: {told:?}");
    ensure!(told.iter().all(|told| !told.contains(COMPLAINT)), "a line of the log is in an event: {told:?}");
    cluster.ok("ankka", &["services", "delete", "crashing", "-p", "failures"], "").await?;
    Ok(())
}

/// A program that runs and serves nothing.
async fn silent(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("failures").await?;
    let began = Instant::now();
    cluster.apply("failures", &json!({ "name": "silent", "service": { "image": PAUSE } })).await?;
    let lifecycle =
        detail(cluster, &namespace, "silent", "is running but does not answer GET /ready on port 7626").await?;
    ensure!(lifecycle == "UpdateInProgress", "{lifecycle}");
    ensure!(began.elapsed() < Duration::from_secs(40), "it took {:?}", began.elapsed());
    cluster.ok("ankka", &["services", "delete", "silent", "-p", "failures"], "").await?;
    Ok(())
}
