//! The workspace's own programs, built as this one was: with optimisations when it has them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use crate::{paths::workspace, progress::step, run::Run};

/// The command line.
pub const CLI: &[&str] = &["ankka"];
/// The programs that run on the platform, and the command line.
pub const ALL: &[&str] =
    &["ankka-operator", "ankka-webhook", "ankka-database", "ankka", "ankka-example-cart", "ankka-example-sidecar"];

/// Built programs by name.
#[derive(Clone, Debug)]
pub struct Binaries(BTreeMap<String, PathBuf>);

impl Binaries {
    /// Builds what is not up to date of these programs. They are named as programs and not as packages, so that the whole
    /// workspace decides on features and dependencies are compiled once for all of it.
    ///
    /// # Errors
    /// When cargo fails, with the last lines it printed.
    pub async fn build(programs: &[&str]) -> Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Run::new(cargo).args(["build", "--message-format=json-render-diagnostics"]).dir(workspace());
        if !cfg!(debug_assertions) {
            build = build.args(["--release"]);
        }
        let build =
            build.args(programs.iter().map(|program| format!("--bin={program}"))).limit(Duration::from_hours(1)).text();
        let printed =
            step("building the workspace's programs", Some("about 7 minutes the first time, on two cores"), build)
                .await?;
        Ok(Self(executables(&printed)?))
    }

    /// Path of one program.
    ///
    /// # Errors
    /// When the workspace has no such program.
    pub fn get(&self, name: &str) -> Result<&Path> {
        self.0.get(name).map(PathBuf::as_path).with_context(|| format!("cargo built no program called {name}"))
    }
}

/// Path of a program of the workspace that was built with this one.
///
/// # Errors
/// When it was not.
pub fn built(name: &str) -> Result<PathBuf> {
    let path = std::env::current_exe().context("this program has no path")?.with_file_name(name);
    ensure!(path.exists(), "{} is not there: run `cargo platform up`", path.display());
    Ok(path)
}

/// Programs in cargo's messages.
fn executables(messages: &str) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    for line in messages.lines() {
        let message: serde_json::Value = serde_json::from_str(line).context("cargo printed what is no message")?;
        if let (Some(name), Some(path)) = (message["target"]["name"].as_str(), message["executable"].as_str()) {
            found.insert(name.to_owned(), PathBuf::from(path));
        }
    }
    Ok(found)
}
