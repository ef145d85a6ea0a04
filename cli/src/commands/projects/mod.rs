//! `ankka projects`.

mod administrators;
mod create;
mod delete;
mod get;
mod list;
mod secrets;

use ankka_crds::{AnkkaProject, names};
use clap::Subcommand;
use kube::ResourceExt;
use serde::Serialize;

use super::online;
use crate::args::Global;
use crate::error::Outcome;

/// The commands; each is described where its arguments are.
#[derive(Subcommand)]
pub(crate) enum Command {
    Create(create::CreateArgs),
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    Get(get::GetArgs),
    Delete(delete::DeleteArgs),
    /// Sets, takes away and lists a project's Secrets
    #[command(subcommand, visible_alias = "secret")]
    Secrets(secrets::Command),
}

impl Command {
    /// Whether errors are JSON too.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Create(args) => args.output.json(),
            Self::List(args) => args.output.json(),
            Self::Get(args) => args.output.json(),
            Self::Delete(args) => args.output.json(),
            Self::Secrets(command) => command.json(),
        }
    }
}

/// Does what was asked.
pub(crate) fn run(command: Command, global: &Global) -> Outcome {
    match command {
        Command::Create(args) => online(create::create(args, global)),
        Command::List(args) => online(list::list(args, global)),
        Command::Get(args) => online(get::get(args, global)),
        Command::Delete(args) => online(delete::delete(args, global)),
        Command::Secrets(command) => secrets::run(command, global),
    }
}

/// One project as members read it. Its fields are the output of `-o json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProjectView {
    name: String,
    namespace: String,
    /// Whether services can be applied.
    ready: bool,
    /// Who administers it, as `--administrator` takes them.
    administrators: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    image_pull_secrets: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl ProjectView {
    fn of(project: &AnkkaProject, prefix: &str) -> Self {
        let name = project.name_any();
        let status = project.status.clone().unwrap_or_default();
        let reported = status.observed_generation.is_some_and(|observed| Some(observed) >= project.metadata.generation);
        let ready = reported && holds(project, "Ready");
        Self {
            namespace: status.namespace.unwrap_or_else(|| names::namespace(prefix, &name)),
            name,
            ready,
            administrators: project.spec.administrators.iter().map(administrators::text).collect(),
            location: project.spec.location.clone(),
            image_pull_secrets: project.spec.image_pull_secrets.clone(),
            detail: if reported { status.detail } else { Some("no operator has reported on this project".to_owned()) },
        }
    }

    fn reference(&self) -> String {
        format!("project/{}", self.name)
    }

    fn ready(&self) -> &'static str {
        if self.ready { "yes" } else { "no" }
    }
}

/// Whether a condition is true.
fn holds(project: &AnkkaProject, condition: &str) -> bool {
    project
        .status
        .iter()
        .flat_map(|status| &status.conditions)
        .any(|found| found.type_ == condition && found.status == "True")
}
