//! `ankka services exec`.

use std::io::{self, IsTerminal, Read, Write};
use std::pin::pin;
use std::time::Duration;

use clap::ValueEnum;
use crossterm::terminal;
use futures::SinkExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::ResourceExt;
use kube::api::{AttachParams, AttachedProcess, TerminalSize};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::instances::{self, Container, is_ready, runs};
use super::project_of;
use crate::args::Global;
use crate::cluster::{Attempt, Cluster, Subject};
use crate::complete;
use crate::error::{Error, Exit, Outcome};
use crate::output;
use crate::settings::Project;

/// How much is passed on at a time, in bytes.
const PIECE: usize = 32 * 1024;
/// How much of each output is kept for programs, in bytes.
const MOST: usize = 1024 * 1024;
/// How often the terminal's size is looked at.
const RESIZE: Duration = Duration::from_millis(250);
/// How long what has arrived may take to be printed once the connection is gone.
const REST: Duration = Duration::from_millis(500);

/// Runs a command in an instance of a service and ends as it ends. On a terminal it gets the terminal.
#[derive(clap::Args)]
pub(crate) struct ExecArgs {
    /// The service
    #[arg(add = complete::services())]
    name: String,

    /// The instance: a pod's name, or what its lines in the logs begin with; the oldest ready one when absent
    #[arg(long, value_name = "POD")]
    instance: Option<String>,

    /// Where in the instance
    #[arg(long, value_enum, default_value_t, value_name = "CONTAINER")]
    container: Container,

    /// Pass standard input on although it is no terminal
    #[arg(short = 'i', long)]
    stdin: bool,

    /// How the result is printed: as the command prints it, or all of it as one object
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// How the result is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Text,
    /// For programs, once the command has ended
    Json,
}

impl ExecArgs {
    /// Whether errors are JSON too.
    pub(crate) fn json(&self) -> bool {
        self.output == Format::Json
    }
}

/// What a command did, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Executed<'a> {
    instance: &'a str,
    container: &'static str,
    exit_code: u8,
    stdout: String,
    /// Whether it printed more than is kept.
    stdout_truncated: bool,
    stderr: String,
    stderr_truncated: bool,
}

/// Runs the command.
pub(crate) async fn exec(args: ExecArgs, global: &Global) -> Outcome {
    let project = project_of(&args.name, global)?;
    let cluster = Cluster::connect(global).await?;
    let instance = instance(&cluster, &project, &args).await?;
    let terminal = !args.json() && io::stdin().is_terminal() && io::stdout().is_terminal();
    let params = AttachParams {
        container: Some(args.container.name().to_owned()),
        // A keyboard is taken only where what it types is shown.
        stdin: args.stdin || terminal,
        stdout: true,
        stderr: !terminal,
        tty: terminal,
        max_stdin_buf_size: Some(PIECE),
        max_stdout_buf_size: Some(PIECE),
        max_stderr_buf_size: Some(PIECE),
    };
    let attempt = Attempt { verb: "run a command in", subject: Subject::Instance(&instance, &project) };
    let process = instances::pods(&cluster, &project)
        .exec(&instance, &args.command, &params)
        .await
        .map_err(|cause| cluster.explain(attempt, cause))?;
    let (mut out, mut err) = (Kept::default(), Kept::default());
    let ended = if args.json() {
        attached(process, terminal, &mut out, &mut err).await
    } else {
        attached(process, terminal, io::stdout(), io::stderr()).await
    };
    let status = ended.ok_or_else(|| {
        Error::new(format!("the connection to instance '{instance}' broke"))
            .hint("whether the command goes on is not known")
    })?;
    let exit = ending(&status, &instance)?;
    if args.json() {
        let exit_code = if let Exit::Code(code) = exit { code } else { 0 };
        let container = args.container.name();
        output::json(&Executed {
            instance: &instance,
            container,
            exit_code,
            stdout: out.text(),
            stdout_truncated: out.truncated,
            stderr: err.text(),
            stderr_truncated: err.truncated,
        })?;
    }
    Ok(exit)
}

/// What a command printed, up to a limit.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    truncated: bool,
}

