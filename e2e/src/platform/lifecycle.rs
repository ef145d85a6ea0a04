//! Bringing the cluster up, and taking it down without a trace.

use std::{
    fs::{File, TryLockError},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use futures::future::{join_all, try_join_all};

use super::{
    component::{Component, Health},
    gateway,
    images::{self, Packing},
    kubelet, kwok,
    layout::Layout,
    leftovers, manifests, network, pki, postgres, probe,
    process::{self, PATIENCE},
};
use crate::{packages, paths::Paths, progress::step, tools::Tools};

/// What the platform puts into its own cluster.
const MANIFESTS: &str = include_str!("../../manifests/cluster.yaml");

/// How long a component may take to end when nothing of it is kept. An API server would wait for those who watch.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Fake nodes where there is no real one.
const FAKE_NODES: usize = 3;

/// The local cluster, up or not.
#[derive(Clone, Debug)]
pub struct Local {
    layout: Layout,
}

/// Held by whoever changes the platform; released when dropped.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "the lock is held while the file is open")] File);

impl Local {
    /// The cluster whose state lies in these folders.
    ///
    /// # Errors
    /// When a pinned module file cannot be read.
    pub fn new(paths: Paths) -> Result<Self> {
        Ok(Self { layout: Layout::new(paths)? })
    }

    /// Whether there is a node that runs containers.
    pub fn has_node(&self) -> bool {
        self.layout.node
    }

    /// Kubeconfig of an administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.kubeconfig("admin")
    }

    /// The built programs.
    pub fn tools(&self) -> &Tools {
        &self.layout.tools
    }

    /// The folders in use.
    pub fn paths(&self) -> &Paths {
        &self.layout.paths
    }

    /// The API server's audit log.
    pub fn audit_log(&self) -> PathBuf {
        super::api_server::audit_log(&self.layout)
    }

    /// Whether it is up, well or not.
    pub fn is_up(&self) -> bool {
        Component::ApiServer.runs(&self.layout)
    }

    /// Folder with the programs that a user of the cluster wants: `kubectl`, `helm`, `ankka`.
    pub fn programs(&self) -> PathBuf {
        self.layout.file("bin")
    }

    /// Puts a program there, by a link.
    ///
    /// # Errors
    /// When the link cannot be made.
    pub fn link(&self, name: &str, program: &Path) -> Result<()> {
        let link = self.programs().join(name);
        if std::fs::read_link(&link).is_ok_and(|present| present == program) {
            return Ok(());
        }
        std::fs::create_dir_all(self.programs())?;
        std::fs::remove_file(&link).ok(); // usually there is none
        std::os::unix::fs::symlink(program, &link).with_context(|| format!("failed to link {}", link.display()))
    }

    /// Locks the platform against other commands that would change it, waiting up to a minute.
    ///
    /// # Errors
    /// When another command still works on it then.
    pub async fn lock(&self) -> Result<Lock> {
        let path = self.layout.paths.cache.join("platform.lock");
        std::fs::create_dir_all(&self.layout.paths.cache).context("failed to create the cache")?;
        let file = File::create(&path).with_context(|| format!("failed to open {}", path.display()))?;
        for _ in 0..600 {
            match file.try_lock() {
                Ok(()) => return Ok(Lock(file)),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(Duration::from_millis(100)).await,
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("failed to lock {}", path.display()));
                }
            }
        }
        bail!("another command is changing the local platform (it holds {})", path.display())
    }

    /// Brings it up: all of it, what is missing of it, or nothing when all is well.
    ///
    /// # Errors
    /// Whatever keeps a component from being ready, with its last words. What was started stays, to be looked at: `up` tries
    /// again, `down` removes it.
    pub async fn up(&self) -> Result<()> {
        let layout = &self.layout;
        if layout.node {
            packages::node().await?;
        }
        Tools::build(&layout.paths, &[]).await?;
        if self.broken() {
            step("removing what an earlier run left", None, self.remove()).await?;
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&layout.paths.state)?;
        std::fs::set_permissions(&layout.paths.state, std::fs::Permissions::from_mode(0o700))?;
        crate::paths::write(&layout.file("boot"), process::boot())?;
        pki::create(layout)?;
        for (tool, program) in [("kubernetes", "kubectl"), ("helm", "helm")] {
            self.link(program, &layout.tools.program(tool, program))?;
        }

        if layout.node {
            step("bridge and routes", None, network::up(layout)).await?;
            let both = async { tokio::try_join!(self.control_plane(), self.containerd()) };
            step("control plane and container runtime", None, both).await?;
            let all = Box::pin(async { tokio::try_join!(self.node(), self.postgres(), self.start_gateway()) });
            step("node, database server and gateway", None, all).await.map(drop)
        } else {
            step("control plane", None, self.control_plane()).await?;
            step("fake nodes", None, self.start_fake_nodes(FAKE_NODES)).await
        }
    }

    /// Whether what is there cannot be mended by starting what is missing: the machine was started since, or the store is gone.
    fn broken(&self) -> bool {
        let Ok(boot) = std::fs::read_to_string(self.layout.file("boot")) else {
            return self.layout.paths.state.exists();
        };
        boot != process::boot() || !pki::current(&self.layout) || !Component::Etcd.runs(&self.layout)
    }

    async fn control_plane(&self) -> Result<()> {
        let layout = &self.layout;
        Component::Etcd.start(layout).await?;
        Component::ApiServer.start(layout).await?;
        let managers = [Component::ControllerManager, Component::Scheduler].map(|component| component.start(layout));
        let client = probe::client(layout, &layout.api_url())?;
        tokio::try_join!(try_join_all(managers), manifests::apply(&client, MANIFESTS))?;
        Ok(())
    }

    async fn containerd(&self) -> Result<()> {
        Component::Containerd.start(&self.layout).await?;
        images::import_pause(&self.layout).await
    }

    async fn node(&self) -> Result<()> {
        let layout = &self.layout;
        let (kubelet, limit) = (Component::Kubelet.name(), Duration::from_mins(1));
        let node = async {
            Component::Kubelet.start(layout).await?;
            layout.processes.ready(kubelet, limit, || kubelet::registered(layout)).await?;
            Component::Proxy.start(layout).await?;
            layout.processes.ready(kubelet, limit, || kubelet::ready(layout)).await
        };
        tokio::try_join!(node, Component::Dns.start(layout))?;
        Ok(())
    }

    async fn postgres(&self) -> Result<()> {
        let layout = &self.layout;
        postgres::prepare(layout).await?;
        Component::Postgres.start(layout).await?;
        let client = probe::client(layout, &layout.api_url())?;
        let manifests = postgres::manifests();
        tokio::try_join!(postgres::administrator(layout), manifests::apply(&client, &manifests))?;
        Ok(())
    }

    /// Starts the gateway, or leaves it running, with the resources it needs.
    ///
    /// # Errors
    /// When a resource is refused or a program is not ready in time.
    pub async fn start_gateway(&self) -> Result<()> {
        let client = probe::client(&self.layout, &self.layout.api_url())?;
        gateway::prepare(&self.layout, &client).await?;
        Component::Contour.start(&self.layout).await?;
        Component::Envoy.start(&self.layout).await
    }

    /// Stops the gateway, for tests of what happens without it.
    ///
    /// # Errors
    /// When a program does not end.
    pub async fn stop_gateway(&self) -> Result<()> {
        Component::Envoy.stop(&self.layout, PATIENCE).await?;
        Component::Contour.stop(&self.layout, PATIENCE).await
    }

    /// The gateway of the platform's services.
    pub fn exposure(&self) -> gateway::Gateway {
        gateway::Gateway::new(&self.layout)
    }

    /// The database server of the platform's services.
    ///
    /// # Errors
    /// When there is none, because there is no node.
    pub fn database(&self) -> Result<postgres::Server> {
        if !self.layout.node {
            bail!("there is no database server where there is no node: that takes root");
        }
        postgres::server(&self.layout)
    }

    /// Takes it down and removes everything it made, the cache of built programs excepted.
    ///
    /// # Errors
    /// What could not be removed; running it again goes on from there.
    pub async fn down(&self) -> Result<()> {
        if self.layout.paths.state.exists() {
            step("taking the platform down", None, self.remove()).await?;
        }
        Ok(())
    }

    async fn remove(&self) -> Result<()> {
        let layout = &self.layout;
        // First who makes things, then who keeps them. One that does not end must not keep the others from ending.
        let mut results = Vec::new();
        for group in [
            &[
                Component::Kubelet,
                Component::Proxy,
                Component::Dns,
                Component::Envoy,
                Component::Contour,
                Component::Kwok,
                Component::Scheduler,
            ][..],
            &[Component::ControllerManager, Component::Containerd, Component::ApiServer, Component::Postgres],
            &[Component::Etcd],
        ] {
            results.extend(join_all(group.iter().map(|component| component.stop(layout, LAST_WORDS))).await);
        }
        results.into_iter().collect::<Result<Vec<_>>>()?;
        if layout.node {
            leftovers::remove(layout).await?;
            network::down(layout).await?;
            postgres::remove(layout)?;
        }
        match std::fs::remove_dir_all(&layout.paths.state) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("failed to remove {}", layout.paths.state.display()))
            }
            _ => Ok(()),
        }
    }

    /// How each component is, in the order they are started.
    pub async fn health(&self) -> Vec<Health> {
        let node = self.layout.node;
        let expected = Component::ALL.into_iter().filter(|component| match component {
            Component::Etcd | Component::ApiServer | Component::ControllerManager | Component::Scheduler => true,
            Component::Kwok => !node || component.runs(&self.layout),
            _ => node,
        });
        join_all(expected.map(|component| component.health(&self.layout))).await
    }

    /// Makes an image and imports it under `reference`, e.g. `docker.io/local/cart:2`; quick when the node has it. Returns whether
    /// it had not.
    ///
    /// # Errors
    /// When a file cannot be read, buildah fails, or containerd refuses the image.
    pub async fn import(&self, packing: &Packing, reference: &str) -> Result<bool> {
        if !self.layout.node {
            bail!("there is no node to import {reference} into: that takes root");
        }
        images::import(&self.layout, packing, reference).await
    }

    /// Starts one program of the cluster, or leaves it running, and waits until it is ready.
    ///
    /// # Errors
    /// When it is not ready in time, with the last lines it wrote.
    pub async fn start(&self, component: Component) -> Result<()> {
        component.start(&self.layout).await
    }

    /// Stops one program of the cluster, for tests of what happens without it, or of what others cost. `up` starts it again.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn stop(&self, component: Component) -> Result<()> {
        component.stop(&self.layout, PATIENCE).await
    }

    /// Ids of a container's processes, to measure or to freeze them. Takes its id as a pod's status has it
    /// (`containerd://…`); none when it does not run.
    pub fn processes(&self, container: &str) -> Vec<i32> {
        leftovers::container_processes(container.trim_start_matches("containerd://"))
    }

    /// Starts kwok and makes `count` fake nodes. Beside a real node, pods of namespaces labelled `e2e.ankka.dev/nodes: fake`
    /// are placed on them, and no others; those made before the label was set stay where they are.
    ///
    /// # Errors
    /// When kwok does not start or a node is not ready within a minute.
    pub async fn start_fake_nodes(&self, count: usize) -> Result<()> {
        Component::Kwok.start(&self.layout).await?;
        kwok::create_nodes(&self.layout, count).await?;
        let limit = Duration::from_mins(1);
        self.layout.processes.ready(Component::Kwok.name(), limit, || kwok::nodes_ready(&self.layout)).await
    }

    /// Removes the fake nodes and stops kwok. Delete what runs on them first: nobody is left to say that a pod has ended.
    ///
    /// # Errors
    /// When a node cannot be deleted or kwok does not end.
    pub async fn stop_fake_nodes(&self) -> Result<()> {
        kwok::delete_nodes(&self.layout).await?;
        Component::Kwok.stop(&self.layout, PATIENCE).await
    }
}
