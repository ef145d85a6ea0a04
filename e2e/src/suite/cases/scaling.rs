//! Changing the number of instances leaves the others alone.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::suite::{
    Case, Cluster,
    cluster::{descriptor, eventually},
};

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("three_to_four_to_three_instances_keep_the_running_pods", |cluster| async move {
            scale(&cluster, "quartet", &[3, 4, 3]).await
        }),
        Case::new("one_to_three_to_one_instances_keep_the_running_pod", |cluster| async move {
            scale(&cluster, "solo", &[1, 3, 1]).await
        }),
    ]
}

async fn scale(cluster: &Cluster, name: &str, counts: &[usize]) -> Result<()> {
    let namespace = cluster.project("scaling").await?;
    let mut seen: Option<Vec<String>> = None;
    for count in counts {
        let wanted = descriptor(name, json!({ "resources": { "autoscaling": { "minInstances": count } } }));
        cluster.apply("scaling", &wanted).await?;
        cluster.lifecycle(&namespace, name, "Ready", Duration::from_mins(2)).await?;
        let uids = eventually(&format!("{count} pods"), Duration::from_mins(1), async || {
            let uids = cluster.pod_uids(&namespace, name).await?;
            Ok(if uids.len() == *count { Ok(uids) } else { Err(format!("{} pods", uids.len())) })
        })
        .await?;
        if let Some(before) = &seen {
            let (fewer, more) = if before.len() < uids.len() { (before, &uids) } else { (&uids, before) };
            ensure!(
                fewer.iter().all(|uid| more.contains(uid)),
                "a running pod was replaced: {before:?}, then {uids:?}"
            );
        }
        seen = Some(uids);
    }
    let sets = cluster
        .ok(
            "kubectl",
            &["get", "replicasets", "-n", &namespace, "-l", &format!("ankka.dev/service={name}"), "-o", "name"],
            "",
        )
        .await?;
    ensure!(sets.lines().count() == 1, "scaling rolled: {sets}");
    Ok(())
}
