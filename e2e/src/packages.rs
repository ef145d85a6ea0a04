//! Programs that come with the operating system: installed when they are missing and that is possible.

use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::{progress::step, run, run::Run};

/// A program the node needs, and the Debian package that brings it.
const NEEDED: [(&str, &str); 6] = [
    ("runc", "runc"),
    ("iptables", "iptables"),
    ("ip", "iproute2"),
    ("mount", "mount"),
    ("buildah", "buildah"),
    ("gcc", "gcc libc6-dev"),
];

/// Makes sure that every program is there.
///
/// # Errors
/// When one is missing and cannot be installed: the error names the packages.
pub async fn install() -> Result<()> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if run::find("apt-get").is_none() || !nix::unistd::geteuid().is_root() {
        bail!(
            "the local platform's node needs programs that are missing here; install these packages (Debian's names): {list}"
        );
    }
    let apt = |args: &[&str]| {
        Run::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive").limit(Duration::from_mins(15)).text()
    };
    step(&format!("installing packages: {list}"), Some("a minute or two"), async {
        apt(&["update", "-q"]).await?;
        let mut install = vec!["install", "-y", "-q", "--no-install-recommends"];
        install.extend(list.split(' '));
        apt(&install).await
    })
    .await
    .with_context(|| format!("failed to install {list}"))?;
    Ok(())
}

fn missing() -> Vec<&'static str> {
    NEEDED.iter().filter(|(program, _)| run::find(program).is_none()).map(|(_, package)| *package).collect()
}
