//! A command that goes on while a test looks at what it prints.

use std::{
    os::unix::process::ExitStatusExt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::Child,
    task::JoinSet,
};

use super::cluster::eventually;
use crate::run::Run;

/// How long a command may take to end once it was told to.
const PATIENCE: Duration = Duration::from_secs(20);

/// What shells add to the number of the signal that ended a command.
const BY_SIGNAL: i32 = 128;

/// A command under way. It is ended when this is dropped.
pub struct Running {
    child: Child,
    printed: Arc<Mutex<Vec<Line>>>,
    readers: JoinSet<()>,
}

/// One line that a command has printed.
#[derive(Clone, Debug)]
pub struct Line {
    /// When it arrived.
    pub at: Instant,
    /// Without the line break.
    pub text: String,
    /// On which output.
    pub output: Output,
}

/// Where a command prints to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Data,
    /// Standard error.
    Notes,
}

impl Running {
    /// Starts it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(run: Run) -> Result<Self> {
        let mut child = run.start()?;
        let printed = Arc::default();
        let mut readers = JoinSet::new();
        if let Some(out) = child.stdout.take() {
            readers.spawn(read(out, Output::Data, Arc::clone(&printed)));
        }
        if let Some(err) = child.stderr.take() {
            readers.spawn(read(err, Output::Notes, Arc::clone(&printed)));
        }
        Ok(Self { child, printed, readers })
    }

    /// All lines so far, in the order of their arrival.
    pub fn lines(&self) -> Vec<Line> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it has printed a line of which `pick` makes something, and returns that.
    ///
    /// # Errors
    /// When it has not, `limit` later.
    pub async fn until<T>(&self, what: &str, limit: Duration, pick: impl Fn(&Line) -> Option<T>) -> Result<T> {
        eventually(what, limit, async || {
            let lines = self.lines();
            Ok(lines.iter().find_map(&pick).ok_or_else(|| format!("{:?}", lines.last())))
        })
        .await
    }

    /// Ends it with a signal, unless it has ended, and returns its exit code and all that it printed. Who runs in a shell's background
    /// ignores SIGINT, and so do the commands it starts unless they handle it.
    ///
    /// # Errors
    /// As [`Running::end`].
    pub async fn stop(self, signal: Signal) -> Result<(Option<i32>, Vec<Line>)> {
        if let Some(id) = self.child.id() {
            kill(Pid::from_raw(i32::try_from(id)?), signal).context("failed to end a command")?;
        }
        self.end().await
    }

    /// Waits for its end, and returns its exit code, as shells tell it, and all that it printed.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn end(mut self) -> Result<(Option<i32>, Vec<Line>)> {
        let Ok(ended) = tokio::time::timeout(PATIENCE, self.child.wait()).await else {
            bail!("a command goes on, and last printed {:?}", self.lines().last());
        };
        while self.readers.join_next().await.is_some() {}
        let ended = ended.context("failed to wait for a command")?;
        let code = ended.code().or_else(|| ended.signal().map(|signal| BY_SIGNAL + signal));
        Ok((code, self.lines()))
    }
}

async fn read(from: impl AsyncRead + Unpin, output: Output, to: Arc<Mutex<Vec<Line>>>) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(text)) = lines.next_line().await {
        to.lock().unwrap_or_else(PoisonError::into_inner).push(Line { at: Instant::now(), text, output });
    }
}
