//! What tools of others read of our statuses.

use anyhow::{Context, Result, ensure};

use crate::{
    paths::Paths,
    run::Run,
    stages,
    suite::{Case, Cluster},
    tools::Tools,
};

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("kstatus_reads_every_stage_as_documented", |_| async { kstatus().await }),
        Case::new("a_service_that_nobody_has_looked_at_is_in_progress_for_kstatus", |cluster| async move {
            unobserved(&cluster).await
        }),
    ]
}

/// What kstatus' own code computes of these objects.
async fn computed(objects: &[serde_json::Value]) -> Result<Vec<String>> {
    let program = Tools::build(&Paths::from_env()?, &["kstatus"]).await?.program("kstatus", "kstatus");
    let lines = objects.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let printed = Run::new(program).input(lines).text().await?;
    Ok(printed.lines().map(str::to_owned).collect())
}

async fn kstatus() -> Result<()> {
    let stages = stages::all();
    let objects: Vec<_> = stages.iter().map(|stage| stage.object.clone()).collect();
    let documented = stages::documented()?;
    let computed = computed(&objects).await?;
    ensure!(computed.len() == stages.len(), "{computed:?}");
    for (stage, status) in stages.iter().zip(computed) {
        let row = documented.iter().find(|row| row.stage == stage.name);
        let row = row.with_context(|| format!("'{}' is not documented", stage.name))?;
        ensure!(row.kstatus == status, "'{}' is {status} for kstatus, and documented as {}", stage.name, row.kstatus);
    }
    Ok(())
}

/// The API server fills in what makes it so: seen where no controller can have looked yet, in the answer to the creation.
async fn unobserved(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("statuses").await?;
    cluster.remove(&namespace, "fresh").await?;
    let service = serde_json::json!({
        "apiVersion": "ankka.dev/v1alpha1",
        "kind": "AnkkaService",
        "metadata": { "name": "fresh", "namespace": namespace },
        "spec": { "service": { "image": crate::install::CART } },
    });
    let created = cluster.ok("kubectl", &["create", "-f", "-", "-o", "json"], &service.to_string()).await?;
    let created: serde_json::Value = serde_json::from_str(&created)?;
    let status = computed(std::slice::from_ref(&created)).await?;
    ensure!(status == ["InProgress"], "{status:?} of {created}");
    let wait = ["wait", "ankkaservice/fresh", "-n", &namespace, "--for=condition=Ready", "--timeout=120s"];
    cluster.ok("kubectl", &wait, "").await?;
    let ready = cluster.ok("kubectl", &["get", "ankkaservice/fresh", "-n", &namespace, "-o", "json"], "").await?;
    let status = computed(&[serde_json::from_str(&ready)?]).await?;
    ensure!(status == ["Current"], "{status:?} of {ready}");
    cluster.remove(&namespace, "fresh").await
}
