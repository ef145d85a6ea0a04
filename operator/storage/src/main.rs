//! `ankka-storage`: see the library of the same crate.

use std::process::ExitCode;

use ankka_runtime::process::{About, refused};
use ankka_storage::{run::run, settings::Settings};
use anyhow::Context;
use kube::Config;
use tokio_util::sync::CancellationToken;

const ABOUT: About = About { program: "ankka-storage", version: env!("CARGO_PKG_VERSION") };

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    ABOUT.main(operate).await
}

async fn operate(stop: CancellationToken) -> anyhow::Result<()> {
    let settings = Settings::read(|name| std::env::var(name).ok()).map_err(|all| refused(&all))?;
    let store = settings.store.as_ref().map(|store| store.admin.to_string());
    tracing::info!(version = ABOUT.version, pod = settings.pod, prefix = settings.prefix, store, "starting");
    let cluster = Config::infer().await.context("failed to find a cluster: neither in one, nor a kubeconfig")?;
    run(settings, cluster, stop).await
}
