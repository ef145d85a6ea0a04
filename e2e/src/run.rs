//! Running a program to its end: with a time limit, and with its last words when it fails.

use std::{
    ffi::{OsStr, OsString},
    os::fd::OwnedFd,
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use tokio::{io::AsyncWriteExt, process::Child};

/// Lines of output that an error repeats.
const LAST_LINES: usize = 20;

/// One run of a program.
#[derive(Debug)]
pub struct Run {
    program: OsString,
    command: tokio::process::Command,
    input: Option<Vec<u8>>,
    limit: Duration,
}

impl Run {
    /// A run of `program`, looked up in `PATH` unless it is a path. It may take a minute unless told otherwise.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let program = program.as_ref();
        let mut command = tokio::process::Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        Self { program: program.to_owned(), command, input: None, limit: Duration::from_mins(1) }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets an environment variable beside those inherited.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs as this user and group.
    #[must_use]
    pub fn user(mut self, user: u32, group: u32) -> Self {
        self.command.uid(user).gid(group);
        self
    }

    /// Runs in `folder`.
    #[must_use]
    pub fn dir(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Gives the program this on its standard input, which is empty otherwise.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self.command.stdin(Stdio::piped());
        self
    }

    /// Has the program in front of this terminal, as the first of a session.
    ///
    /// # Errors
    /// When the process has no file to spare.
    pub fn terminal(self, terminal: &OwnedFd) -> Result<Self> {
        let whole = self.command.as_std();
        let mut run = Self::new("setsid").args(["--ctty", "--wait"]).args([whole.get_program()]).args(whole.get_args());
        run.command.envs(whole.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let copy = || terminal.try_clone().context("failed to open the terminal once more");
        run.command.stdin(copy()?).stdout(copy()?).stderr(copy()?);
        Ok(run)
    }

    /// How long it may take.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs, and returns what it printed and its exit status, whatever that is.
    ///
    /// # Errors
    /// When the program cannot be started or takes longer than its limit; it is ended then.
    pub async fn output(self) -> Result<Output> {
        let name = self.name();
        let limit = self.limit;
        let child = self.start()?;
        match tokio::time::timeout(limit, child.wait_with_output()).await {
            Ok(output) => output.with_context(|| format!("failed to wait for {name}")),
            Err(_) => bail!("{name} did not end within {} s", limit.as_secs()),
        }
    }

    /// Starts it, for the caller to read what it prints and to wait for it. It is ended when this is dropped.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(mut self) -> Result<Child> {
        let name = self.name();
        let mut child = self.command.spawn().with_context(|| format!("failed to start {name}"))?;
        if let (Some(bytes), Some(mut stdin)) = (self.input, child.stdin.take()) {
            // A program that does not read its input has an exit status that says more than a broken pipe.
            tokio::spawn(async move { stdin.write_all(&bytes).await.ok() });
        }
        Ok(child)
    }

    /// Runs, and returns what it printed on standard output.
    ///
    /// # Errors
    /// As [`Run::output`], and when it exits with another status than 0: the error ends with its last lines.
    pub async fn text(self) -> Result<String> {
        let name = self.name();
        let output = self.output().await?;
        if !output.status.success() {
            let printed = [output.stdout, output.stderr].concat();
            bail!("{name} failed ({}):\n{}", output.status, last_lines(&String::from_utf8_lossy(&printed)));
        }
        String::from_utf8(output.stdout).with_context(|| format!("{name} printed what is not UTF-8"))
    }

    /// Whether it ended with status 0.
    ///
    /// # Errors
    /// As [`Run::output`].
    pub async fn succeeds(self) -> Result<bool> {
        Ok(self.output().await?.status.success())
    }

    /// The program's name and first arguments, for messages.
    fn name(&self) -> String {
        let program = Path::new(&self.program).file_name().unwrap_or(&self.program).to_string_lossy();
        let args = self.command.as_std().get_args().take(3).map(OsStr::to_string_lossy);
        std::iter::once(program).chain(args).collect::<Vec<_>>().join(" ")
    }
}

/// The last lines of `text`, indented.
pub fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    last.iter().flat_map(|line| ["    ", line, "\n"]).collect()
}

/// Where `program` is found in `PATH` and in the folders of administrators' programs.
pub fn find(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(Into::into))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}
