//! The programs a cluster consists of, under one name each.

use std::{
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use anyhow::{Result, bail};

use super::{
    addresses, api_server, containerd, contour, controller_manager, dns, envoy, etcd, kubelet, kwok, layout::Layout,
    postgres, process::Daemon, proxy, scheduler,
};

/// How long a component may take to be ready, on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

/// One program of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// etcd; without it nothing is left of the cluster.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// containerd; containers go on running without it.
    Containerd,
    /// The kubelet of the real node.
    Kubelet,
    /// kube-proxy; the rules it made stay.
    Proxy,
    /// CoreDNS.
    Dns,
    /// PostgreSQL, with the services' databases.
    Postgres,
    /// Contour, which tells Envoy of routes.
    Contour,
    /// Envoy, which serves the gateway.
    Envoy,
    /// kwok, which plays the fake nodes.
    Kwok,
}

/// How one component is.
#[derive(Debug)]
pub struct Health {
    /// Its name, e.g. `etcd`.
    pub component: &'static str,
    /// Its process id while it runs.
    pub pid: Option<i32>,
    /// Where it listens.
    pub address: String,
    /// `ok`, `stopped`, or what is wrong.
    pub state: String,
}

impl Component {
    /// In the order they are started; `down` goes the other way.
    pub(crate) const ALL: [Self; 12] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Containerd,
        Self::Kubelet,
        Self::Dns,
        Self::Proxy,
        Self::Postgres,
        Self::Contour,
        Self::Envoy,
        Self::Kwok,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Containerd => "containerd",
            Self::Kubelet => "kubelet",
            Self::Proxy => "kube-proxy",
            Self::Dns => "coredns",
            Self::Postgres => "postgres",
            Self::Contour => "contour",
            Self::Envoy => "envoy",
            Self::Kwok => "kwok",
        }
    }

    fn daemon(self, layout: &Layout) -> Result<Daemon> {
        Ok(match self {
            Self::Etcd => etcd::daemon(layout),
            Self::ApiServer => api_server::daemon(layout),
            Self::ControllerManager => controller_manager::daemon(layout),
            Self::Scheduler => scheduler::daemon(layout),
            Self::Containerd => containerd::daemon(layout),
            Self::Kubelet => kubelet::daemon(layout),
            Self::Proxy => proxy::daemon(layout),
            Self::Dns => dns::daemon(layout),
            Self::Postgres => postgres::daemon(layout)?,
            Self::Contour => contour::daemon(layout),
            Self::Envoy => envoy::daemon(layout),
            Self::Kwok => kwok::daemon(layout)?,
        })
    }

    async fn healthy(self, layout: &Layout) -> Result<()> {
        match self {
            Self::Etcd => etcd::healthy().await,
            Self::ApiServer => api_server::healthy(layout).await,
            Self::ControllerManager => controller_manager::healthy(layout).await,
            Self::Scheduler => scheduler::healthy(layout).await,
            Self::Containerd => containerd::healthy(layout).await,
            Self::Kubelet => kubelet::healthy().await,
            Self::Proxy => proxy::healthy().await,
            Self::Dns => dns::healthy().await,
            Self::Postgres => postgres::healthy().await,
            Self::Contour => contour::healthy().await,
            Self::Envoy => envoy::healthy().await,
            Self::Kwok => kwok::healthy().await,
        }
    }

    fn address(self, layout: &Layout) -> String {
        let loopback = |port| format!("127.0.0.1:{port}");
        match self {
            Self::Etcd => loopback(addresses::ETCD_PORT),
            Self::ApiServer => format!("{}:{}", layout.api_address(), addresses::API_PORT),
            Self::ControllerManager => loopback(addresses::CONTROLLER_MANAGER_PORT),
            Self::Scheduler => loopback(addresses::SCHEDULER_PORT),
            Self::Containerd => layout.containerd_socket().display().to_string(),
            Self::Kubelet => format!("{}:{}", addresses::NODE, addresses::KUBELET_PORT),
            Self::Proxy => loopback(addresses::PROXY_HEALTH_PORT),
            Self::Dns => format!("{}:53", addresses::NODE),
            Self::Postgres => format!("{}:{}", addresses::NODE, addresses::POSTGRES_PORT),
            Self::Contour => loopback(addresses::CONTOUR_PORT),
            Self::Envoy => format!("{}:{}", addresses::NODE, addresses::ENVOY_PORT),
            Self::Kwok => loopback(addresses::KWOK_PORT),
        }
    }

    /// Starts it unless it runs as it should, and waits until it is ready.
    pub(crate) async fn start(self, layout: &Layout) -> Result<()> {
        if !self.runs(layout)
            && let Ok(address) = self.address(layout).parse::<SocketAddr>()
            && let Err(error) = TcpListener::bind(address)
        {
            bail!(
                "{} cannot have its address {address} ({error}): is another local platform, or another node, running here?",
                self.name()
            );
        }
        layout.processes.start(self.name(), &self.daemon(layout)?).await?;
        layout.processes.ready(self.name(), LIMIT, || self.healthy(layout)).await
    }

    /// Ends it, by force if it has not ended after `patience`.
    pub(crate) async fn stop(self, layout: &Layout, patience: Duration) -> Result<()> {
        layout.processes.stop(self.name(), patience).await
    }

    pub(crate) fn runs(self, layout: &Layout) -> bool {
        layout.processes.running(self.name()).is_some()
    }

    pub(crate) async fn health(self, layout: &Layout) -> Health {
        let running = layout.processes.running(self.name());
        let state = match &running {
            None => "stopped".to_owned(),
            Some(_) => match tokio::time::timeout(Duration::from_secs(5), self.healthy(layout)).await {
                Ok(Ok(())) => "ok".to_owned(),
                Ok(Err(error)) => format!("{error:#}").lines().next().unwrap_or_default().to_owned(),
                Err(_) => "no answer".to_owned(),
            },
        };
        Health { component: self.name(), pid: running.map(|process| process.pid), address: self.address(layout), state }
    }
}
