//! Contour, as a process: it reads gateways and routes from the API server and tells Envoy what to serve.

use anyhow::Result;
use serde_json::json;

use super::{
    addresses::{CONTOUR_DEBUG_PORT, CONTOUR_HEALTH_PORT, CONTOUR_PORT, ENVOY_HEALTH_PORT, GATEWAY_SERVICE, NODE},
    gateway,
    layout::Layout,
    process::Daemon,
};
use crate::web;

pub(crate) fn daemon(layout: &Layout) -> Daemon {
    let config = layout.file("contour.yaml");
    let content = json!({
        "gateway": {"gatewayRef": {"namespace": gateway::NAMESPACE, "name": gateway::NAME}},
        "ingress-status-address": GATEWAY_SERVICE,
        // A path arrives as it was asked for.
        "disableMergeSlashes": true,
    });
    let arguments = [
        "serve".to_owned(),
        format!("--kubeconfig={}", layout.kubeconfig("contour").display()),
        format!("--config-path={}", config.display()),
        "--disable-leader-election".to_owned(),
        "--kubernetes-client-qps=500".to_owned(),
        "--kubernetes-client-burst=1000".to_owned(),
        // Loopback is where Envoy asks.
        "--insecure".to_owned(),
        "--xds-address=127.0.0.1".to_owned(),
        format!("--xds-port={CONTOUR_PORT}"),
        format!("--envoy-service-http-address={NODE}"),
        format!("--envoy-service-https-address={NODE}"),
        "--stats-address=127.0.0.1".to_owned(),
        format!("--stats-port={ENVOY_HEALTH_PORT}"),
        "--health-address=127.0.0.1".to_owned(),
        format!("--health-port={CONTOUR_HEALTH_PORT}"),
        "--http-address=127.0.0.1".to_owned(),
        format!("--http-port={CONTOUR_HEALTH_PORT}"),
        "--debug-http-address=127.0.0.1".to_owned(),
        format!("--debug-http-port={CONTOUR_DEBUG_PORT}"),
    ];
    Daemon::new(layout.tools.program("contour", "contour"), arguments).file(config, content.to_string())
}

pub(crate) async fn healthy() -> Result<()> {
    web::expect_ok(&format!("http://127.0.0.1:{CONTOUR_HEALTH_PORT}/healthz")).await
}
