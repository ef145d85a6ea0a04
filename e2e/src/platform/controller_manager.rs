//! kube-controller-manager. Its own limit of requests is raised: scale tests would measure that.

use anyhow::Result;

use super::{
    addresses::{CLUSTER_RANGE, CONTROLLER_MANAGER_PORT},
    layout::Layout,
    probe,
    process::Daemon,
};

const NAME: &str = "controller-manager";

pub(crate) fn daemon(layout: &Layout) -> Daemon {
    Daemon::new(
        layout.tools.program("kubernetes", "kube-controller-manager"),
        [
            format!("--kubeconfig={}", layout.kubeconfig(NAME).display()),
            format!("--root-ca-file={}", layout.certificate("ca")),
            format!("--service-account-private-key-file={}", layout.key("accounts")),
            format!("--cluster-signing-cert-file={}", layout.certificate("ca")),
            format!("--cluster-signing-key-file={}", layout.key("ca")),
            format!("--client-ca-file={}", layout.certificate("ca")),
            format!("--tls-cert-file={}", layout.certificate(NAME)),
            format!("--tls-private-key-file={}", layout.key(NAME)),
            "--use-service-account-credentials".to_owned(),
            "--leader-elect=false".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={CONTROLLER_MANAGER_PORT}"),
            format!("--cluster-cidr={CLUSTER_RANGE}"),
            "--kube-api-qps=1000".to_owned(),
            "--kube-api-burst=2000".to_owned(),
            "--profiling=false".to_owned(),
        ],
    )
}

pub(crate) async fn healthy(layout: &Layout) -> Result<()> {
    probe::get(layout, &format!("https://127.0.0.1:{CONTROLLER_MANAGER_PORT}"), "/healthz").await
}
