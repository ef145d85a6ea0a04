//! Whatever replaces or starts instances does so without a refused or reset request.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::suite::{
    Case, Cluster,
    cluster::{descriptor, eventually},
    load::Load,
};

/// What replaces the instances.
#[derive(Clone, Copy)]
enum Cause {
    Deploy,
    Restart,
    Rollback,
    Reissue,
}

/// The cases of this family; each rolls its service `times` times in a row.
pub fn cases(times: u32) -> Vec<Case> {
    [
        ("a_deploy_of_one_embedded_instance_refuses_no_request", Cause::Deploy, "embedded", 1),
        ("a_deploy_of_three_embedded_instances_refuses_no_request", Cause::Deploy, "embedded", 3),
        ("a_deploy_of_one_process_instance_refuses_no_request", Cause::Deploy, "process", 1),
        ("a_deploy_of_three_process_instances_refuses_no_request", Cause::Deploy, "process", 3),
        ("a_restart_of_one_instance_refuses_no_request", Cause::Restart, "embedded", 1),
        ("a_restart_of_three_instances_refuses_no_request", Cause::Restart, "embedded", 3),
    ]
    .into_iter()
    .map(|(name, cause, hosting, instances)| {
        Case::new(
            name,
            move |cluster: Arc<Cluster>| async move { roll(&cluster, cause, hosting, instances, times).await },
        )
    })
    .chain([
        Case::new("a_rollback_of_one_and_of_three_instances_refuses_no_request", |cluster| async move {
            both(roll(&cluster, Cause::Rollback, "embedded", 1, 1), roll(&cluster, Cause::Rollback, "embedded", 3, 1))
                .await
        }),
        Case::new("a_reissue_for_one_and_for_three_instances_refuses_no_request", |cluster| async move {
            both(roll(&cluster, Cause::Reissue, "embedded", 1, 1), roll(&cluster, Cause::Reissue, "embedded", 3, 1))
                .await
        }),
        Case::new("a_resume_of_one_and_of_three_instances_refuses_no_request", |cluster| async move {
            both(resume(&cluster, 1), resume(&cluster, 3)).await
        }),
    ])
    .collect()
}

/// Runs both at once, to their ends.
async fn both(one: impl Future<Output = Result<()>>, three: impl Future<Output = Result<()>>) -> Result<()> {
    let (one, three) = futures::join!(one, three);
    one.context("one instance")?;
    three.context("three instances")
}

async fn roll(cluster: &Cluster, cause: Cause, hosting: &str, instances: u32, times: u32) -> Result<()> {
    let namespace = cluster.project("rollout").await?;
    let name = match cause {
        Cause::Deploy => format!("{hosting}-{instances}"),
        Cause::Restart => format!("restarted-{instances}"),
        Cause::Rollback => format!("rolled-back-{instances}"),
        Cause::Reissue => format!("reissued-{instances}"),
    };
    if matches!(cause, Cause::Rollback) {
        cluster.apply("rollout", &revision(&name, hosting, instances, 1)).await?;
        cluster.lifecycle(&namespace, &name, "Ready", Duration::from_mins(2)).await?;
    }
    cluster.apply("rollout", &revision(&name, hosting, instances, 0)).await?;
    cluster.lifecycle(&namespace, &name, "Ready", Duration::from_mins(2)).await?;
    let load = Load::start(cluster.address(&namespace, &name).await?, 4, 4).await?;
    let rolled = async {
        for revision_number in 1..=times {
            let before = cluster.pod_uids(&namespace, &name).await?;
            match cause {
                Cause::Deploy => {
                    cluster.apply("rollout", &revision(&name, hosting, instances, revision_number)).await?
                }
                Cause::Restart => cluster.ok("ankka", &command(&["restart"], &name), "").await?,
                Cause::Rollback => cluster.ok("ankka", &command(&["rollback"], &name), "").await?,
                // The new login is in its Secret before the first instance is replaced.
                Cause::Reissue => {
                    let reissue = ["services", "database", "reissue", &name, "-p", "rollout", "--wait=3m"];
                    cluster.ok("ankka", &reissue, "").await?
                }
            };
            cluster
                .lifecycle(&namespace, &name, "Ready", Duration::from_mins(4))
                .await
                .with_context(|| format!("rollout {revision_number}"))?;
            let after = cluster.pod_uids(&namespace, &name).await?;
            ensure!(before.iter().all(|uid| !after.contains(uid)), "an instance was not replaced");
        }
        // The last instances to stop are still answering what they hold.
        tokio::time::sleep(Duration::from_secs(10)).await;
        Ok(())
    }
    .await;
    let outcome = load.stop().await;
    cluster.ok("ankka", &["services", "delete", &name, "-p", "rollout"], "").await?;
    rolled?;
    outcome.flawless(200)
}

/// A command on one service that is not waited for.
fn command<'a>(words: &[&'a str], name: &'a str) -> Vec<&'a str> {
    [&["services"], words, &[name, "-p", "rollout", "--no-wait"]].concat()
}

/// A resumed service counts as serving from its first answer on, while its other instances still come.
async fn resume(cluster: &Cluster, instances: u32) -> Result<()> {
    let namespace = cluster.project("rollout").await?;
    let name = format!("resumed-{instances}");
    cluster.apply("rollout", &revision(&name, "embedded", instances, 0)).await?;
    cluster.lifecycle(&namespace, &name, "Ready", Duration::from_mins(2)).await?;
    cluster.ok("ankka", &["services", "pause", &name, "-p", "rollout"], "").await?;
    eventually("a paused service to stop", Duration::from_mins(2), async || {
        let pods = cluster.pods(&namespace, &name).await?.len();
        Ok(if pods == 0 { Ok(()) } else { Err(format!("{pods} pods")) })
    })
    .await?;
    cluster.ok("ankka", &command(&["resume"], &name), "").await?;
    let load = Load::start(cluster.address(&namespace, &name).await?, 4, 4).await?;
    let resumed = cluster.lifecycle(&namespace, &name, "Ready", Duration::from_mins(2)).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let outcome = load.stop().await;
    cluster.ok("ankka", &["services", "delete", &name, "-p", "rollout"], "").await?;
    resumed?;
    outcome.flawless(200)
}

fn revision(name: &str, hosting: &str, instances: u32, number: u32) -> Value {
    let mut fields = json!({
        "hosting": hosting,
        "env": [{ "name": "REVISION", "value": number.to_string() }],
        "resources": { "autoscaling": { "minInstances": instances } }
    });
    if hosting == "process" {
        fields["protocol"] = json!("1.0");
    }
    descriptor(name, fields)
}
