//! `ankka-operator`: see the library of the same crate.

use std::process::ExitCode;

use ankka_operator::{
    run::run,
    settings::{LOG, Refusal, Settings, log_filter},
};
use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    if let Some(argument) = std::env::args().nth(1) {
        return about(&argument);
    }
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        return ExitCode::FAILURE;
    }
    let ended = match log() {
        Ok(()) => operate().await,
        Err(refused) => Err(refused.into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "the operator ends");
            ExitCode::FAILURE
        }
    }
}

async fn operate() -> anyhow::Result<()> {
    let settings = Settings::read(|name| std::env::var(name).ok()).map_err(|refused| {
        let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}", refused.join("; "))
    })?;
    let config = kube::Config::infer().await.context("failed to find a cluster: neither in one, nor a kubeconfig")?;
    let stop = CancellationToken::new();
    tokio::spawn(cancel_on_signal(stop.clone())?);
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        pod = settings.pod,
        prefix = settings.desired.prefix,
        "starting"
    );
    run(settings, config, stop).await
}

/// Cancels `stop` at the first request of the system to end.
fn cancel_on_signal(stop: CancellationToken) -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
    })
}

/// One JSON object a line on standard output. `ANKKA_LOG`, or else `RUST_LOG`, says what is logged; where they say what
/// cannot be, that is logged, too.
fn log() -> Result<(), Refusal> {
    let (filter, refused) = match log_filter(|name| std::env::var(name).ok()) {
        Ok(filter) => (filter, Ok(())),
        Err(refused) => (EnvFilter::new(LOG), Err(refused)),
    };
    tracing_subscriber::fmt().json().flatten_event(true).with_env_filter(filter).init();
    refused
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line that is answered at once")]
fn about(argument: &str) -> ExitCode {
    if argument == "--version" || argument == "-V" {
        println!("ankka-operator {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    eprintln!("error: unexpected argument '{argument}'\nhint: the operator takes environment variables; see --version");
    ExitCode::from(2)
}
