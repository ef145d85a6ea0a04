//! A cluster that can be worked with: a client, the command lines, and, on the local platform, what only it can tell.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config,
    api::{DeleteParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::{audit::AuditLog, paths::Paths, platform::Local, run, run::Run, tools::Tools};

/// The cluster under test, or to install on.
#[derive(Clone)]
pub struct Platform {
    client: Client,
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    helm: PathBuf,
    local: Option<Local>,
}

impl Platform {
    /// The local platform, which must be up.
    ///
    /// # Errors
    /// When it is not.
    pub async fn connect() -> Result<Self> {
        Self::local(Local::new(Paths::from_env()?)?).await
    }

    /// As [`Platform::connect`], for this one.
    ///
    /// # Errors
    /// When it is not up.
    pub async fn local(local: Local) -> Result<Self> {
        if !local.is_up() {
            bail!("the local platform is not up: run `cargo platform up`");
        }
        let kubeconfig = local.kubeconfig();
        let kubectl = local.tools().program("kubernetes", "kubectl");
        let helm = local.tools().program("helm", "helm");
        Ok(Self { client: client(&kubeconfig).await?, kubeconfig, kubectl, helm, local: Some(local) })
    }

    /// The cluster that `KUBECONFIG` names, with the `kubectl` found in `PATH` and our own helm.
    ///
    /// # Errors
    /// When the variable or kubectl is missing, or the file cannot be used.
    pub async fn existing() -> Result<Self> {
        let Some(kubeconfig) = std::env::var_os("KUBECONFIG").filter(|path| !path.is_empty()).map(PathBuf::from) else {
            bail!("KUBECONFIG is not set: it names the cluster to install on");
        };
        let kubectl = run::find("kubectl").context("kubectl is not installed")?;
        let helm = Tools::build(&Paths::from_env()?, &["helm"]).await?.program("helm", "helm");
        Ok(Self { client: client(&kubeconfig).await?, kubeconfig, kubectl, helm, local: None })
    }

    /// A client with an administrator's rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Path of the kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A run of `kubectl` against the cluster.
    pub fn kubectl(&self) -> Run {
        self.run(&self.kubectl)
    }

    /// A run of `helm` against the cluster.
    pub fn helm(&self) -> Run {
        self.run(&self.helm)
    }

    /// A run of the `ankka` that was installed with the platform.
    ///
    /// # Errors
    /// When none was: the cluster was brought up bare, or is not the local one.
    pub fn ankka(&self) -> Result<Run> {
        let program = self.require_local()?.programs().join("ankka");
        if !program.exists() {
            bail!("the platform was brought up without Ankka: run `cargo platform up`");
        }
        Ok(self.run(&program))
    }

    /// A run of any program with `KUBECONFIG` set.
    pub fn run(&self, program: &Path) -> Run {
        let run = Run::new(program).env("KUBECONFIG", &self.kubeconfig);
        match &self.local {
            // What kubectl remembers of the cluster goes with it.
            Some(local) => run.env("KUBECACHEDIR", local.paths().state.join("kubectl-cache")).env("NO_PROXY", "*"),
            None => run,
        }
    }

    /// The local platform behind it: images, fake nodes.
    ///
    /// # Errors
    /// When the cluster is not the local one.
    pub fn require_local(&self) -> Result<&Local> {
        self.local.as_ref().context("this takes the local platform")
    }

    /// Whether it is the local platform.
    pub fn is_local(&self) -> bool {
        self.local.is_some()
    }

    /// The API server's audit log.
    ///
    /// # Errors
    /// When the cluster is not the local one.
    pub fn audit(&self) -> Result<AuditLog> {
        Ok(AuditLog::new(self.require_local()?.audit_log()))
    }

    /// Makes a namespace of its own for one test, named `e2e-<what>-<random>`.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn namespace(&self, what: &str) -> Result<TestNamespace> {
        let api = Api::all(self.client());
        let mut namespace = Namespace::default();
        namespace.metadata.generate_name = Some(format!("e2e-{what}-"));
        let created = api.create(&PostParams::default(), &namespace).await.context("failed to create a namespace")?;
        Ok(TestNamespace { name: created.metadata.name.context("the API server names it")?, api })
    }
}

/// A namespace made for one test. It outlives a test that fails, to be looked at.
#[derive(Clone, Debug)]
pub struct TestNamespace {
    /// Its name.
    pub name: String,
    api: Api<Namespace>,
}

impl TestNamespace {
    /// Asks for its deletion and does not wait for it.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn delete(self) -> Result<()> {
        let deleted = self.api.delete(&self.name, &DeleteParams::default()).await;
        deleted.map(drop).with_context(|| format!("failed to delete namespace {}", self.name))
    }
}

/// A client of the current context of `kubeconfig`.
async fn client(kubeconfig: &Path) -> Result<Client> {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok(); // an error says that one is installed
    let file = Kubeconfig::read_from(kubeconfig).with_context(|| format!("failed to read {}", kubeconfig.display()))?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    let config = config.with_context(|| format!("{} cannot be used", kubeconfig.display()))?;
    Client::try_from(config).context("failed to make a client")
}
