//! Upgrading, removing and installing the platform again disturbs no service.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ankka_crds::AnkkaService;
use anyhow::{Context, Result, ensure};
use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::paths::workspace;
use crate::suite::{
    Case, Cluster,
    cluster::{descriptor, eventually},
};

const RELEASE: &str = "ankka";
const NAMESPACE: &str = "ankka-system";

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("the_chart_passes_lint_and_its_own_test", |cluster| async move { lint(&cluster).await }),
        Case::new("three_helm_upgrades_fail_no_apply", |cluster| async move { upgrades(cluster).await }),
        Case::new("uninstall_and_install_again_leave_ten_services_running", |cluster| async move {
            reinstall(&cluster).await
        }),
        Case::new("without_a_webhook_only_writes_of_our_resources_wait", |cluster| async move {
            no_webhook(&cluster).await
        }),
    ]
}

async fn lint(cluster: &Cluster) -> Result<()> {
    cluster.ok("helm", &["lint", "--strict", &chart()], "").await?;
    cluster.ok("helm", &["test", RELEASE, "-n", NAMESPACE, "--timeout", "120s"], "").await?;
    Ok(())
}

/// The chart's folder.
fn chart() -> String {
    workspace().join("helm/ankka").display().to_string()
}

async fn values(cluster: &Cluster) -> Result<tempfile::NamedTempFile> {
    let values = cluster.ok("helm", &["get", "values", RELEASE, "-n", NAMESPACE, "-o", "yaml"], "").await?;
    let file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    std::fs::write(file.path(), values)?;
    Ok(file)
}

async fn install(cluster: &Cluster, values: &Path, extra: &[&str]) -> Result<()> {
    let values = values.to_str().context("the path is text")?;
    let chart = chart();
    let mut args =
        vec!["upgrade", "--install", RELEASE, &chart, "-n", NAMESPACE, "-f", values, "--wait", "--timeout", "180s"];
    args.extend(extra);
    cluster.ok("helm", &args, "").await?;
    Ok(())
}

