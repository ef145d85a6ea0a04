//! What commands change is a field of the service: several at once all count, and no deploy takes one back.

use std::time::Duration;

use ankka_crds::history::{self, Kind};
use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::suite::{Case, Cluster, cluster::descriptor};

const PROJECT: &str = "commands";
const RESTARTS: usize = 4;

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("restarts_at_once_all_count_and_none_is_lost_to_a_deploy", |cluster| async move {
            restarts(&cluster).await
        }),
        Case::new("a_pause_survives_a_deploy_and_ends_with_the_newest_descriptor", |cluster| async move {
            pause(&cluster).await
        }),
        Case::new("a_rollback_brings_a_recorded_descriptor_back_and_is_recorded_as_one", |cluster| async move {
            rollback(&cluster).await
        }),
        Case::new("what_is_exported_applies_to_the_same_and_a_difference_changes_nothing", |cluster| async move {
            difference(&cluster).await
        }),
    ]
}

fn revision(name: &str, number: u32) -> Value {
    descriptor(name, json!({ "env": [{ "name": "REVISION", "value": number.to_string() }] }))
}

/// The project's namespace, in which no earlier run's service of this name is left.
async fn without(cluster: &Cluster, name: &str) -> Result<String> {
    let namespace = cluster.project(PROJECT).await?;
    cluster.remove(&namespace, name).await?;
    Ok(namespace)
}

/// Runs `ankka services …` on a service of the project; returns what it printed.
async fn services(cluster: &Cluster, args: &[&str]) -> Result<String> {
    cluster.ok("ankka", &[&["services"], args, &["-p", PROJECT]].concat(), "").await
}

async fn restarts(cluster: &Cluster) -> Result<()> {
    let name = "restarted";
    let namespace = without(cluster, name).await?;
    cluster.apply(PROJECT, &revision(name, 1)).await?;
    let start = cluster.service(&namespace, name).await?;
    let before = start.spec.restarts;
    let restart = ["restart", name, "-o", "name", "--no-wait"];
    let deploy = revision(name, 2);
    let (_, deployed) = tokio::try_join!(
        try_join_all((0..RESTARTS).map(|_| services(cluster, &restart))),
        cluster.apply(PROJECT, &deploy),
    )?;
    ensure!(deployed.trim() == format!("service/{name} configured"), "{deployed}");
    let stored = cluster.service(&namespace, name).await?;
    ensure!(stored.spec.restarts == before + i64::try_from(RESTARTS)?, "{} restarts", stored.spec.restarts);
    ensure!(json!(stored.spec.service) == deploy["service"], "the deploy was lost: {:?}", stored.spec.service);

    let changes = history::of(&stored);
    let since = changes.iter().filter(|change| Some(change.generation) > start.metadata.generation);
    let restarted = since.filter(|change| change.kind == Kind::Restarted).count();
    ensure!(restarted == RESTARTS, "{restarted} restarts are in the history");
    let newest = changes.first().context("there is no history")?;
    ensure!(Some(newest.generation) == stored.metadata.generation && !newest.who.is_empty(), "{newest:?}");
    cluster.lifecycle(&namespace, name, "Ready", Duration::from_mins(3)).await?;
    services(cluster, &["delete", name, "--no-wait"]).await?;
    Ok(())
}

async fn pause(cluster: &Cluster) -> Result<()> {
    let name = "paused";
    let namespace = without(cluster, name).await?;
    cluster.apply(PROJECT, &revision(name, 1)).await?;
    cluster.lifecycle(&namespace, name, "Ready", Duration::from_mins(2)).await?;
    services(cluster, &["pause", name]).await?;
    cluster.lifecycle(&namespace, name, "Paused", Duration::from_mins(1)).await?;
    cluster.apply(PROJECT, &revision(name, 2)).await?;
    let paused = cluster.lifecycle(&namespace, name, "Paused", Duration::from_mins(1)).await?;
    ensure!(paused.spec.paused, "the deploy resumed it");
    let shown = services(cluster, &["resume", name, "--wait=2m"]).await?;
    ensure!(shown.lines().any(|line| line.starts_with("status") && line.ends_with("Ready")), "{shown}");
    let pods = cluster.pods(&namespace, name).await?;
    let revisions: Vec<_> = pods
        .iter()
        .flat_map(|pod| pod.spec.iter().flat_map(|spec| &spec.containers))
        .flat_map(|container| container.env.iter().flatten())
        .filter(|variable| variable.name == "REVISION")
        .map(|variable| variable.value.as_deref())
        .collect();
    ensure!(revisions == [Some("2")], "{revisions:?}");
    services(cluster, &["delete", name, "--no-wait"]).await?;
    Ok(())
}

async fn rollback(cluster: &Cluster) -> Result<()> {
    let name = "rolled-back";
    let namespace = without(cluster, name).await?;
    let (first, second) = (revision(name, 1), revision(name, 2));
    let mut generations = Vec::new();
    for wanted in [&first, &second] {
        cluster.apply(PROJECT, wanted).await?;
        let ready = cluster.lifecycle(&namespace, name, "Ready", Duration::from_mins(2)).await?;
        generations.push(ready.metadata.generation.unwrap_or_default());
    }
    let said = services(cluster, &["rollback", name, "--wait=2m"]).await?;
    ensure!(said.starts_with(&format!("rolled back to generation {}\n", generations[0])), "{said}");
    let stored = cluster.service(&namespace, name).await?;
    ensure!(json!(stored.spec.service) == first["service"], "{:?}", stored.spec.service);
    let newest = history::of(&stored).into_iter().next().context("there is no history")?;
    ensure!((newest.kind, newest.rolled_back_to) == (Kind::RolledBack, Some(generations[0])), "{newest:?}");
    let generation = generations[1].to_string();
    let printed = services(cluster, &["history", name, "--generation", &generation]).await?;
    ensure!(serde_json::from_str::<Value>(&printed)? == second, "{printed}");
    services(cluster, &["delete", name, "--no-wait"]).await?;
    Ok(())
}

async fn difference(cluster: &Cluster) -> Result<()> {
    let name = "compared";
    let namespace = without(cluster, name).await?;
    cluster.apply(PROJECT, &revision(name, 1)).await?;
    let before = cluster.lifecycle(&namespace, name, "Ready", Duration::from_mins(2)).await?;
    let exported: Value = serde_json::from_str(&services(cluster, &["export", name]).await?)?;
    ensure!(cluster.apply(PROJECT, &exported).await?.trim() == format!("service/{name} unchanged"), "it changed");

    let diff = async |command: &[&str], descriptor: &Value| {
        let args = [&["services"], command, &["-f", "-", "-p", PROJECT, "-o", "json"]].concat();
        let output = cluster.run("ankka", &args, &descriptor.to_string()).await?;
        let printed = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default();
        anyhow::Ok((output.status.code(), printed))
    };
    for command in [&["diff"][..], &["apply", "--diff"]] {
        let (status, _) = diff(command, &exported).await?;
        ensure!(status == Some(0), "{command:?} of the same ended with {status:?}");
        let (status, shown) = diff(command, &revision(name, 2)).await?;
        ensure!(status == Some(1) && shown["rolls"] == true, "{command:?} ended with {status:?}: {shown}");
        let (status, _) = diff(command, &json!({ "name": name, "service": {} })).await?;
        ensure!(status == Some(2), "{command:?} of what breaks a rule ended with {status:?}");
    }
    let after = cluster.service(&namespace, name).await?;
    ensure!(after.metadata.generation == before.metadata.generation && after.spec == before.spec, "{after:?}");
    services(cluster, &["delete", name, "--no-wait"]).await?;
    Ok(())
}
