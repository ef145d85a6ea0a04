//! What a node leaves when its programs end: containers and their shims, mounts, control groups, files outside our state.
//! Each is recognised by a name or path that is ours alone.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use nix::{
    mount::{MntFlags, umount2},
    sys::signal::Signal,
};

use super::{
    containerd::{NAMESPACE, NETWORK},
    layout::Layout,
    process::Identity,
};

/// How long killed containers may take to be gone.
const LIMIT: Duration = Duration::from_secs(20);

/// Removes all of it. The kubelet and containerd must have ended: they would make it again.
pub(crate) async fn remove(layout: &Layout) -> Result<()> {
    let tasks = tasks(layout);
    let groups = control_groups(&tasks);
    end(|| groups.iter().flat_map(|group| processes(group)).collect(), "containers").await?;
    end(|| shims(layout), "container shims").await?;
    for task in &tasks {
        remove_shim_socket(task)?;
    }
    unmount(&layout.paths.state)?;
    remove_control_groups(&groups)?;
    remove_foreign_files(layout, &tasks)
}

/// Processes of the container with this id.
pub(crate) fn container_processes(id: &str) -> Vec<i32> {
    let mut pids: Vec<_> = control_groups(&[PathBuf::from(id)])
        .iter()
        .flat_map(|group| processes(group))
        .map(|process| process.pid)
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids
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
            bail!(
                "{} {what} do not end, even killed: {:?}",
                found.len(),
                found.iter().map(|one| one.pid).collect::<Vec<_>>()
            );
        }
        for process in &found {
            process.signal(Signal::SIGKILL)?;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Folders of containerd's containers, named after their ids.
fn tasks(layout: &Layout) -> Vec<PathBuf> {
    let folder = layout.file("containerd/state/io.containerd.runtime.v2.task").join(NAMESPACE);
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Processes in a control group.
fn processes(group: &Path) -> Vec<Identity> {
    let processes = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    processes.lines().filter_map(|pid| Identity::of(pid.parse().ok()?)).collect()
}

/// containerd's shims that were started for our socket.
fn shims(layout: &Layout) -> Vec<Identity> {
    let socket = layout.containerd_socket().display().to_string();
    let ours = |pid: &i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = command.split(|byte| *byte == 0);
        words.next().is_some_and(|program| program.ends_with(b"containerd-shim-runc-v2"))
            && words.any(|word| word == socket.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(ours).filter_map(Identity::of).collect()
}

/// A shim's socket lies outside our state; its container's folder says where.
fn remove_shim_socket(task: &Path) -> Result<()> {
    let Ok(bootstrap) = std::fs::read(task.join("bootstrap.json")) else { return Ok(()) };
    let bootstrap: serde_json::Value = serde_json::from_slice(&bootstrap).unwrap_or_default();
    match bootstrap["address"].as_str().and_then(|address| address.strip_prefix("unix://")) {
        Some(socket) => remove_file(Path::new(socket)),
        None => Ok(()),
    }
}

/// Unmounts everything below `folder`, the innermost first.
fn unmount(folder: &Path) -> Result<()> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").context("failed to read the mounts")?;
    let mounts =
        mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(|path| PathBuf::from(path.replace("\\040", " ")));
    let ours: Vec<_> = mounts.filter(|path| path.starts_with(folder)).collect();
    for path in ours.into_iter().rev() {
        umount2(&path, MntFlags::MNT_DETACH).with_context(|| format!("failed to unmount {}", path.display()))?;
    }
    Ok(())
}

/// The control groups of our containers in each hierarchy (version 1 has one a controller, version 2 one in all), what
/// containers made inside them first.
fn control_groups(tasks: &[PathBuf]) -> Vec<PathBuf> {
    let mut groups = Vec::new();
    for hierarchy in hierarchies() {
        for task in tasks.iter().filter_map(|task| task.file_name()) {
            collect(&hierarchy.join(NAMESPACE).join(task), &mut groups);
        }
    }
    groups
}

fn hierarchies() -> Vec<PathBuf> {
    let root = PathBuf::from("/sys/fs/cgroup");
    let controllers: Vec<_> =
        std::fs::read_dir(&root).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    // Some are links to others.
    let folders = std::iter::once(root).chain(controllers).filter(|folder| folder.is_dir() && !folder.is_symlink());
    folders.filter(|folder| folder.join(NAMESPACE).is_dir()).collect()
}

/// Adds `folder`, after the folders below it.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    if !folder.is_dir() {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        collect(&entry.path(), found);
    }
    found.push(folder.to_owned());
}

fn remove_control_groups(groups: &[PathBuf]) -> Result<()> {
    for group in groups.iter().filter(|group| group.exists()) {
        std::fs::remove_dir(group)
            .with_context(|| format!("failed to remove the control group {}", group.display()))?;
    }
    for hierarchy in hierarchies() {
        std::fs::remove_dir(hierarchy.join(NAMESPACE)).ok(); // stays while somebody else's containers are in it
    }
    Ok(())
}

/// The kubelet links logs from a fixed folder, the CNI library keeps results in another.
fn remove_foreign_files(layout: &Layout, tasks: &[PathBuf]) -> Result<()> {
    for link in std::fs::read_dir("/var/log/containers").into_iter().flatten().flatten() {
        if std::fs::read_link(link.path()).is_ok_and(|target| target.starts_with(&layout.paths.state)) {
            remove_file(&link.path())?;
        }
    }
    let ids: Vec<_> = tasks.iter().filter_map(|task| task.file_name()?.to_str()).collect();
    for result in std::fs::read_dir("/var/lib/cni/results").into_iter().flatten().flatten() {
        let name = result.file_name().to_string_lossy().into_owned();
        if name.starts_with(&format!("{NETWORK}-")) || ids.iter().any(|id| name.contains(id)) {
            remove_file(&result.path())?;
        }
    }
    // Its place is fixed; another kubelet would be using it.
    let devices = Path::new("/var/lib/kubelet/device-plugins/kubelet.sock");
    if std::os::unix::net::UnixStream::connect(devices).is_err() {
        remove_file(devices)?;
    }
    // Folders that are empty now, innermost first; others' are not.
    let folders = [
        "/var/log/containers",
        "/var/lib/cni/results",
        "/var/lib/cni",
        "/var/lib/kubelet/device-plugins",
        "/var/lib/kubelet",
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
