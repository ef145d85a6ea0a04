//! Running a program to its end: with a time limit, and with its last words when it fails.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use tokio::io::AsyncWriteExt;

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
    pub async fn output(mut self) -> Result<Output> {
        let name = self.name();
        let mut child = self.command.spawn().with_context(|| format!("failed to start {name}"))?;
        if let (Some(bytes), Some(mut stdin)) = (self.input, child.stdin.take()) {
            // A program that does not read its input has an exit status that says more than a broken pipe.
            tokio::spawn(async move { stdin.write_all(&bytes).await.ok() });
        }
        match tokio::time::timeout(self.limit, child.wait_with_output()).await {
            Ok(output) => output.with_context(|| format!("failed to wait for {name}")),
            Err(_) => bail!("{name} did not end within {} s", self.limit.as_secs()),
        }
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
