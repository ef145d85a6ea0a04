//! kube-apiserver, with an audit log of every request: what tests of permissions and of deletions read.

use std::path::PathBuf;

use anyhow::Result;

use super::{
    addresses::{API_PORT, ETCD_PORT, SERVICE_RANGE},
    layout::Layout,
    probe,
    process::Daemon,
};

/// Who did what to which object and how it was answered; never what an object holds. Health checks, the node's heartbeat
/// and the API server's own requests are left out.
const AUDIT_POLICY: &str = include_str!("../../manifests/audit-policy.yaml");

pub(crate) fn daemon(layout: &Layout) -> Daemon {
    let address = layout.api_address();
    let policy = layout.file("audit-policy.yaml");
    let mut args = vec![
        format!("--etcd-servers=http://127.0.0.1:{ETCD_PORT}"),
        format!("--bind-address={address}"),
        format!("--secure-port={API_PORT}"),
        format!("--client-ca-file={}", layout.certificate("ca")),
        format!("--tls-cert-file={}", layout.certificate("apiserver")),
        format!("--tls-private-key-file={}", layout.key("apiserver")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", layout.pki().join("accounts.pub").display()),
        format!("--service-account-signing-key-file={}", layout.key("accounts")),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--anonymous-auth=false".to_owned(),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        "--allow-privileged".to_owned(),
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", audit_log(layout).display()),
        "--audit-log-maxsize=1048576".to_owned(), // MB: it is never rotated, so an offset in it stays one
        "--profiling=false".to_owned(),
    ];
    if layout.node {
        args.extend([
            format!("--advertise-address={address}"),
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
            format!("--kubelet-client-certificate={}", layout.certificate("kubelet-client")),
            format!("--kubelet-client-key={}", layout.key("kubelet-client")),
            format!("--kubelet-certificate-authority={}", layout.certificate("ca")),
        ]);
    } else {
        // Nobody could reach its service address.
        args.push("--endpoint-reconciler-type=none".to_owned());
    }
    Daemon::new(layout.tools.program("kubernetes", "kube-apiserver"), args).file(policy, AUDIT_POLICY)
}

pub(crate) fn audit_log(layout: &Layout) -> PathBuf {
    layout.file("logs/audit.log")
}

pub(crate) async fn healthy(layout: &Layout) -> Result<()> {
    probe::get(layout, &layout.api_url(), "/readyz").await
}
