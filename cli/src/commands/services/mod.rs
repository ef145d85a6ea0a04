//! `ankka services`.

mod apply;
mod database;
mod delete;
mod diff;
mod ending;
mod exec;
mod export;
mod expose;
mod get;
mod history;
mod instances;
mod list;
mod logs;
mod pause;
mod port_forward;
mod render;
mod restart;
mod resume;
mod rollback;
mod unexpose;
mod validate;

use ankka_crds::{Context, ServiceSpec};
use clap::Subcommand;

use super::online;
use crate::args::Global;
use crate::error::{Error, Outcome};
use crate::settings::{Project, Settings};

/// The commands; each is described where its arguments are.
#[derive(Subcommand)]
pub(crate) enum Command {
    Validate(validate::ValidateArgs),
    Render(render::RenderArgs),
    Apply(apply::ApplyArgs),
    Get(get::GetArgs),
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    Diff(diff::DiffArgs),
    History(history::HistoryArgs),
    Rollback(rollback::RollbackArgs),
    Export(export::ExportArgs),
    Pause(pause::PauseArgs),
    Resume(resume::ResumeArgs),
    Restart(restart::RestartArgs),
    Expose(expose::ExposeArgs),
    Unexpose(unexpose::UnexposeArgs),
    /// Has the service's database login issued anew
    #[command(subcommand)]
    Database(database::Command),
    Delete(delete::DeleteArgs),
    Logs(logs::LogsArgs),
    Exec(exec::ExecArgs),
    PortForward(port_forward::PortForwardArgs),
}

impl Command {
    /// Whether errors are JSON too.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Validate(args) => args.json(),
            Self::Render(args) => args.json(),
            Self::Apply(args) => args.output.json(),
            Self::Get(args) => args.output.json(),
            Self::List(args) => args.output.json(),
            Self::Diff(args) => args.output.json(),
            Self::History(args) => args.output.json(),
            Self::Rollback(args) => args.output.json(),
            Self::Export(args) => args.json(),
            Self::Pause(args) => args.output.json(),
            Self::Resume(args) => args.output.json(),
            Self::Restart(args) => args.output.json(),
            Self::Expose(args) => args.output.json(),
            Self::Unexpose(args) => args.output.json(),
            Self::Database(command) => command.json(),
            Self::Delete(args) => args.output.json(),
            Self::Logs(args) => args.json(),
            Self::Exec(args) => args.json(),
            Self::PortForward(args) => args.output.json(),
        }
    }
}

/// Does what was asked.
pub(crate) fn run(command: Command, global: &Global) -> Outcome {
    match command {
        Command::Validate(args) => validate::validate(&args, global),
        Command::Render(args) => render::render(&args, global),
        Command::Apply(args) => online(apply::apply(args, global)),
        Command::Get(args) => online(get::get(args, global)),
        Command::List(args) => online(list::list(args, global)),
        Command::Diff(args) => online(diff::diff(args, global)),
        Command::History(args) => online(history::history(args, global)),
        Command::Rollback(args) => online(rollback::rollback(args, global)),
        Command::Export(args) => online(export::export(args, global)),
        Command::Pause(args) => online(pause::pause(args, global)),
        Command::Resume(args) => online(resume::resume(args, global)),
        Command::Restart(args) => online(restart::restart(args, global)),
        Command::Expose(args) => online(expose::expose(args, global)),
        Command::Unexpose(args) => online(unexpose::unexpose(args, global)),
        Command::Database(command) => database::run(command, global),
        Command::Delete(args) => online(delete::delete(args, global)),
        Command::Logs(args) => online(logs::logs(args, global)),
        Command::Exec(args) => online(exec::exec(args, global)),
        Command::PortForward(args) => online(port_forward::port_forward(args, global)),
    }
}

/// The project of a service that a command names, once the name is one that a service can have.
fn project_of(name: &str, global: &Global) -> Result<Project, Error> {
    let project = Settings::load()?.selected(global.project.as_deref())?;
    checked(name)?;
    Ok(project)
}

/// Checks the name of a service on the command line by the descriptor's own rule.
fn checked(name: &str) -> Result<(), Error> {
    let Err(problems) = ankka_crds::validate(name, &ServiceSpec::default(), Context::default()) else {
        return Ok(());
    };
    problems
        .into_iter()
        .find(|problem| problem.path == "name")
        .map_or(Ok(()), |problem| Err(Error::new(problem.message)))
}
