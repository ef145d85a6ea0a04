//! containerd with runc and the CNI plugins. Everything it keeps lies in the platform's state, network namespaces included.

use std::{path::Path, time::Duration};

use anyhow::Result;
use serde_json::json;

use super::{
    addresses::{BRIDGE, POD_RANGE},
    images,
    layout::Layout,
    process::Daemon,
};
use crate::{paths, run::Run};

/// Name of the pods' network: it begins the names of files that the CNI library keeps outside our state.
pub(crate) const NETWORK: &str = "ankka-local";

/// containerd's namespace for the kubelet's containers; their control groups lie below one of this name.
pub(crate) const NAMESPACE: &str = "k8s.io";

pub(crate) fn daemon(layout: &Layout) -> Daemon {
    let config = layout.file("containerd/config.toml");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut daemon =
        Daemon::new(layout.tools.program("containerd", "containerd"), [format!("--config={}", config.display())])
            .file(config, configuration(layout))
            .file(layout.file("cni/10-bridge.conflist"), network(layout));
    // It looks for its shim and for runc there, the plugins for iptables.
    daemon.env.push(("PATH", format!("{}:{path}:/usr/sbin:/sbin", layout.tools.folder("containerd").display())));
    daemon
}

pub(crate) async fn healthy(layout: &Layout) -> Result<()> {
    ctr(layout).args(["version"]).limit(Duration::from_secs(5)).text().await.map(drop)
}

/// `ctr`, in the namespace of the kubelet's containers.
pub(crate) fn ctr(layout: &Layout) -> Run {
    Run::new(layout.tools.program("containerd", "ctr"))
        .args(["--address".as_ref(), layout.containerd_socket().as_os_str()])
        .args(["--namespace", NAMESPACE])
}

fn configuration(layout: &Layout) -> String {
    let folder = layout.file("containerd");
    let folder = folder.display();
    let cni = layout.file("cni");
    format!(
        r#"version = 3
root = "{folder}/root"
state = "{folder}/state"
[grpc]
  address = "{socket}"
[plugins.'io.containerd.nri.v1.nri']
  disable = true
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "{snapshotter}"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{pause}"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true # the right to lower a score may be missing
  netns_mounts_under_state_dir = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["{plugins}"]
  conf_dir = "{cni}"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
    SystemdCgroup = false
    Root = "{folder}/runc"
"#,
        socket = layout.containerd_socket().display(),
        snapshotter = snapshotter(&layout.paths.state),
        pause = images::PAUSE,
        plugins = layout.tools.folder("cni").display(),
        cni = cni.display(),
    )
}

/// A pod may call itself through its own service (hairpin); nothing is masqueraded, so no pod reaches beyond this machine.
fn network(layout: &Layout) -> String {
    json!({
        "cniVersion": "1.0.0",
        "name": NETWORK,
        "plugins": [
            {
                "type": "bridge", "bridge": BRIDGE, "isGateway": true, "ipMasq": false, "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": layout.file("cni-addresses"),
                    "ranges": [[{"subnet": POD_RANGE}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
    .to_string()
}

/// An overlay cannot lie on another one, as in a container: there each container gets a copy of its image.
pub(crate) fn snapshotter(state: &Path) -> &'static str {
    match paths::file_system(state).as_deref() {
        Some("overlay") => "native",
        _ => "overlayfs",
    }
}
