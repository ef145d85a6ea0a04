//! In a controller's place: a client that is told what to write, against which the controller is measured.

use std::time::Duration;

use anyhow::Result;
use kube::{
    Client, Config,
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};

use super::runs::{NAMESPACE, leader_of, processes};
use crate::suite::{Cluster, cluster::eventually};

/// Does `work` while the controller of this name (and Deployment, and Lease) is away, and waits until it leads again.
pub(super) async fn instead_of<T>(
    cluster: &Cluster,
    controller: &str,
    work: impl AsyncFnOnce() -> Result<T>,
) -> Result<T> {
    let deployment = format!("deployment/{controller}");
    let pods = format!("app.kubernetes.io/name={controller}");
    let scale =
        async |replicas| cluster.ok("kubectl", &["scale", &deployment, replicas, "-n", NAMESPACE], "").await.map(drop);
    scale("--replicas=0").await?;
    let wait = ["wait", "pods", "--for=delete", "-n", NAMESPACE, "-l", &pods, "--timeout=90s"];
    let done = match cluster.ok("kubectl", &wait, "").await {
        Ok(_) => work().await,
        Err(error) => Err(error),
    };
    scale("--replicas=2").await?;
    leads(cluster, controller).await?;
    done
}

/// Waits until the controller is there as it should be, and one of its pods leads.
pub(super) async fn leads(cluster: &Cluster, controller: &str) -> Result<()> {
    let deployment = format!("deployment/{controller}");
    cluster.ok("kubectl", &["rollout", "status", &deployment, "-n", NAMESPACE, "--timeout=120s"], "").await?;
    eventually(&format!("{controller} to lead"), Duration::from_mins(1), async || {
        let leader = leader_of(cluster, controller).await?;
        Ok(if processes(cluster, &leader).await?.is_empty() { Err(leader) } else { Ok(()) })
    })
    .await
}

/// A client with the rights of the controller of this name.
pub(super) async fn client(cluster: &Cluster, controller: &str) -> Result<Client> {
    let token = cluster.ok("kubectl", &["create", "token", controller, "-n", NAMESPACE], "").await?;
    let file = Kubeconfig::read_from(cluster.platform.kubeconfig())?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.auth_info = AuthInfo { token: Some(token.trim().to_owned().into()), ..AuthInfo::default() };
    Ok(Client::try_from(config)?)
}
