//! etcd: the API server's store. It does not wait for the disk: what it holds need not survive the machine.

use anyhow::Result;

use super::{
    addresses::{ETCD_PEER_PORT, ETCD_PORT},
    layout::Layout,
    process::Daemon,
};
use crate::web;

pub(crate) fn daemon(layout: &Layout) -> Daemon {
    let client = url(ETCD_PORT);
    let peer = url(ETCD_PEER_PORT);
    Daemon::new(
        layout.tools.program("etcd", "etcd"),
        [
            "--name=local".to_owned(),
            format!("--data-dir={}", layout.file("etcd").display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=local={peer}"),
            "--unsafe-no-fsync".to_owned(),
            "--quota-backend-bytes=8589934592".to_owned(),
            "--auto-compaction-retention=5m".to_owned(),
            "--log-level=warn".to_owned(),
        ],
    )
}

pub(crate) async fn healthy() -> Result<()> {
    web::expect_ok(&format!("{}/readyz", url(ETCD_PORT))).await
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}
