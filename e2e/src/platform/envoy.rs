//! Envoy, as a process on the bridge: it serves what Contour tells it.

use anyhow::{Context, Result};

use super::{
    addresses::{CONTOUR_PORT, ENVOY_HEALTH_PORT},
    layout::Layout,
    process::Daemon,
};
use crate::{run::Run, web};

pub(crate) fn daemon(layout: &Layout) -> Daemon {
    // It takes no `--name=value`.
    let arguments = [
        "--config-path",
        &config(layout),
        "--service-cluster",
        "contour",
        "--service-node",
        "envoy",
        "--concurrency",
        "2",
        "--disable-hot-restart",
        "--log-level",
        "warn",
    ]
    .map(str::to_owned);
    Daemon::new(layout.tools.program("envoy", "envoy"), arguments)
}

/// Has Contour write where Envoy finds it.
pub(crate) async fn prepare(layout: &Layout) -> Result<()> {
    Run::new(layout.tools.program("contour", "contour"))
        .args(["bootstrap", &config(layout), "--xds-address=127.0.0.1", &format!("--xds-port={CONTOUR_PORT}")])
        .args([format!("--admin-address={}", layout.file("envoy.sock").display())])
        .text()
        .await
        .map(drop)
        .context("failed to write Envoy's configuration")
}

pub(crate) async fn healthy() -> Result<()> {
    web::expect_ok(&format!("http://127.0.0.1:{ENVOY_HEALTH_PORT}/ready")).await
}

fn config(layout: &Layout) -> String {
    layout.file("envoy.json").display().to_string()
}
