//! The start of `ankka`, against a program that says hello.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, ensure};

use super::rows::{Row, quantile};
use crate::{binaries::Binaries, run::Run};

const ROUNDS: usize = 200;
const HELLO: &str = "fn main() { println!(\"hello\"); }\n";

/// Starts both in turn and reports the ratio of their medians, and the size of `ankka`.
pub async fn measure() -> Result<Vec<Row>> {
    let binaries = Binaries::build(&["ankka"]).await?;
    let ankka = binaries.get("ankka")?;
    let folder = tempfile::tempdir()?;
    let (source, hello) = (folder.path().join("hello.rs"), folder.path().join("hello"));
    std::fs::write(&source, HELLO)?;
    Run::new("rustc")
        .args(["-C", "opt-level=3", "-C", "strip=debuginfo", "-o"])
        .args([&hello, &source])
        .text()
        .await
        .context("failed to compile the program that says hello")?;

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(start(ankka, &["--version"])?);
        theirs.push(start(&hello, &[])?);
    }
    let (ours, theirs) = (quantile(&mut ours, 0.5), quantile(&mut theirs, 0.5));
    #[expect(clippy::cast_precision_loss, reason = "a size of some megabytes")]
    let size = std::fs::metadata(ankka)?.len() as f64 / 1e6;
    Ok(vec![
        Row::at_most("start of `ankka --version`, against a hello-world program", ours / theirs, 3.0, "×"),
        Row::at_most("size of `ankka`", size, 20.0, " MB"),
        Row::figure("start of `ankka --version`, median", format!("{ours:.2} ms (hello world {theirs:.2} ms)")),
    ])
}

/// Milliseconds from start to end.
fn start(program: &Path, args: &[&str]) -> Result<f64> {
    let started = Instant::now();
    let status = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("failed to start {}", program.display()))?;
    let taken = started.elapsed().as_secs_f64() * 1e3;
    ensure!(status.success(), "{} ended with {status}", program.display());
    Ok(taken)
}
