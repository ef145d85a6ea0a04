//! `ankka services validate`.

use ankka_crds::{Context, descriptor};
use clap::ValueEnum;
use serde::Serialize;

use crate::args::Global;
use crate::error::{Exit, Outcome, Placed};
use crate::input::Input;
use crate::output;
use crate::settings::Settings;
use crate::show::problems;

/// Checks every rule of a descriptor and reports all problems at once. Needs no cluster.
#[derive(clap::Args)]
pub(crate) struct ValidateArgs {
    /// Descriptor to check, or `-` for standard input
    #[arg(short, long, value_name = "FILE")]
    file: Input,

    /// How the answer is printed
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
}

/// How the answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people, on standard error
    #[default]
    Text,
    /// For programs, on standard output
    Json,
}

impl ValidateArgs {
    /// Whether errors are JSON too.
    pub(crate) fn json(&self) -> bool {
        self.output == Format::Json
    }
}

/// The answer for programs.
#[derive(Serialize)]
struct Answer {
    valid: bool,
    problems: Vec<Placed>,
}

/// Checks the descriptor: status 0 when it keeps every rule, 1 when it does not.
pub(crate) fn validate(args: &ValidateArgs, global: &Global) -> Outcome {
    let text = args.file.read()?;
    let project = match &global.project {
        Some(id) if !id.is_empty() => Some(Settings::load()?.project(id)?.id),
        _ => None,
    };
    let context = Context { project: project.as_deref(), installation: None };
    let found = descriptor::read(&text, context).err().unwrap_or_default();
    let valid = found.is_empty();
    match args.output {
        Format::Json => output::compact(&Answer { valid, problems: problems::placed(&found) })?,
        Format::Text if valid => output::note(&format!("{} is valid", args.file)),
        Format::Text => output::say(&problems::report(&args.file.to_string(), &text, &found)),
    }
    Ok(if valid { Exit::Success } else { Exit::Failure })
}
