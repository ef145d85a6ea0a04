//! One command a file: its arguments, and one function that does it.

pub(crate) mod completion;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod man;
pub(crate) mod projects;
pub(crate) mod reference;
pub(crate) mod services;
pub(crate) mod status;
pub(crate) mod version;

use crate::args::{Cli, Command};
use crate::error::{Error, Outcome};

/// Does what was asked.
pub(crate) fn run(Cli { global, command }: Cli) -> Outcome {
    match command {
        Command::Services(command) => services::run(command, &global),
        Command::Projects(command) => projects::run(command, &global),
        Command::Config(command) => config::run(command),
        Command::Status(args) => online(status::status(args, &global)),
        Command::Doctor(args) => online(doctor::doctor(args, &global)),
        Command::Version(args) => online(version::version(args, &global)),
        Command::Completion(args) => completion::completion(&args),
        Command::Man(args) => man::man(&args),
        Command::Reference(args) => reference::reference(&args),
    }
}

/// Runs a command that talks to a cluster. One thread is enough for one request, and the others need no runtime at all.
pub(crate) fn online(command: impl Future<Output = Outcome>) -> Outcome {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|cause| Error::new(format!("failed to start: {cause}")))?
        .block_on(command)
}
