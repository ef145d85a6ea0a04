//! Programs that go on running after the command that started them: started with a log, found again, ended by the id
//! and start time recorded then, so that nothing is ended that we did not start.

use std::{
    fs::{File, OpenOptions},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use nix::{
    errno::Errno,
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{digest::hex, paths, run};

/// How long a program may take to end after SIGTERM before it is killed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// A program to keep running.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// Files it reads at its start, written before it; they belong to what tells one configuration from another.
    pub(crate) files: Vec<(PathBuf, String)>,
    pub(crate) env: Vec<(&'static str, String)>,
    /// The user and group it runs as; ours when absent.
    pub(crate) user: Option<(u32, u32)>,
    /// Asked to end by SIGINT, where SIGTERM means to wait for everybody who is connected.
    pub(crate) interrupt: bool,
}

impl Daemon {
    pub(crate) fn new(program: PathBuf, args: impl IntoIterator<Item = String>) -> Self {
        Self {
            program,
            args: args.into_iter().collect(),
            files: Vec::new(),
            env: Vec::new(),
            user: None,
            interrupt: false,
        }
    }

    pub(crate) fn file(mut self, path: PathBuf, content: impl Into<String>) -> Self {
        self.files.push((path, content.into()));
        self
    }

    fn digest(&self) -> String {
        hex(Sha256::new_with_prefix(format!("{self:?}")), 16)
    }
}

/// What identifies a process beyond the reuse of its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    /// Clock ticks between the start of the machine and that of the process.
    started: u64,
    boot: String,
}

impl Identity {
    /// The process that has this id now, unless there is none or it has ended and waits to be collected.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may contain anything.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        Some(Self { pid, started: fields.nth(18)?.parse().ok()?, boot: boot() })
    }

    pub(crate) fn alive(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }

    /// Sends a signal to the process if it is still the same one.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        if !self.alive() {
            return Ok(());
        }
        match kill(Pid::from_raw(self.pid), signal) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("failed to end process {}", self.pid)),
        }
    }

    /// Waits for its end; false when it is still there after `limit`.
    pub(crate) async fn ended(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        while self.alive() {
            if Instant::now() > until {
                return false;
            }
            tokio::time::sleep(POLL).await;
        }
        true
    }

    /// Asks the process to end, and kills it when it has not after `patience`.
    pub(crate) async fn end(&self, with: Signal, patience: Duration) -> Result<()> {
        self.signal(with)?;
        if self.ended(patience).await {
            return Ok(());
        }
        self.signal(Signal::SIGKILL)?;
        if self.ended(PATIENCE).await {
            return Ok(());
        }
        bail!("process {} does not end, even killed", self.pid)
    }
}

/// Identifies this run of the machine.
pub(crate) fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Record of one program that was started.
#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(flatten)]
    identity: Identity,
    configuration: String,
    /// How it is asked to end: [`Daemon::interrupt`].
    #[serde(default)]
    interrupt: bool,
}

impl Record {
    async fn end(&self, patience: Duration) -> Result<()> {
        let signal = if self.interrupt { Signal::SIGINT } else { Signal::SIGTERM };
        self.identity.end(signal, patience).await
    }
}

/// The programs of one platform.
#[derive(Clone, Debug)]
pub(crate) struct Processes {
    records: PathBuf,
    logs: PathBuf,
}

impl Processes {
    pub(crate) fn new(state: &Path) -> Self {
        Self { records: state.join("run"), logs: state.join("logs") }
    }

    /// The running process of this name.
    pub(crate) fn running(&self, name: &str) -> Option<Identity> {
        Some(self.record(name)?.identity).filter(Identity::alive)
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.log"))
    }

    /// The last lines `name` wrote, for an error.
    pub(crate) fn last_words(&self, name: &str) -> String {
        let log = self.log(name);
        let text = std::fs::read(&log).unwrap_or_default();
        let tail = &text[text.len().saturating_sub(16 << 10)..];
        format!("last lines of {}:\n{}", log.display(), run::last_lines(&String::from_utf8_lossy(tail)))
    }

    /// Starts `daemon` unless it is running as described; one that runs otherwise is ended first.
    pub(crate) async fn start(&self, name: &str, daemon: &Daemon) -> Result<()> {
        let configuration = daemon.digest();
        if let Some(record) = self.record(name).filter(|record| record.identity.alive()) {
            if record.configuration == configuration {
                return Ok(());
            }
            record.end(PATIENCE).await?;
        }
        for (path, content) in &daemon.files {
            paths::write(path, content)?;
        }
        std::fs::create_dir_all(&self.logs)?;
        let log =
            OpenOptions::new().create(true).append(true).open(self.log(name)).context("failed to open the log")?;
        self.spawn(name, daemon, log, configuration).with_context(|| format!("failed to start {name}"))
    }

