//! `ankka status` and `ankka doctor` tell how a real platform is, and what is wrong with it.

use std::time::Duration;

use ankka_crds::AnkkaService;
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::ListParams};
use serde_json::Value;

use crate::suite::{Case, Cluster, cluster::eventually};

const NAMESPACE: &str = "ankka-system";
const PROCESSES: [&str; 3] = ["database", "operator", "webhook"];
/// The two of which one replica works while the others wait.
const LED: [&str; 2] = ["database", "operator"];

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("the_status_tells_versions_processes_leaders_and_services", |cluster| async move {
            status(&cluster).await
        }),
        Case::new("the_doctor_finds_all_well_and_names_a_webhook_that_is_away", |cluster| async move {
            doctor(&cluster).await
        }),
    ]
}

async fn status(cluster: &Cluster) -> Result<()> {
    let told: Value = serde_json::from_str(&cluster.ok("ankka", &["status", "-o", "json"], "").await?)?;
    let version = env!("CARGO_PKG_VERSION");
    ensure!(told["client"] == version && told["platform"] == version, "{told}");
    ensure!(told["unknown"] == Value::Array(vec![]) && told["warnings"] == Value::Array(vec![]), "{told}");
    let components = told["components"].as_array().context("no components")?;
    let mut names: Vec<_> = components.iter().filter_map(|component| component["name"].as_str()).collect();
    names.sort_unstable();
    ensure!(names == PROCESSES, "{names:?}");
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    for component in components {
        let whole = component["readyInstances"] == component["desiredInstances"];
        ensure!(whole && component["desiredInstances"].as_u64() > Some(0), "{component}");
        match component["leader"].as_str() {
            Some(leader) => drop(pods.get(leader).await.with_context(|| format!("{leader} leads and is no pod"))?),
            None => {
                ensure!(!LED.contains(&component["name"].as_str().unwrap_or_default()), "nobody leads: {component}");
            }
        }
    }
    let services: Api<AnkkaService> = Api::all(cluster.client.clone());
    let count = services.list_metadata(&ListParams::default()).await?.items.len();
    ensure!(told["services"]["total"] == count, "{told} instead of {count} services");
    let counted = told["services"]["statuses"].as_object().context("no statuses")?.values();
    ensure!(counted.filter_map(Value::as_u64).sum::<u64>() == u64::try_from(count)?, "{told}");
    Ok(())
}

/// What the doctor says: its exit code, and each check by name with its outcome and what to do.
async fn examine(cluster: &Cluster) -> Result<(Option<i32>, Vec<Value>)> {
    let run = cluster.run("ankka", &["doctor", "-p", "demo", "-o", "json"], "").await?;
    let checks = serde_json::from_slice(&run.stdout).context("the doctor printed no JSON")?;
    Ok((run.status.code(), checks))
}

/// Waits until the doctor finds nothing.
async fn well(cluster: &Cluster) -> Result<()> {
    eventually("the doctor to find all well", Duration::from_secs(30), async || {
        let (code, checks) = examine(cluster).await?;
        let wrong: Vec<_> =
            checks.iter().filter(|check| !matches!(check["outcome"].as_str(), Some("ok" | "off"))).collect();
        Ok(if code == Some(0) && wrong.is_empty() { Ok(()) } else { Err(format!("{code:?}: {wrong:?}")) })
    })
    .await
}

async fn doctor(cluster: &Cluster) -> Result<()> {
    well(cluster).await?;
    let webhook = ["deployment/ankka-webhook", "-n", NAMESPACE];
    let count = [&["get"], &webhook[..], &["-o", "jsonpath={.spec.replicas}"]].concat();
    let count = cluster.ok("kubectl", &count, "").await?;
    let scale = async |replicas: &str| {
        let replicas = format!("--replicas={replicas}");
        cluster.ok("kubectl", &[&["scale"], &webhook[..], &[&replicas]].concat(), "").await
    };
    scale("0").await?;
    let found = eventually("the doctor to find the webhook away", Duration::from_secs(30), async || {
        let (code, checks) = examine(cluster).await?;
        let webhook = checks.into_iter().find(|check| check["name"] == "webhook").context("it is not looked at")?;
        let found = code == Some(1) && webhook["outcome"] == "problem";
        Ok(if found { Ok(webhook) } else { Err(format!("{code:?}: {webhook}")) })
    })
    .await;
    scale(&count).await?;
    let rolled = [&["rollout", "status"], &webhook[..], &["--timeout=60s"]].concat();
    cluster.ok("kubectl", &rolled, "").await?;
    let next = found?["next"].as_str().unwrap_or_default().to_owned();
    ensure!(next.contains("ankka-webhook"), "no next step: {next}");
    well(cluster).await
}
