//! A deploy and a restart replace instances one at a time without a refused or reset request.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::suite::{Case, Cluster, cluster::descriptor, load::Load};

/// What replaces the instances.
#[derive(Clone, Copy)]
enum Cause {
    Deploy,
    Restart,
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
    .collect()
}

async fn roll(cluster: &Cluster, cause: Cause, hosting: &str, instances: u32, times: u32) -> Result<()> {
    let namespace = cluster.project("rollout").await?;
    let name = match cause {
        Cause::Deploy => format!("{hosting}-{instances}"),
        Cause::Restart => format!("restarted-{instances}"),
    };
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
                Cause::Restart => {
                    cluster.ok("ankka", &["services", "restart", &name, "-p", "rollout", "--no-wait"], "").await?
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
