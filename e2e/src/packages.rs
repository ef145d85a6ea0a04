//! Programs that come with the operating system: installed when they are missing and that is possible.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail};

use crate::{progress::step, run, run::Run};

/// A program the node needs, and the Debian package that brings it.
const NODE: [(&str, &str); 7] = [
    ("runc", "runc"),
    ("iptables", "iptables"),
    ("ip", "iproute2"),
    ("mount", "mount"),
    ("buildah", "buildah"),
    ("gcc", "gcc libc6-dev"),
    ("pip3", "python3-pip"),
];

/// Debian's package of PostgreSQL, server and clients.
const POSTGRES: &str = "postgresql";

/// Where Debian keeps what tells its package of PostgreSQL not to start a server of its own.
const SETTINGS: &str = "/etc/postgresql-common/createcluster.d";

/// Makes sure that every program of the node is there.
///
/// # Errors
/// When one is missing and cannot be installed: the error names the packages.
pub async fn node() -> Result<()> {
    let missing = NODE.iter().filter(|(program, _)| run::find(program).is_none()).map(|(_, package)| *package);
    install(&missing.chain(postgres_programs().is_none().then_some(POSTGRES)).collect::<Vec<_>>()).await
}

/// Makes sure that PostgreSQL is there, which the tests of the workspace run too.
///
/// # Errors
/// As [`node`].
pub async fn postgres() -> Result<()> {
    install(postgres_programs().is_none().then_some(POSTGRES).as_slice()).await
}

/// Folder of the programs of the newest PostgreSQL that is installed.
pub fn postgres_programs() -> Option<PathBuf> {
    let major = |folder: &PathBuf| folder.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|entry| entry.path());
    let newest = versions.filter(|folder| folder.join("bin/postgres").is_file()).max_by_key(major);
    newest.map(|folder| folder.join("bin")).or_else(|| Some(run::find("postgres")?.parent()?.to_owned()))
}

async fn install(missing: &[&str]) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if run::find("apt-get").is_none() || !nix::unistd::geteuid().is_root() {
        bail!(
            "programs are missing here that the local platform needs; install these packages (Debian's names): {list}"
        );
    }
    let apt = |args: &[&str]| {
        Run::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive").limit(Duration::from_mins(15)).text()
    };
    step(&format!("installing packages: {list}"), Some("a minute or two"), async {
        let _without = missing.contains(&POSTGRES).then(WithoutServer::new).transpose()?;
        apt(&["update", "-q"]).await?;
        let mut install = vec!["install", "-y", "-q", "--no-install-recommends"];
        install.extend(list.split(' '));
        apt(&install).await
    })
    .await
    .with_context(|| format!("failed to install {list}"))?;
    Ok(())
}

/// While it lasts, Debian's package of PostgreSQL is installed without a server of its own: only its programs are wanted.
struct WithoutServer {
    file: PathBuf,
    folders: Vec<PathBuf>,
}

impl WithoutServer {
    fn new() -> Result<Self> {
        let file = PathBuf::from(SETTINGS).join("ankka.conf");
        let folders = file.ancestors().skip(1).take_while(|folder| !folder.exists()).map(Into::into).collect();
        crate::paths::write(&file, "create_main_cluster = false\n")?;
        Ok(Self { file, folders })
    }
}

impl Drop for WithoutServer {
    fn drop(&mut self) {
        std::fs::remove_file(&self.file).ok();
        for folder in &self.folders {
            std::fs::remove_dir(folder).ok(); // one that the package filled stays
        }
    }
}
