//! `ankka services database`.

mod reissue;

use clap::Subcommand;

use crate::args::Global;
use crate::commands::online;
use crate::error::Outcome;

/// The commands; each is described where its arguments are.
#[derive(Subcommand)]
pub(crate) enum Command {
    Reissue(reissue::ReissueArgs),
}

impl Command {
    /// Whether errors are JSON too.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Reissue(args) => args.output.json(),
        }
    }
}

/// Does what was asked.
pub(crate) fn run(command: Command, global: &Global) -> Outcome {
    match command {
        Command::Reissue(args) => online(reissue::reissue(args, global)),
    }
}
