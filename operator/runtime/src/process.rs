//! A controller's process: what its `main` does.

use std::process::ExitCode;

use ankka_telemetry::{Collector, Telemetry};
use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::settings::{LOG, Refusal, log_filter};

/// What a process is called, and its version.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The program's name.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
}

impl About {
    /// Runs `operate`, which is to end when its token is cancelled, with one JSON object a line on standard output as its log.
    pub async fn main<F>(self, operate: impl FnOnce(CancellationToken) -> F) -> ExitCode
    where
        F: Future<Output = anyhow::Result<()>>,
    {
        match std::env::args().nth(1) {
            Some(argument) => self.answer(&argument),
            None => self.run(operate).await,
        }
    }

    /// As [`Self::main`], whatever the arguments are.
    pub async fn run<F>(self, operate: impl FnOnce(CancellationToken) -> F) -> ExitCode
    where
        F: Future<Output = anyhow::Result<()>>,
    {
        if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
            return ExitCode::FAILURE;
        }
        let (telemetry, settled) = match self.begin() {
            Ok(begun) => begun,
            Err(error) => return unheard(&error),
        };
        let ended = match settled.and_then(|()| stop_on_signal()) {
            Ok(stop) => operate(stop).await,
            Err(error) => Err(error),
        };
        let code = match ended {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "{} ends", self.program);
                ExitCode::FAILURE
            }
        };
        telemetry.end().await;
        code
    }

    /// Begins to log, by `ANKKA_LOG` or else `RUST_LOG`, and to trace where there is a collector. Where they say what cannot be,
    /// that is logged, too.
    fn begin(self) -> anyhow::Result<(Telemetry, anyhow::Result<()>)> {
        let variable = |name: &str| std::env::var(name).ok();
        let (filter, log) = match log_filter(variable) {
            Ok(filter) => (filter, Ok(())),
            Err(refused) => (EnvFilter::new(LOG), Err(refused.into())),
        };
        let (collector, traces) = match Collector::read(variable) {
            Ok(collector) => (collector, Ok(())),
            Err(unusable) => (None, Err(unusable.into())),
        };
        let about = ankka_telemetry::About { program: self.program, version: self.version };
        Ok((Telemetry::begin(about, filter, collector.as_ref())?, log.and(traces)))
    }

    #[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line that is answered at once")]
    fn answer(self, argument: &str) -> ExitCode {
        let Self { program, version } = self;
        if argument == "--version" || argument == "-V" {
            println!("{program} {version}");
            return ExitCode::SUCCESS;
        }
        eprintln!(
            "error: unexpected argument '{argument}'\nhint: {program} takes environment variables; see --version"
        );
        ExitCode::from(2)
    }
}

/// All refusals in one error.
pub fn refused(refused: &[Refusal]) -> anyhow::Error {
    let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
    anyhow::anyhow!("{}", refused.join("; "))
}

/// A token that is cancelled at the first request of the system to end.
fn stop_on_signal() -> anyhow::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    let stop = CancellationToken::new();
    let cancelled = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        cancelled.cancel();
    });
    Ok(stop)
}

/// Why the process cannot even log.
#[expect(clippy::print_stderr, reason = "there is no log")]
fn unheard(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}
