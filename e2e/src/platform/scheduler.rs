//! kube-scheduler, with its limit of requests raised as the controller manager's.

use anyhow::Result;

use super::{addresses::SCHEDULER_PORT, layout::Layout, probe, process::Daemon};

const NAME: &str = "scheduler";

pub(crate) fn daemon(layout: &Layout) -> Daemon {
    let config = layout.file("scheduler.yaml");
    let content = serde_json::json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": false},
        "clientConnection": {"kubeconfig": layout.kubeconfig(NAME), "qps": 1000, "burst": 2000},
    });
    Daemon::new(
        layout.tools.program("kubernetes", "kube-scheduler"),
        [
            format!("--config={}", config.display()),
            format!("--tls-cert-file={}", layout.certificate(NAME)),
            format!("--tls-private-key-file={}", layout.key(NAME)),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={SCHEDULER_PORT}"),
        ],
    )
    .file(config, content.to_string())
}

pub(crate) async fn healthy(layout: &Layout) -> Result<()> {
    probe::get(layout, &format!("https://127.0.0.1:{SCHEDULER_PORT}"), "/healthz").await
}
