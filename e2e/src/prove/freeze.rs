//! A leading controller that stands still: its processes are stopped, and go on when they are let.

use anyhow::{Context, Result, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::runs::{leader_of, processes};
use crate::suite::Cluster;

/// The frozen leader. It goes on when this is dropped, whatever became of the measurement.
#[derive(Debug)]
pub(super) struct Frozen {
    /// Name of its pod.
    pub(super) pod: String,
    processes: Vec<i32>,
}

impl Frozen {
    /// Freezes the pod that holds the Lease of this name.
    pub(super) async fn leader(cluster: &Cluster, lease: &str) -> Result<Self> {
        let pod = leader_of(cluster, lease).await?;
        let frozen = Self { processes: processes(cluster, &pod).await?, pod };
        ensure!(!frozen.processes.is_empty(), "the leader has no process");
        for process in &frozen.processes {
            kill(Pid::from_raw(*process), Signal::SIGSTOP).context("failed to freeze the leader")?;
        }
        Ok(frozen)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for process in &self.processes {
            // A process that has ended meanwhile needs no thawing.
            let _ = kill(Pid::from_raw(*process), Signal::SIGCONT);
        }
    }
}
