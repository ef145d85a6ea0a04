//! The command line: argument types only.

use std::io::IsTerminal;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{completion, config, doctor, man, projects, reference, services, status, version};
use crate::complete;
use crate::duration::{self, Limit};
use crate::output::Format;

/// Runs services on Kubernetes from their descriptors.
#[derive(Parser)]
#[command(name = "ankka", version, propagate_version = false, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which cluster and which project.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Global {
    /// The project; saved with `ankka config set project <PROJECT>`
    #[arg(
        short,
        long,
        global = true,
        env = "ANKKA_PROJECT",
        hide_env_values = true,
        value_name = "PROJECT",
        add = complete::projects(),
        help_heading = "Global options"
    )]
    pub(crate) project: Option<String>,

    /// Context of the kubeconfig to use instead of the current one
    #[arg(long, global = true, value_name = "CONTEXT", help_heading = "Global options")]
    pub(crate) context: Option<String>,

    /// Kubeconfig file to use instead of KUBECONFIG or ~/.kube/config
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) kubeconfig: Option<std::path::PathBuf>,
}

/// The commands; each is described where its arguments are.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Validates, applies, shows, changes and deletes services
    #[command(subcommand, visible_alias = "service")]
    Services(services::Command),
    /// Creates, shows and deletes projects
    #[command(subcommand, visible_alias = "project")]
    Projects(projects::Command),
    /// Saves the project and the namespace prefix
    #[command(subcommand)]
    Config(config::Command),
    Status(status::StatusArgs),
    Doctor(doctor::DoctorArgs),
    Version(version::VersionArgs),
    Completion(completion::CompletionArgs),
    Man(man::ManArgs),
    #[command(hide = true)]
    Reference(reference::ReferenceArgs),
}

impl Command {
    /// Whether errors are JSON too.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Services(command) => command.json(),
            Self::Projects(command) => command.json(),
            Self::Config(command) => command.json(),
            Self::Status(args) => args.output.json(),
            Self::Doctor(args) => args.output.json(),
            Self::Version(args) => args.output.json(),
            Self::Completion(_) | Self::Man(_) | Self::Reference(_) => false,
        }
    }
}

/// How the result is printed.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct OutputArgs {
    /// How the result is printed
    #[arg(short, long = "output", value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Format,
}

impl OutputArgs {
    /// Whether errors are JSON too.
    pub(crate) fn json(self) -> bool {
        self.output == Format::Json
    }
}

/// Whether a command waits for what it has asked for, and how long.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct WaitArgs {
    /// Wait until it is done, at most this long, e.g. `90s`; `0` does not wait [default: 10m on a terminal, 0 elsewhere]
    #[arg(
        long,
        value_name = "DURATION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "10m",
        value_parser = duration::parse,
        conflicts_with = "no_wait"
    )]
    wait: Option<Limit>,

    /// Do not wait
    #[arg(long)]
    no_wait: bool,
}

impl WaitArgs {
    /// How long to wait: what was asked for, and otherwise 10 minutes where somebody is watching. None when not at all.
    pub(crate) fn limit(self) -> Option<Limit> {
        let limit = match self.wait {
            Some(limit) => Some(limit),
            None if !self.no_wait && std::io::stderr().is_terminal() => Some(duration::DEFAULT),
            None => None,
        };
        limit.filter(|limit| !limit.0.is_zero())
    }
}

/// The command as clap knows it, under the name it was called by: kubectl finds a plugin by the name `kubectl-ankka`.
pub(crate) fn command() -> clap::Command {
    let called = std::env::args_os()
        .next()
        .and_then(|path| Some(std::path::Path::new(&path).file_stem()?.to_string_lossy().into_owned()));
    let command = Cli::command();
    match called.as_deref() {
        Some("kubectl-ankka") => command.bin_name("kubectl ankka"),
        _ => command.bin_name("ankka"),
    }
}

/// Reads the command line; on a bad one, says so and ends the process with status 2.
pub(crate) fn parse() -> Cli {
    let mut command = command();
    let matches = command.get_matches_mut();
    Cli::from_arg_matches(&matches).unwrap_or_else(|bad| bad.format(&mut command).exit())
}
