//! Which cluster: `--kubeconfig`, KUBECONFIG, `~/.kube/config`, and inside a pod its own.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{ClientBuilder, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tower::buffer::BufferLayer;
use tower::retry::RetryLayer;
use tower::{BoxError, ServiceBuilder};

use super::patience::Patience;
use super::{Cluster, explain::innermost};
use crate::args::Global;
use crate::error::Error;

/// How long opening a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How many requests may wait for a connection through a proxy.
const WAITING: usize = 64;

impl Cluster {
    /// Prepares a connection; the first request opens it.
    pub(crate) async fn connect(global: &Global) -> Result<Self, Error> {
        let mut config = config(global).await?;
        config.connect_timeout = Some(CONNECT);
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = client(config)
            .map_err(|cause| Error::new(format!("failed to prepare a connection to {server}: {cause}")))?;
        Ok(Self { client, server })
    }
}

/// The client of kube's default, but for two things: a request is sent as soon as it is written (waiting for the server's
/// acknowledgement of the handshake costs 40 ms), and which requests a busy server is sent again, and for how long, is ours to say ([`Patience`]).
fn client(mut config: Config) -> kube::Result<Client> {
    // Only the first call installs it, and all install the same.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    if config.proxy_url.is_some() {
        config.default_retry = false;
        let again = ServiceBuilder::new().layer(RetryLayer::new(Patience::new()?)).layer(BufferLayer::new(WAITING));
        return Ok(ClientBuilder::try_from(config)?.with_layer(&again.into_inner()).build());
    }
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(config.connect_timeout);
    let https = config.rustls_https_connector_with_connector(http)?;
    let hyper = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(https);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(RetryLayer::new(Patience::new()?))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(hyper);
    Ok(Client::new(service, config.default_namespace))
}

async fn config(global: &Global) -> Result<Config, Error> {
    let Some(kubeconfig) = kubeconfig(global)? else {
        return Config::incluster().map_err(|_| {
            let named: Vec<_> = listed().iter().map(|path| format!(" '{}'", path.display())).collect();
            Error::new(format!("no cluster selected: there is no kubeconfig{}", named.join(",")))
                .hint("name one with --kubeconfig or KUBECONFIG")
        });
    };
    let options = KubeConfigOptions { context: global.context.clone(), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|cause| match cause {
        KubeconfigError::CurrentContextNotSet => {
            Error::new("no cluster selected: the kubeconfig has no current context").hint("name one with --context")
        }
        KubeconfigError::LoadContext(name) => Error::new(format!("the kubeconfig has no context '{name}'"))
            .hint("list them with: kubectl config get-contexts"),
        cause => Error::new(format!("failed to use the kubeconfig: {cause}")),
    })
}

/// The kubeconfig; none where there is no file. Of a list, files that are not there are skipped, as kubectl does.
fn kubeconfig(global: &Global) -> Result<Option<Kubeconfig>, Error> {
    if let Some(path) = &global.kubeconfig {
        return read(path, false);
    }
    let listed = listed();
    let paths = if listed.is_empty() {
        std::env::home_dir().map(|home| home.join(".kube").join("config")).into_iter().collect()
    } else {
        listed
    };
    let mut merged: Option<Kubeconfig> = None;
    for path in paths {
        let Some(next) = read(&path, true)? else {
            continue;
        };
        merged = Some(match merged {
            None => next,
            Some(first) => first
                .merge(next)
                .map_err(|cause| Error::new(format!("failed to merge the files of KUBECONFIG: {cause}")))?,
        });
    }
    Ok(merged)
}

/// The files that KUBECONFIG names.
fn listed() -> Vec<PathBuf> {
    std::env::var_os("KUBECONFIG")
        .map(|list| std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect())
        .unwrap_or_default()
}

fn read(path: &Path, may_be_absent: bool) -> Result<Option<Kubeconfig>, Error> {
    match Kubeconfig::read_from(path) {
        Ok(kubeconfig) => Ok(Some(kubeconfig)),
        Err(KubeconfigError::ReadConfig(cause, _)) if may_be_absent && cause.kind() == ErrorKind::NotFound => Ok(None),
        Err(cause) => {
            let why = innermost(&cause);
            Err(Error::new(format!("failed to read the kubeconfig '{}': {why}", path.display())))
        }
    }
}
