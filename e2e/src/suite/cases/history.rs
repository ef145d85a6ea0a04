//! The descriptors a service had are kept, and can be gone back to.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::{Value, json};

use crate::suite::{
    Case, Cluster,
    cluster::{descriptor, eventually},
};

const PROJECT: &str = "history";
const SOON: Duration = Duration::from_secs(20);

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("a_service_goes_back_to_a_descriptor_that_was_kept", |cluster| async move { back(&cluster).await }),
        Case::new("of_descriptors_a_mebibyte_is_kept_and_nothing_outlives_the_service", |cluster| async move {
            mebibyte(&cluster).await
        }),
    ]
}

/// A descriptor that starts nothing which could take long, and has a variable of this value.
fn marked(name: &str, mark: &str) -> Value {
    descriptor(name, json!({ "env": [{ "name": "MARK", "value": mark }] }))
}

/// The kept descriptors, oldest first.
async fn kept(cluster: &Cluster, namespace: &str, name: &str) -> Result<Vec<ControllerRevision>> {
    let revisions: Api<ControllerRevision> = Api::namespaced(cluster.client.clone(), namespace);
    let ours = ListParams::default().labels(&format!("ankka.dev/service={name}"));
    let mut kept = revisions.list(&ours).await.context("failed to list what is kept")?.items;
    kept.sort_by_key(|revision| revision.revision);
    Ok(kept)
}

/// The descriptor that is kept in a revision.
fn document(revision: &ControllerRevision) -> Option<&Value> {
    revision.data.as_ref().map(|data| &data.0)
}

/// Waits until exactly these are kept, oldest first.
async fn keeps(cluster: &Cluster, namespace: &str, name: &str, wanted: &[&Value]) -> Result<()> {
    eventually(&format!("{} descriptors of {name} to be kept", wanted.len()), SOON, async || {
        let kept = kept(cluster, namespace, name).await?;
        let are_kept = kept.iter().map(document).eq(wanted.iter().map(|wanted| Some(*wanted)));
        let told = || kept.iter().map(|revision| (revision.name_any(), revision.revision)).collect::<Vec<_>>();
        Ok(if are_kept { Ok(()) } else { Err(format!("{:?}", told())) })
    })
    .await
}

async fn back(cluster: &Cluster) -> Result<()> {
    let name = "returning";
    let namespace = cluster.project(PROJECT).await?;
    cluster.remove(&namespace, name).await?;
    let (first, second) = (marked(name, "first"), marked(name, "second"));
    cluster.apply(PROJECT, &first).await?;
    keeps(cluster, &namespace, name, &[&first]).await?;
    cluster.apply(PROJECT, &second).await?;
    keeps(cluster, &namespace, name, &[&first, &second]).await?;

    cluster.ok("ankka", &["services", "rollback", name, "-p", PROJECT, "--no-wait"], "").await?;
    let stored = cluster.service(&namespace, name).await?;
    ensure!(json!(stored.spec.service) == first["service"], "{:?}", stored.spec.service);
    keeps(cluster, &namespace, name, &[&second, &first]).await?;
    let newest = kept(cluster, &namespace, name).await?.pop().context("nothing is kept")?;
    ensure!(Some(newest.revision) == stored.metadata.generation, "{:?}", newest.revision);
    cluster.remove(&namespace, name).await
}

async fn mebibyte(cluster: &Cluster) -> Result<()> {
    let name = "heavy";
    let namespace = cluster.project(PROJECT).await?;
    cluster.remove(&namespace, name).await?;
    let light = marked(name, "light");
    cluster.apply(PROJECT, &light).await?;
    // One that is replaced before the operator has seen it is not kept.
    keeps(cluster, &namespace, name, &[&light]).await?;
    // Nothing has to start with variables of this size.
    cluster.ok("ankka", &["services", "pause", name, "-p", PROJECT], "").await?;
    let heavy: Vec<Value> = ["1", "2", "3"].map(|digit| marked(name, &digit.repeat(400 * 1024))).into();
    let mut wanted = vec![&light];
    for descriptor in &heavy[..2] {
        cluster.apply(PROJECT, descriptor).await?;
        wanted.push(descriptor);
        keeps(cluster, &namespace, name, &wanted).await?;
    }
    cluster.apply(PROJECT, &heavy[2]).await?;
    keeps(cluster, &namespace, name, &[&heavy[1], &heavy[2]]).await?;
    cluster.remove(&namespace, name).await?;
    keeps(cluster, &namespace, name, &[]).await
}
