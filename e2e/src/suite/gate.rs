//! The gate: every test of the workspace, then every case on the cluster, counted together.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use anyhow::{Context, Result};

pub use super::runner::Tally;
use super::{Cluster, cases, report, runner};
use crate::{Platform, paths};

/// Runs the tests of the workspace that need no cluster, unoptimised: they are compiled in a third of the time. Some run a Garage, by
/// this program.
pub fn workspace(garage: &Path) -> Result<Tally> {
    let mut tally = Tally::default();
    tally.add(step("cargo fmt", &["fmt", "--all", "--check"])?);
    tally.add(step(
        "cargo clippy",
        &["clippy", "--workspace", "--all-targets", "--all-features", "--quiet", "--", "-D", "warnings"],
    )?);
    tally.add(cargo_test(garage)?);
    Ok(tally)
}

/// Runs the cases whose name contains `filter` on a cluster that is up.
pub async fn cluster(platform: Platform, filter: Option<&str>) -> Tally {
    runner::run_all(&cases::all(), &Arc::new(Cluster::new(platform)), filter).await
}

/// The line that closes every run.
pub fn close(tally: &Tally) {
    if !tally.failed.is_empty() {
        report::line("\nfailed:");
        for name in &tally.failed {
            report::line(&format!("    {name}"));
        }
    }
    report::line(&format!("\n{} passed, {} failed", tally.passed, tally.failed.len()));
}

fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(paths::workspace()).stdin(Stdio::null());
    command
}

/// One cargo command that counts as one test.
fn step(name: &str, args: &[&str]) -> Result<Tally> {
    report::line(&format!("running {name}"));
    let status = cargo(args).status().with_context(|| format!("failed to start {name}"))?;
    report::line(&format!("test {name} ... {}", if status.success() { "ok" } else { "FAILED" }));
    let mut tally = Tally::default();
    tally.count(name, status.success());
    Ok(tally)
}

/// `cargo test` over the workspace: its lines are passed on, and its tests counted.
fn cargo_test(garage: &Path) -> Result<Tally> {
    report::line("running cargo test");
    let args = ["test", "--workspace", "--all-features", "--no-fail-fast"];
    let mut child = cargo(&args)
        .env("ANKKA_TEST_GARAGE", garage)
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to start cargo test")?;
    let output = BufReader::new(child.stdout.take().context("cargo test has no output")?);
    let mut tally = Tally::default();
    for line in output.lines() {
        let line = line.context("failed to read what cargo test prints")?;
        report::line(&line);
        let Some(test) = line.strip_prefix("test ") else { continue };
        if let Some(name) = test.strip_suffix(" ... FAILED") {
            tally.failed.push(name.to_owned());
        } else if test.ends_with(" ... ok") {
            tally.passed += 1;
        }
    }
    let status = child.wait().context("failed to wait for cargo test")?;
    if !status.success() && tally.failed.is_empty() {
        tally.failed.push("cargo test".to_owned());
    }
    Ok(tally)
}