    fn spawn(&self, name: &str, daemon: &Daemon, log: File, configuration: String) -> Result<()> {
        let mut command = tokio::process::Command::new(&daemon.program);
        if let Some((user, group)) = daemon.user {
            command.uid(user).gid(group);
        }
        let child = command
            .args(&daemon.args)
            // Nothing of the environment but what it needs: a proxy meant for us would swallow its calls within the cluster.
            .env_clear()
            .envs(["HOME", "PATH"].iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .envs(daemon.env.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0) // an interrupt typed at the terminal is not for it
            .spawn()
            .with_context(|| daemon.program.display().to_string())?;
        let pid = i32::try_from(child.id().context("it ended at once")?)?;
        let identity = Identity::of(pid).with_context(|| format!("it ended at once; {}", self.last_words(name)))?;
        let record = serde_json::to_string(&Record { identity, configuration, interrupt: daemon.interrupt })?;
        paths::write(&self.records.join(format!("{name}.json")), record)
    }

    /// Ends the program of this name if it runs, and forgets it.
    pub(crate) async fn stop(&self, name: &str, patience: Duration) -> Result<()> {
        if let Some(record) = self.record(name) {
            record.end(patience).await.with_context(|| format!("failed to stop {name}"))?;
        }
        match std::fs::remove_file(self.records.join(format!("{name}.json"))) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).context("failed to remove a record")
            }
            _ => Ok(()),
        }
    }

    /// Waits until `healthy` succeeds. Gives up at once when the program has ended.
    ///
    /// # Errors
    /// After `limit`, or when it ended, with what was last wrong and the last lines of its log.
    pub(crate) async fn ready<F>(&self, name: &str, limit: Duration, mut healthy: impl FnMut() -> F) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        let until = Instant::now() + limit;
        loop {
            if self.running(name).is_none() {
                bail!("{name} ended; {}", self.last_words(name));
            }
            let wrong = match tokio::time::timeout(Duration::from_secs(5), healthy()).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => format!("{error:#}"),
                Err(_) => "no answer".to_owned(),
            };
            if Instant::now() > until {
                bail!("{name} is not ready after {} s: {wrong}; {}", limit.as_secs(), self.last_words(name));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn record(&self, name: &str) -> Option<Record> {
        serde_json::from_slice(&std::fs::read(self.records.join(format!("{name}.json"))).ok()?).ok()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test ends where it fails")]
mod tests {
    use super::*;

    fn sleeper(seconds: &str) -> Daemon {
        Daemon::new("/bin/sleep".into(), [seconds.to_owned()])
    }

    #[tokio::test]
    async fn a_program_is_kept_while_its_configuration_is_the_same_and_replaced_when_it_changes() {
        let state = tempfile::tempdir().unwrap();
        let processes = Processes::new(state.path());
        processes.start("sleep", &sleeper("1000")).await.unwrap();
        let first = processes.running("sleep").unwrap();
        processes.start("sleep", &sleeper("1000")).await.unwrap();
        assert_eq!(processes.running("sleep").unwrap(), first);
        processes.start("sleep", &sleeper("1001")).await.unwrap();
        assert_ne!(processes.running("sleep").unwrap(), first);
        assert!(!first.alive());
        processes.stop("sleep", PATIENCE).await.unwrap();
        assert_eq!(processes.running("sleep"), None);
        assert!(processes.record("sleep").is_none());
    }

    #[tokio::test]
    async fn a_process_with_the_same_id_but_another_start_is_not_ours() {
        let state = tempfile::tempdir().unwrap();
        let processes = Processes::new(state.path());
        processes.start("sleep", &sleeper("1000")).await.unwrap();
        let real = processes.running("sleep").unwrap();
        let impostor = Identity { started: real.started + 1, ..real.clone() };
        impostor.end(Signal::SIGTERM, PATIENCE).await.unwrap();
        assert!(real.alive(), "a stranger was ended");
        processes.stop("sleep", PATIENCE).await.unwrap();
    }

    #[tokio::test]
    async fn a_program_that_ends_is_reported_with_its_last_words() {
        let state = tempfile::tempdir().unwrap();
        let processes = Processes::new(state.path());
        let daemon = Daemon::new("/bin/sh".into(), ["-c".to_owned(), "sleep 0.2; echo out of luck; exit 3".to_owned()]);
        processes.start("sh", &daemon).await.unwrap();
        let error = processes.ready("sh", Duration::from_secs(20), || async { bail!("not yet") }).await.unwrap_err();
        assert!(error.to_string().contains("sh ended"), "{error}");
        assert!(error.to_string().contains("out of luck"), "{error}");
    }
}
