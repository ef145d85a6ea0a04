//! Long runs: what must hold every time, many times over.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ankka_crds::AnkkaService;
use anyhow::{Context, Result};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Pod};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{freeze::Frozen, rows::Row};
use crate::{
    audit::AuditEvent,
    suite::{
        Cluster, cases,
        cluster::{descriptor, eventually},
        runner,
    },
};

pub(super) const NAMESPACE: &str = "ankka-system";
/// The Lease of the service controller.
const OPERATOR: &str = "ankka-operator";

/// 10,000 generated descriptors get the same words in the same order from the command line's code and from the API server.
pub async fn agreement(cluster: &Cluster) -> Result<Vec<Row>> {
    let count = 10_000;
    let outcome = cases::admission::generated(cluster, count).await;
    let value = outcome
        .as_ref()
        .map_or_else(|error| format!("{error:#}"), |()| format!("{count} descriptors, 0 disagreements"));
    Ok(vec![Row::holds("generated descriptors, CLI against webhook through the API server", value, outcome.is_ok())])
}

/// Five deploys in a row at one and three instances, embedded and process hosting, and five restarts, under constant requests.
pub async fn rollouts(cluster: &Arc<Cluster>) -> Result<Vec<Row>> {
    let tally = runner::run(&cases::rollout::cases(5), cluster, None).await;
    let value = format!("{} of {} without a refused or reset request", tally.passed, tally.passed + tally.failed.len());
    Ok(vec![Row::holds("five deploys or restarts in a row under load, six services", value, tally.failed.is_empty())])
}

