//! What a node leaves when its programs end: containers and their shims, mounts, control groups, files outside our state.
//! Each is recognised by a name or path that is ours alone.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use nix::{
    mount::{MntFlags, umount2},
    sys::signal::Signal,
};

use super::{containerd::NETWORK, kubelet::CONTROL_GROUP, layout::Layout, process::Identity};

/// How long killed containers may take to be gone.
const LIMIT: Duration = Duration::from_secs(20);

/// Removes all of it. The kubelet and containerd must have ended: they would make it again.
pub(crate) async fn remove(layout: &Layout) -> Result<()> {
    let shims = shims(layout);
    end(containers, "containers").await?;
    end(|| shims.iter().filter(|shim| shim.alive()).cloned().collect(), "container shims").await?;
    remove_shim_sockets(layout)?;
    unmount(&layout.paths.state)?;
    remove_control_groups()?;
    remove_foreign_files(layout)
}

/// Kills what `find` finds until it finds nothing.
async fn end(find: impl Fn() -> Vec<Identity>, what: &str) -> Result<()> {
    let until = tokio::time::Instant::now() + LIMIT;
    loop {
        let found = find();
        if found.is_empty() {
            return Ok(());
        }
        if tokio::time::Instant::now() > until {
            bail!("{} {what} do not end, even killed: {:?}", found.len(), found.iter().map(|one| one.pid).collect::<Vec<_>>());
        }
        for process in &found {
            process.signal(Signal::SIGKILL)?;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Processes in our control groups.
fn containers() -> Vec<Identity> {
    let mut found = BTreeSet::new();
    for root in control_groups() {
        walk(&root, &mut |group| {
            let processes = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            found.extend(processes.lines().filter_map(|pid| pid.parse::<i32>().ok()));
        });
    }
    found.into_iter().filter_map(Identity::of).collect()
}

/// containerd's shims that were started for our socket.
fn shims(layout: &Layout) -> Vec<Identity> {
    let socket = layout.containerd_socket().display().to_string();
    let ours = |pid: &i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = command.split(|byte| *byte == 0);
        words.next().is_some_and(|program| program.ends_with(b"containerd-shim-runc-v2")) && words.any(|word| word == socket.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(ours).filter_map(Identity::of).collect()
}

/// A shim's socket lies outside our state; each container's folder says where.
fn remove_shim_sockets(layout: &Layout) -> Result<()> {
    let tasks = layout.file("containerd/state/io.containerd.runtime.v2.task/k8s.io");
    for task in std::fs::read_dir(tasks).into_iter().flatten().flatten() {
        let Ok(bootstrap) = std::fs::read(task.path().join("bootstrap.json")) else { continue };
        let bootstrap: serde_json::Value = serde_json::from_slice(&bootstrap).unwrap_or_default();
        if let Some(socket) = bootstrap["address"].as_str().and_then(|address| address.strip_prefix("unix://")) {
            remove_file(Path::new(socket))?;
        }
    }
    Ok(())
}

/// Unmounts everything below `folder`, the innermost first.
fn unmount(folder: &Path) -> Result<()> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").context("failed to read the mounts")?;
    let mounts = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(|path| PathBuf::from(path.replace("\\040", " ")));
    let ours: Vec<_> = mounts.filter(|path| path.starts_with(folder)).collect();
    for path in ours.into_iter().rev() {
        umount2(&path, MntFlags::MNT_DETACH).with_context(|| format!("failed to unmount {}", path.display()))?;
    }
    Ok(())
}

/// Our control group in each hierarchy: version 1 has one a controller, version 2 one in all.
fn control_groups() -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let hierarchies = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let candidates = std::iter::once(root.to_owned()).chain(hierarchies);
    let ours = candidates.map(|hierarchy| hierarchy.join(CONTROL_GROUP.trim_start_matches('/'))).filter(|group| group.is_dir());
    let distinct: BTreeSet<_> = ours.filter_map(|group| group.canonicalize().ok()).collect();
    distinct.into_iter().collect()
}

fn remove_control_groups() -> Result<()> {
    for root in control_groups() {
        let mut failed = None;
        walk(&root, &mut |group| {
            if let Err(error) = std::fs::remove_dir(group) {
                failed = Some((group.to_owned(), error));
            }
        });
        if let Some((group, error)) = failed {
            return Err(error).with_context(|| format!("failed to remove the control group {}", group.display()));
        }
    }
    Ok(())
}

/// Visits the folders below `root`, then `root`.
fn walk(root: &Path, visit: &mut impl FnMut(&Path)) {
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&entry.path(), visit);
        }
    }
    visit(root);
}

/// The kubelet links logs from a fixed folder, the CNI library keeps results in another.
fn remove_foreign_files(layout: &Layout) -> Result<()> {
    for link in std::fs::read_dir("/var/log/containers").into_iter().flatten().flatten() {
        if std::fs::read_link(link.path()).is_ok_and(|target| target.starts_with(&layout.paths.state)) {
            remove_file(&link.path())?;
        }
    }
    for result in std::fs::read_dir("/var/lib/cni/results").into_iter().flatten().flatten() {
        if result.file_name().to_string_lossy().starts_with(&format!("{NETWORK}-")) {
            remove_file(&result.path())?;
        }
    }
    // Folders that are empty now, innermost first; others' are not.
    let folders = [
        "/var/log/containers",
        "/var/lib/cni/results",
        "/var/lib/cni",
        "/run/containerd/s",
        "/run/containerd/fifo",
        "/run/containerd",
    ];
    for folder in folders {
        std::fs::remove_dir(folder).ok();
    }
    Ok(())
}

fn remove_file(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("failed to remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
