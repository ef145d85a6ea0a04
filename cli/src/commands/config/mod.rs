//! `ankka config`: what is saved between commands.

mod get;
mod list;
mod set;

use clap::{Subcommand, ValueEnum};

use crate::error::Outcome;
use crate::settings::Settings;

/// The commands; each is described where its arguments are.
#[derive(Subcommand)]
pub(crate) enum Command {
    Set(set::SetArgs),
    Get(get::GetArgs),
    List(list::ListArgs),
}

impl Command {
    /// Whether errors are JSON too.
    pub(crate) fn json(&self) -> bool {
        matches!(self, Self::List(args) if args.output.json())
    }
}

/// What can be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Key {
    /// The project of commands that name none
    Project,
    /// Prefix of project namespaces, where it is not `ankka`
    NamespacePrefix,
}

impl Key {
    fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::NamespacePrefix => "namespace-prefix",
        }
    }

    fn of(self, settings: &mut Settings) -> &mut Option<String> {
        match self {
            Self::Project => &mut settings.project,
            Self::NamespacePrefix => &mut settings.namespace_prefix,
        }
    }
}

/// Does what was asked.
pub(crate) fn run(command: Command) -> Outcome {
    match command {
        Command::Set(args) => set::set(args),
        Command::Get(args) => get::get(&args),
        Command::List(args) => list::list(&args),
    }
}
