//! kwok: nodes and pods that only the API server knows of, for tests of scale.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::json;

use super::{
    addresses::{FAKE_POD_RANGE, KWOK_PORT, NODE},
    layout::Layout,
    probe,
    process::Daemon,
};
use crate::{tools::KWOK_STAGES, web};

/// Label (and taint) of the nodes.
const FAKE: &str = "e2e.ankka.dev/fake";

/// kwok itself, ready for nodes.
pub(crate) fn daemon(layout: &Layout) -> Result<Daemon> {
    let config = layout.file("kwok.yaml");
    Ok(Daemon::new(
        layout.tools.program("kwok", "kwok"),
        [
            format!("--kubeconfig={}", layout.kubeconfig("admin").display()),
            format!("--config={}", config.display()),
            format!("--manage-nodes-with-label-selector={FAKE}=true"),
            "--node-lease-duration-seconds=40".to_owned(), // without a lease the nodes lapse
            format!("--cidr={FAKE_POD_RANGE}"),
            format!("--node-ip={NODE}"),
            format!("--server-address=127.0.0.1:{KWOK_PORT}"),
        ],
    )
    .file(config, stages(layout)?))
}

pub(crate) async fn healthy() -> Result<()> {
    web::expect_ok(&format!("http://127.0.0.1:{KWOK_PORT}/healthz")).await
}

/// Makes `count` nodes named `fake-0`, `fake-1`, …; beside a real one only pods that are sent there are placed on them.
pub(crate) async fn create_nodes(layout: &Layout, count: usize) -> Result<()> {
    let client = probe::client(layout, &layout.api_url())?;
    let nodes = Api::<Node>::all(client);
    for index in 0..count {
        let name = format!("fake-{index}");
        let taints =
            if layout.node { json!([{"key": FAKE, "value": "true", "effect": "NoSchedule"}]) } else { json!([]) };
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {FAKE: "true", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
            "spec": {"taints": taints},
        });
        nodes
            .patch(&name, &PatchParams::apply("ankka-local").force(), &Patch::Apply(node))
            .await
            .with_context(|| format!("failed to create node {name}"))?;
    }
    Ok(())
}

/// Whether all of the nodes are ready.
pub(crate) async fn nodes_ready(layout: &Layout) -> Result<()> {
    let nodes = Api::<Node>::all(probe::client(layout, &layout.api_url())?);
    for node in nodes.list(&ListParams::default().labels(&format!("{FAKE}=true"))).await? {
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        let ready = conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
        anyhow::ensure!(ready, "node {} is not ready", node.metadata.name.unwrap_or_default());
    }
    Ok(())
}

/// Removes the nodes. Pods that are still on them are collected by the controller manager.
pub(crate) async fn delete_nodes(layout: &Layout) -> Result<()> {
    let nodes = Api::<Node>::all(probe::client(layout, &layout.api_url())?);
    let fake = ListParams::default().labels(&format!("{FAKE}=true"));
    nodes.delete_collection(&DeleteParams::default(), &fake).await.context("failed to delete the fake nodes")?;
    Ok(())
}

/// What kwok does to nodes and pods: files of its own module, joined.
fn stages(layout: &Layout) -> Result<String> {
    let read = |name| {
        let file = layout.tools.program("kwok", name);
        std::fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))
    };
    Ok(KWOK_STAGES.into_iter().map(read).collect::<Result<Vec<_>>>()?.join("\n---\n"))
}
