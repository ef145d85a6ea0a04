//! `cargo platform`: the local platform from the command line.

use anyhow::Result;
use ankka_e2e::{paths::Paths, platform::Local, progress::say};
use clap::{Parser, Subcommand};

/// A real Kubernetes on this machine, with Ankka on it.
#[derive(Parser)]
#[command(name = "cargo platform", bin_name = "cargo platform")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Bring the platform up, or what is missing of it
    Up,
    /// Take it down and remove everything it made
    Down,
    /// Show how each component is
    Status,
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    match run(Arguments::parse().command).await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("error: {error:#}"));
            std::process::ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<()> {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let local = Local::new(Paths::from_env()?)?;
    match command {
        Command::Up => {
            let _lock = local.lock().await?;
            local.up().await
        }
        Command::Down => {
            let _lock = local.lock().await?;
            local.down().await
        }
        Command::Status => {
            for health in local.health().await {
                say(format_args!("{health:?}"));
            }
            Ok(())
        }
    }
}
