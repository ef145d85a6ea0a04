//! kube-proxy: service addresses, by iptables.

use anyhow::Result;
use serde_json::json;

use super::{
    addresses::{CLUSTER_RANGE, NODE_NAME, PROXY_HEALTH_PORT, PROXY_METRICS_PORT},
    layout::Layout,
    network,
    process::Daemon,
};
use crate::web;

pub(crate) fn daemon(layout: &Layout) -> Daemon {
    let config = layout.file("proxy.yaml");
    let content = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": layout.kubeconfig("proxy"), "qps": 500, "burst": 1000},
        "mode": "iptables",
        "iptables": {"masqueradeAll": !network::bridge_filter()},
        "clusterCIDR": CLUSTER_RANGE,
        "hostnameOverride": NODE_NAME,
        "healthzBindAddress": format!("127.0.0.1:{PROXY_HEALTH_PORT}"),
        "metricsBindAddress": format!("127.0.0.1:{PROXY_METRICS_PORT}"),
        // The kernel's limits and time-outs stay as they are.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    });
    Daemon::new(layout.tools.program("kubernetes", "kube-proxy"), [format!("--config={}", config.display())])
        .file(config, content.to_string())
}

pub(crate) async fn healthy() -> Result<()> {
    web::expect_ok(&format!("http://127.0.0.1:{PROXY_HEALTH_PORT}/healthz")).await
}
