//! `ankka doctor`: looks at what usually goes wrong, one thing after the other, and says what to do.

mod checks;
mod webhook;

use serde::Serialize;

use crate::args::{Global, OutputArgs};
use crate::cluster::{Cluster, Unknown};
use crate::error::{Exit, Outcome};
use crate::output::{self, Format};

/// Checks the cluster, the platform in it and what the caller may do there, and says what to do about each problem.
#[derive(clap::Args)]
pub(crate) struct DoctorArgs {
    /// Only this check; one whose outcome is unknown counts as a problem then. Can be given several times
    #[arg(long, value_name = "CHECK", value_parser = CHECKS)]
    only: Vec<String>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The names of all checks. Where the cluster does not answer, there is the first alone; of a version that is not supported it is
/// told as `kubernetes`.
const CHECKS: [&str; 13] = [
    "cluster",
    "definitions",
    "versions",
    "namespace prefix",
    "webhook",
    "processes",
    "project",
    "permissions",
    "base domain",
    "gateway",
    "database server",
    "object store",
    "nodes",
];

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Found {
    /// It is as it should be.
    Ok,
    /// It is not.
    Problem,
    /// The installation does without it.
    Off,
    /// The caller may not see it.
    Unknown,
}

impl Found {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Problem => "problem",
            Self::Off => "off",
            Self::Unknown => "unknown",
        }
    }
}

/// One thing that was looked at. Its fields are the output of `-o json`.
#[derive(Clone, Debug, Serialize)]
struct Check {
    /// What.
    name: &'static str,
    outcome: Found,
    /// What was found.
    detail: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, outcome: Found::Ok, detail: detail.into(), next: None }
    }

    fn off(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, outcome: Found::Off, detail: detail.into(), next: None }
    }

    fn problem(name: &'static str, detail: impl Into<String>, next: impl Into<String>) -> Self {
        Self { name, outcome: Found::Problem, detail: detail.into(), next: Some(next.into()) }
    }

    fn unknown(name: &'static str, Unknown(why): &Unknown) -> Self {
        Self { name, outcome: Found::Unknown, detail: why.clone(), next: None }
    }
}

/// Looks at everything: status 1 when there is a problem.
pub(crate) async fn doctor(args: DoctorArgs, global: &Global) -> Outcome {
    let mut checks = match Cluster::connect(global).await {
        Ok(cluster) => Box::pin(checks::all(&cluster, global)).await,
        Err(error) => vec![Check::problem("cluster", error.message, error.hint.unwrap_or_default())],
    };
    if !args.only.is_empty() && checks.len() > 1 {
        let is = |check: &Check, name: &str| check.name == name || (check.name == "kubernetes" && name == "cluster");
        checks.retain(|check| args.only.iter().any(|name| is(check, name)));
    }
    match args.output.output {
        Format::Json => output::json(&checks)?,
        Format::Yaml => output::yaml(&checks)?,
        Format::Name => checks.iter().try_for_each(|check| output::data(check.name))?,
        Format::Table | Format::Wide => output::data(&report(&checks))?,
    }
    let fails = |outcome| outcome == Found::Problem || (outcome == Found::Unknown && !args.only.is_empty());
    let failed = checks.iter().any(|check| fails(check.outcome));
    Ok(if failed { Exit::Failure } else { Exit::Success })
}

fn report(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or_default();
    checks.iter().fold(String::new(), |text, Check { name, outcome, detail, next }| {
        let next = next.as_ref().map(|next| format!("{:10}{:width$}  next: {next}\n", "", "")).unwrap_or_default();
        let detail = if *outcome == Found::Unknown { format!("unknown: {detail}") } else { detail.clone() };
        text + &format!("{:8}  {name:width$}  {detail}\n", outcome.word()) + &next
    })
}
