//! `ankka-database`: see the library of the same crate.

use std::process::ExitCode;

use ankka_database::{administrator, run::run, settings::Settings};
use ankka_runtime::process::{About, refused};
use anyhow::Context;
use kube::{Client, Config};
use tokio_util::sync::CancellationToken;

const ABOUT: About = About { program: "ankka-database", version: env!("CARGO_PKG_VERSION") };

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [argument, secret] if argument == administrator::ARGUMENT => ABOUT.run(|_| make_administrator(secret)).await,
        _ => ABOUT.main(operate).await,
    }
}

async fn operate(stop: CancellationToken) -> anyhow::Result<()> {
    let settings = Settings::read(|name| std::env::var(name).ok()).map_err(|all| refused(&all))?;
    let server = settings.connection.address();
    tracing::info!(version = ABOUT.version, pod = settings.pod, prefix = settings.prefix, server, "starting");
    run(settings, cluster().await?, stop).await
}

async fn make_administrator(secret: &str) -> anyhow::Result<()> {
    let namespace = std::env::var("POD_NAMESPACE").context("POD_NAMESPACE is not set")?;
    let client = Client::try_from(cluster().await?).context("failed to build a client for the cluster")?;
    administrator::make(client, &namespace, secret).await
}

async fn cluster() -> anyhow::Result<Config> {
    Config::infer().await.context("failed to find a cluster: neither in one, nor a kubeconfig")
}
