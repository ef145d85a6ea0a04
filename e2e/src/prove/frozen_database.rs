//! A database controller that is frozen for a minute and thawed: another takes its place, and nothing it then sends changes anything.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use serde_json::json;

use super::{
    freeze::Frozen,
    idle::{moved, persists, versions},
    rows::Row,
    runs::{NAMESPACE, leader_of},
};
use crate::suite::{
    Cluster,
    cluster::{descriptor, eventually},
};

const CONTROLLER: &str = "ankka-database";
const PROJECT: &str = "frozen";
/// What begins a statement that changes something.
const CHANGES: [&str; 7] = ["CREATE ", "ALTER ", "DROP ", "GRANT ", "REVOKE ", "INSERT ", "UPDATE "];

/// What the controller writes.
const WRITTEN: [&str; 2] = ["AnkkaDatabase/", "Secret/"];

/// Freezes the leading database controller for a minute, has the other one make a database meanwhile, and searches what the API server
/// and the database server were asked for after the thaw.
pub async fn measure(cluster: &Cluster) -> Result<Vec<Row>> {
    let server = cluster.platform.require_local()?.database()?;
    let namespace = cluster.project(PROJECT).await?;
    let name = format!("frozen-{}", jiff::Timestamp::now().as_second());
    let frozen = Frozen::leader(cluster, CONTROLLER).await?;
    let began = Instant::now();
    let ends = end_of_lease(cluster).await?;
    eventually("the other controller to lead", Duration::from_mins(1), async || {
        let now = leader_of(cluster, CONTROLLER).await?;
        Ok(if now == frozen.pod { Err(now) } else { Ok(()) })
    })
    .await?;
    let late = jiff::Timestamp::now().duration_since(ends).as_secs_f64();
    cluster.apply(PROJECT, &descriptor(&name, json!({}))).await?;
    cluster.lifecycle(&namespace, &name, "Ready", Duration::from_mins(2)).await?;
    tokio::time::sleep(Duration::from_mins(1).saturating_sub(began.elapsed())).await;
    let before = versions(cluster).await?;
    let from = cluster.platform.audit()?.end()?;
    let logged = std::fs::metadata(&server.log).map_or(0, |log| log.len());
    drop(frozen);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let (events, _) = cluster.platform.audit()?.since(from)?;
    let written: Vec<_> = events
        .iter()
        .filter(|event| event.user.ends_with(":ankka-database") && persists(event) && event.resource != "leases")
        .map(|event| format!("{} {}", event.verb, event.uri))
        .collect();
    let after = versions(cluster).await?;
    let mut moved = moved(&before, &after);
    // Its Deployment counts the frozen instance out and in again.
    moved.retain(|object| WRITTEN.iter().any(|kind| object.starts_with(kind)));
    let changed = changed(&std::fs::read(&server.log)?, logged, server.administrator.0);
    cluster.ok("ankka", &["services", "delete", &name, "-p", PROJECT], "").await?;
    let first = moved.first().copied().or(changed.first().map(String::as_str));
    let first = first.map(|first| format!(", the first: {first}")).unwrap_or_default();
    Ok(vec![
        Row::at_most("the other database controller leads, after the end of the Lease", late.max(0.0), 5.0, " s"),
        Row::holds(
            "leading database controller frozen for 60 s and thawed",
            // The other controller goes on looking: what it sends of what is stored already changes nothing.
            format!(
                "{} objects changed by {} requests, {} changing statements after the thaw{first}",
                moved.len(),
                written.len(),
                changed.len()
            ),
            moved.is_empty() && changed.is_empty(),
        ),
    ])
}

/// When the Lease ends that its holder renews no more.
async fn end_of_lease(cluster: &Cluster) -> Result<jiff::Timestamp> {
    let lease: Lease = Api::namespaced(cluster.client.clone(), NAMESPACE).get(CONTROLLER).await?;
    let spec = lease.spec.context("the Lease says nothing")?;
    let renewed = spec.renew_time.context("the Lease was never renewed")?.0;
    Ok(renewed + Duration::from_secs(spec.lease_duration_seconds.unwrap_or_default().unsigned_abs().into()))
}

/// Statements of the administrator beyond this place of the log that change something.
fn changed(log: &[u8], from: u64, administrator: &str) -> Vec<String> {
    let beyond = usize::try_from(from).ok().and_then(|from| log.get(from..)).unwrap_or_default();
    String::from_utf8_lossy(beyond)
        .lines()
        .filter(|line| line.contains(&format!(" {administrator}@")))
        .filter_map(|line| line.split_once("statement: ").or_else(|| line.split_once("execute ")))
        .map(|(_, statement)| statement.to_owned())
        .filter(|statement| CHANGES.iter().any(|word| statement.to_uppercase().contains(word)))
        .collect()
}
