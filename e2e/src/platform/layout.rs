//! What every component needs to know: where files lie, where programs are, and whether there is a real node.

use std::{
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
};

use anyhow::Result;

use super::{
    addresses::{API_PORT, NODE},
    process::Processes,
};
use crate::{paths::Paths, tools::Tools};

/// Where things of one platform are.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) paths: Paths,
    pub(crate) tools: Tools,
    /// Whether there is a node that runs containers, which needs root.
    pub(crate) node: bool,
    pub(crate) processes: Processes,
}

impl Layout {
    /// For a platform with this state, whether it is up or not.
    pub(crate) fn new(paths: Paths) -> Result<Self> {
        let tools = Tools::locate(&paths)?;
        let processes = Processes::new(&paths.state);
        Ok(Self { paths, tools, node: nix::unistd::geteuid().is_root(), processes })
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.paths.state.join(name)
    }

    pub(crate) fn pki(&self) -> PathBuf {
        self.file("pki")
    }

    pub(crate) fn certificate(&self, name: &str) -> String {
        self.pki().join(format!("{name}.crt")).display().to_string()
    }

    pub(crate) fn key(&self, name: &str) -> String {
        self.pki().join(format!("{name}.key")).display().to_string()
    }

    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.pki().join(format!("{user}.kubeconfig"))
    }

    pub(crate) fn containerd_socket(&self) -> PathBuf {
        self.file("containerd/containerd.sock")
    }

    /// Where the API server listens: where pods reach it, too, when there are any.
    pub(crate) fn api_address(&self) -> IpAddr {
        IpAddr::V4(if self.node { NODE } else { Ipv4Addr::LOCALHOST })
    }

    pub(crate) fn api_url(&self) -> String {
        format!("https://{}:{API_PORT}", self.api_address())
    }
}
