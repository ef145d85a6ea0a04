//! `ankka-database`: see the library of the same crate.

use std::process::ExitCode;

use ankka_database::{run::run, settings::Settings};
use ankka_runtime::process::{About, refused};
use anyhow::Context;
use tokio_util::sync::CancellationToken;

const ABOUT: About = About { program: "ankka-database", version: env!("CARGO_PKG_VERSION") };

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    ABOUT.main(operate).await
}

async fn operate(stop: CancellationToken) -> anyhow::Result<()> {
    let settings = Settings::read(|name| std::env::var(name).ok()).map_err(|all| refused(&all))?;
    let config = kube::Config::infer().await.context("failed to find a cluster: neither in one, nor a kubeconfig")?;
    let server = settings.connection.address();
    tracing::info!(version = ABOUT.version, pod = settings.pod, prefix = settings.prefix, server, "starting");
    run(settings, config, stop).await
}