impl Kept {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let kept = bytes.len().min(MOST.saturating_sub(self.bytes.len()));
        self.truncated |= kept < bytes.len();
        self.bytes.extend_from_slice(&bytes[..kept]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The instance that is meant: a ready one rather than one that only runs.
async fn instance(cluster: &Cluster, project: &Project, args: &ExecArgs) -> Result<String, Error> {
    let all = instances::all(cluster, project, &args.name).await?;
    let meant = instances::named(all, args.instance.as_deref(), &args.name, project)?;
    instances::with_container(&meant, args.container, &args.name)?;
    let running = |pod: &&k8s_openapi::api::core::v1::Pod| runs(pod, args.container);
    let ready = meant.iter().filter(running).find(|pod| is_ready(pod));
    let chosen = ready.or_else(|| meant.iter().find(running)).ok_or_else(|| {
        Error::new(format!("no instance of service '{}' is running", args.name))
            .hint(format!("see why with: ankka services get {} -p {}", args.name, project.id))
    })?;
    if args.instance.is_none() && meant.len() > 1 {
        output::note(&format!("in instance '{}'", chosen.name_any()));
    }
    Ok(chosen.name_any())
}

/// Passes everything on until the command has ended. None when it is not known how.
async fn attached(
    mut process: AttachedProcess,
    terminal: bool,
    to: impl Write,
    errors_to: impl Write,
) -> Option<Status> {
    let _raw = terminal.then(Raw::begin);
    if let Some(mut input) = process.stdin() {
        let mut typed = typed();
        tokio::spawn(async move {
            while let Some(bytes) = typed.recv().await {
                if input.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            let _ = input.shutdown().await;
        });
    }
    if let Some(mut sizes) = process.terminal_size() {
        tokio::spawn(async move {
            let mut known = None;
            loop {
                let size = terminal::size().ok();
                if let Some((width, height)) = size.filter(|_| size != known) {
                    known = size;
                    if sizes.send(TerminalSize { width, height }).await.is_err() {
                        return;
                    }
                }
                tokio::time::sleep(RESIZE).await;
            }
        });
    }
    let status = process.take_status();
    let (out, err) = (process.stdout(), process.stderr());
    let ended = async {
        match status {
            Some(status) => status.await,
            None => None,
        }
    };
    let mut passing = pin!(futures::future::join(pass_on(out, to), pass_on(err, errors_to)));
    let mut ended = pin!(ended);
    tokio::select! {
        status = &mut ended => {
            // After a status the outputs come to their end; after a broken connection they do not.
            let limit = if status.is_some() { Duration::MAX } else { REST };
            let _ = tokio::time::timeout(limit, passing).await;
            status
        }
        _ = &mut passing => ended.await,
    }
}

/// Standard input, read by a thread of its own: reading cannot be given up, and must not keep the command from ending.
fn typed() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut buffer = vec![0; PIECE];
        while let Ok(read @ 1..) = io::stdin().lock().read(&mut buffer) {
            if sender.blocking_send(buffer[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Prints what arrives. A reader who has gone away is no reason to stop the command.
async fn pass_on(from: Option<impl AsyncRead + Unpin>, mut to: impl Write) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; PIECE];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let _ = to.write_all(&buffer[..read]).and_then(|()| to.flush());
    }
}

/// The terminal passes every key on, until this is dropped.
struct Raw;

impl Raw {
    fn begin() -> Self {
        // A terminal that cannot is used as it is.
        let _ = terminal::enable_raw_mode();
        Self
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = terminal::disable_raw_mode();
    }
}

/// How the command ended: its exit code is ours.
fn ending(status: &Status, instance: &str) -> Outcome {
    if status.status.as_deref() == Some("Success") {
        return Ok(Exit::Success);
    }
    let causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
    let code = causes
        .filter(|cause| cause.reason.as_deref() == Some("ExitCode"))
        .find_map(|cause| cause.message.as_deref()?.parse::<i32>().ok());
    match code {
        // As shells do with codes that do not fit.
        Some(code) => Ok(Exit::Code(u8::try_from(code & 0xff).unwrap_or(1))),
        None => Err(Error::new(format!(
            "failed to run a command in instance '{instance}': {}",
            status.message.as_deref().unwrap_or("the cluster gave no reason")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ended(status: &Value) -> Outcome {
        ending(&serde_json::from_value(status.clone()).expect("is a status"), "cart-1")
    }

    #[test]
    fn the_exit_code_is_that_of_the_command() {
        assert_eq!(ended(&json!({ "status": "Success" })).expect("it ended"), Exit::Success);
        for code in ["1", "42", "137"] {
            let causes = json!([{ "reason": "ExitCode", "message": code }]);
            let status = json!({ "status": "Failure", "reason": "NonZeroExitCode", "details": { "causes": causes } });
            assert_eq!(ended(&status).expect("it ended"), Exit::Code(code.parse().expect("a number")));
        }
        let refused =
            ended(&json!({ "status": "Failure", "message": "no such file: nosh" })).expect_err("it did not run");
        assert_eq!(refused.message, "failed to run a command in instance 'cart-1': no such file: nosh");
    }
}