/// The webhook's certificates rotate a hundred times, its authority five, under fresh and kept connections of the API server.
pub async fn rotation(cluster: &Cluster) -> Result<Vec<Row>> {
    let namespace = cluster.project("rotation").await?;
    let deployment = ["set", "env", "deployment/ankka-webhook", "-n", NAMESPACE];
    let set =
        |variables: &[&'static str]| deployment.iter().copied().chain(variables.iter().copied()).collect::<Vec<_>>();
    let short = ["ANKKA_WEBHOOK_LEAF_SECONDS=3", "ANKKA_WEBHOOK_OVERLAP_SECONDS=1", "ANKKA_WEBHOOK_CA_SECONDS=45"];
    cluster.ok("kubectl", &set(&short), "").await?;
    cluster
        .ok("kubectl", &["rollout", "status", "deployment/ankka-webhook", "-n", NAMESPACE, "--timeout=120s"], "")
        .await?;

    let secret = async || {
        cluster.ok("kubectl", &["get", "secret", "ankka-webhook-certificate", "-n", NAMESPACE, "-o", "json"], "").await
    };
    let api: Api<AnkkaService> = Api::namespaced(cluster.client.clone(), &namespace);
    let wanted = json!({ "apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaService", "metadata": { "name": "loop" }, "spec": { "service": descriptor("loop", json!({}))["service"] } });
    let (mut reviews, mut failures, mut leaves, mut bundles) =
        (0_u32, Vec::new(), 0_u32, std::collections::BTreeSet::new());
    let (mut last, started) = (String::new(), Instant::now());
    while (leaves < 100 || bundles.len() < 6) && started.elapsed() < Duration::from_mins(12) {
        for _ in 0..10 {
            match api.patch("loop", &PatchParams::apply("e2e").dry_run(), &Patch::Apply(&wanted)).await {
                Ok(_) => reviews += 1,
                Err(error) => failures.push(error.to_string()),
            }
        }
        let now: Value = serde_json::from_str(&secret().await?)?;
        let data = now["data"].to_string();
        if data != last {
            leaves += 1;
            last = data;
        }
        let hooks = cluster
            .ok(
                "kubectl",
                &[
                    "get",
                    "validatingwebhookconfiguration",
                    "ankka-webhook",
                    "-o",
                    "jsonpath={.webhooks[0].clientConfig.caBundle}",
                ],
                "",
            )
            .await?;
        bundles.insert(hooks);
    }
    let long = ["ANKKA_WEBHOOK_LEAF_SECONDS-", "ANKKA_WEBHOOK_OVERLAP_SECONDS-", "ANKKA_WEBHOOK_CA_SECONDS-"];
    cluster.ok("kubectl", &set(&long), "").await?;
    cluster
        .ok("kubectl", &["rollout", "status", "deployment/ankka-webhook", "-n", NAMESPACE, "--timeout=120s"], "")
        .await?;
    let value = format!(
        "{reviews} reviews through {leaves} certificates and {} trust bundles, {} failed{}",
        bundles.len(),
        failures.len(),
        first(failures.first())
    );
    Ok(vec![Row::holds("admission while certificates rotate", value, failures.is_empty() && leaves >= 100)])
}

/// The leading operator is frozen for a minute and thawed: nothing it sends changes anything, and another one leads meanwhile.
pub async fn frozen(cluster: &Cluster) -> Result<Vec<Row>> {
    let namespace = cluster.project("frozen").await?;
    cluster.apply("frozen", &descriptor("kept", json!({}))).await?;
    cluster.lifecycle(&namespace, "kept", "Ready", Duration::from_mins(2)).await?;
    let frozen = Frozen::leader(cluster, OPERATOR).await?;
    let began = Instant::now();
    eventually("another replica to lead", Duration::from_mins(1), async || {
        let now = leader(cluster).await?;
        Ok(if now == frozen.pod { Err(now) } else { Ok(()) })
    })
    .await?;
    let taken_over = began.elapsed();
    cluster.apply("frozen", &descriptor("kept", json!({ "env": [{ "name": "REVISION", "value": "2" }] }))).await?;
    cluster.lifecycle(&namespace, "kept", "Ready", Duration::from_mins(2)).await?;
    tokio::time::sleep(Duration::from_mins(1).saturating_sub(began.elapsed())).await;
    let from = cluster.platform.audit()?.end()?;
    drop(frozen);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let (events, _) = cluster.platform.audit()?.since(from)?;
    let late: Vec<_> = events
        .iter()
        .filter(|event| changes(event) && event.user.ends_with(":ankka-operator") && event.code < 300)
        .collect();
    // What the new leader writes in these quiet seconds would be a write without a change, which is a fault as well.
    let value = format!(
        "another led after {:.1} s; {} writes after the thaw{}",
        taken_over.as_secs_f64(),
        late.len(),
        first(late.first().map(|event| &event.uri))
    );
    Ok(vec![Row::holds("leading operator frozen for 60 s and thawed", value, late.is_empty())])
}

/// The first of what went wrong, when anything did.
fn first(failure: Option<&String>) -> String {
    failure.map(|failure| format!(", the first: {failure}")).unwrap_or_default()
}

fn changes(event: &AuditEvent) -> bool {
    event.is_write() && event.resource != "leases" && event.resource != "events"
}

/// Name of the pod that holds the operator's Lease.
pub async fn leader(cluster: &Cluster) -> Result<String> {
    leader_of(cluster, OPERATOR).await
}

/// Name of the pod that holds the Lease of this name.
pub async fn leader_of(cluster: &Cluster, name: &str) -> Result<String> {
    let lease: Lease = Api::namespaced(cluster.client.clone(), NAMESPACE).get(name).await?;
    let holder = lease.spec.and_then(|spec| spec.holder_identity).context("nobody leads")?;
    Ok(holder.rsplit_once('_').map_or(holder.clone(), |(pod, _)| pod.to_owned()))
}

/// Processes of a pod of the platform.
pub async fn processes(cluster: &Cluster, pod: &str) -> Result<Vec<i32>> {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let pod = pods
        .list(&ListParams::default().fields(&format!("metadata.name={pod}")))
        .await?
        .items
        .pop()
        .context("the pod is gone")?;
    let containers = pod
        .status
        .into_iter()
        .flat_map(|status| status.container_statuses.unwrap_or_default())
        .filter_map(|container| container.container_id);
    let local = cluster.platform.require_local()?;
    Ok(containers.flat_map(|container| local.processes(&container)).collect())
}