async fn upgrades(cluster: Arc<Cluster>) -> Result<()> {
    let namespace = cluster.project("upgrades").await?;
    let values = values(&cluster).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let api: Api<AnkkaService> = Api::namespaced(cluster.client.clone(), &namespace);
    let applies = tokio::spawn({
        let stop = stop.clone();
        async move {
            let (mut done, mut failed) = (0, Vec::new());
            let wanted = json!({ "apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaService", "metadata": { "name": "loop" }, "spec": descriptor("loop", json!({}))["service"].as_object().map(|service| json!({ "service": service })) });
            let how = PatchParams::apply("e2e").dry_run();
            while !stop.load(Ordering::Relaxed) {
                match api.patch("loop", &how, &Patch::Apply(&wanted)).await {
                    Ok(_) => done += 1,
                    Err(error) => failed.push(error.to_string()),
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            (done, failed)
        }
    });
    let upgraded = async {
        for number in 1..=3 {
            // An unchanged upgrade, then ones that replace every pod of the platform.
            let note = format!("podAnnotations.e2e={number}");
            install(&cluster, values.path(), if number == 1 { vec![] } else { vec!["--set-string", &note] }.as_slice())
                .await?;
        }
        tokio::time::sleep(Duration::from_secs(8)).await;
        Ok(())
    }
    .await;
    stop.store(true, Ordering::Relaxed);
    let (done, failed): (usize, Vec<String>) = applies.await?;
    let upgraded: Result<()> = upgraded;
    upgraded?;
    ensure!(failed.is_empty(), "{} of {} applies failed, the first: {}", failed.len(), failed.len() + done, failed[0]);
    ensure!(done > 100, "only {done} applies were made");
    Ok(())
}

async fn reinstall(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("reinstall").await?;
    let names: Vec<String> = (0..10).map(|number| format!("svc-{number}")).collect();
    for name in &names {
        cluster.apply("reinstall", &descriptor(name, json!({}))).await?;
    }
    for name in &names {
        cluster.lifecycle(&namespace, name, "Ready", Duration::from_mins(4)).await?;
    }
    let pods = async || -> Result<Vec<(Option<String>, i32)>> {
        let mut seen = Vec::new();
        for name in &names {
            let pods: Vec<Pod> = cluster.pods(&namespace, name).await?;
            seen.extend(pods.into_iter().map(|pod| {
                let restarts = pod
                    .status
                    .iter()
                    .flat_map(|status| status.container_statuses.iter().flatten())
                    .map(|container| container.restart_count)
                    .sum();
                (pod.metadata.uid, restarts)
            }));
        }
        Ok(seen)
    };
    let before = pods().await?;
    let values = values(cluster).await?;
    cluster.ok("helm", &["uninstall", RELEASE, "-n", NAMESPACE, "--wait", "--timeout", "120s"], "").await?;
    let away = away(cluster, &namespace).await;
    let undisturbed = pods().await? == before;
    install(cluster, values.path(), &["--create-namespace"]).await?;
    away?;
    ensure!(undisturbed, "an instance was restarted by the uninstall");
    for name in &names {
        cluster
            .apply(
                "reinstall",
                &descriptor(name, json!({ "resources": { "autoscaling": { "minInstances": 1 } }, "env": [] })),
            )
            .await?;
        cluster.lifecycle(&namespace, name, "Ready", Duration::from_mins(1)).await?;
    }
    ensure!(pods().await? == before, "an instance was restarted by the new installation");
    for name in &names {
        cluster.ok("ankka", &["services", "delete", name, "-p", "reinstall"], "").await?;
    }
    Ok(())
}

/// While the platform is away, nothing of it stands in the way of anybody's work.
async fn away(cluster: &Cluster, namespace: &str) -> Result<()> {
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client.clone());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(cluster.client.clone());
    ensure!(
        validating.get_opt("ankka-webhook").await?.is_none() && mutating.get_opt("ankka-webhook").await?.is_none(),
        "a webhook configuration stayed"
    );
    cluster.ok("kubectl", &["annotate", "ankkaservices", "--all", "-n", namespace, "example.com/away=yes"], "").await?;
    cluster.ok("kubectl", &["annotate", "ankkaservices", "--all", "-n", namespace, "example.com/away-"], "").await?;
    Ok(())
}

async fn no_webhook(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("nowebhook").await?;
    let old = descriptor("old", json!({}));
    cluster.apply("nowebhook", &old).await?;
    cluster.lifecycle(&namespace, "old", "Ready", Duration::from_mins(1)).await?;
    let replicas = cluster
        .ok("kubectl", &["get", "deployment/ankka-webhook", "-n", NAMESPACE, "-o", "jsonpath={.spec.replicas}"], "")
        .await?;
    cluster.ok("kubectl", &["scale", "deployment/ankka-webhook", "--replicas=0", "-n", NAMESPACE], "").await?;
    eventually("the webhook to be gone", Duration::from_mins(1), async || {
        let pods = cluster.ok("kubectl", &["get", "pods", "-n", NAMESPACE, "-o", "name"], "").await?;
        Ok(if pods.contains("ankka-webhook") { Err(pods) } else { Ok(()) })
    })
    .await?;
    let outcome = async {
        let secret = ["secret", "others", "-n", &namespace];
        cluster.ok("kubectl", &[&["delete", "--ignore-not-found"], secret.as_slice()].concat(), "").await?;
        let create = ["create", "secret", "generic", "others", "-n", &namespace, "--from-literal=a=b"];
        cluster.ok("kubectl", &create, "").await?;
        cluster.ok("kubectl", &["label", "ankkaservice/old", "team=x", "-n", &namespace], "").await?;
        let refused = cluster
            .run(
                "ankka",
                &["services", "apply", "-f", "-", "-p", "nowebhook", "--wait=0"],
                &descriptor("old", json!({ "port": 9001 })).to_string(),
            )
            .await?;
        ensure!(!refused.status.success(), "an apply succeeded without a webhook");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        ensure!(said.contains("webhook"), "{said}");
        Ok(())
    }
    .await;
    cluster
        .ok("kubectl", &["scale", "deployment/ankka-webhook", &format!("--replicas={replicas}"), "-n", NAMESPACE], "")
        .await?;
    cluster
        .ok("kubectl", &["rollout", "status", "deployment/ankka-webhook", "-n", NAMESPACE, "--timeout=90s"], "")
        .await?;
    outcome?;
    eventually("applies to work again", Duration::from_secs(30), async || {
        Ok(cluster
            .apply("nowebhook", &descriptor("old", json!({ "port": 9001 })))
            .await
            .map_err(|error| error.to_string()))
    })
    .await?;
    let _: ObjectMeta = cluster.lifecycle(&namespace, "old", "Ready", Duration::from_mins(1)).await?.metadata;
    Ok(())
}
