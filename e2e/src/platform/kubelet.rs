//! The kubelet of the one real node.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use serde_json::json;

use super::{
    addresses::{DOMAIN, KUBELET_HEALTH_PORT, KUBELET_PORT, NODE, NODE_NAME},
    layout::Layout,
    probe,
    process::Daemon,
};
use crate::web;

pub(crate) fn daemon(layout: &Layout) -> Daemon {
    let config = layout.file("kubelet.yaml");
    let resolver = layout.file("resolv.conf");
    let content = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE.to_string(),
        "port": KUBELET_PORT,
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": KUBELET_HEALTH_PORT,
        "tlsCertFile": layout.certificate("kubelet"),
        "tlsPrivateKeyFile": layout.key("kubelet"),
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": layout.certificate("ca")},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": format!("unix://{}", layout.containerd_socket().display()),
        "failCgroupV1": false,
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": false,
        "enforceNodeAllocatable": [],
        "failSwapOn": false,
        "localStorageCapacityIsolation": false,
        "evictionHard": {},
        "imageGCHighThresholdPercent": 100, // nothing could pull an image again
        "maxPods": 250,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
        "kubeAPIQPS": 500,
        "kubeAPIBurst": 1000,
        "serializeImagePulls": false,
        "clusterDomain": DOMAIN,
        "clusterDNS": [NODE.to_string()],
        "resolvConf": resolver,
        "podLogsDir": layout.file("pod-logs"),
        "volumePluginDir": layout.file("kubelet/plugins/exec"),
    });
    Daemon::new(
        layout.tools.program("kubernetes", "kubelet"),
        [
            format!("--config={}", config.display()),
            format!("--kubeconfig={}", layout.kubeconfig("kubelet").display()),
            format!("--hostname-override={NODE_NAME}"),
            format!("--node-ip={NODE}"),
            format!("--root-dir={}", layout.file("kubelet").display()),
        ],
    )
    .file(config, content.to_string())
    .file(resolver, "")
}

pub(crate) async fn healthy() -> Result<()> {
    web::expect_ok(&format!("http://127.0.0.1:{KUBELET_HEALTH_PORT}/healthz")).await
}

/// Whether the node has registered itself; kube-proxy waits 30 s for one that has not.
pub(crate) async fn registered(layout: &Layout) -> Result<()> {
    node(layout).await.map(drop)
}

/// Whether the node says that it is ready.
pub(crate) async fn ready(layout: &Layout) -> Result<()> {
    let conditions = node(layout).await?.status.and_then(|status| status.conditions).unwrap_or_default();
    let ready =
        conditions.into_iter().find(|condition| condition.type_ == "Ready").context("it has not said so yet")?;
    anyhow::ensure!(ready.status == "True", ready.message.unwrap_or_default());
    Ok(())
}

async fn node(layout: &Layout) -> Result<Node> {
    let client = probe::client(layout, &layout.api_url())?;
    Api::<Node>::all(client).get(NODE_NAME).await.context("the node is not registered")
}
