//! The two streams: data goes to standard output, everything else to standard error.

use std::io::{self, Write};

use anstream::{stderr, stdout};
use clap::ValueEnum;
use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;

use crate::error::Error;
use crate::show::yaml;

const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const CYAN: Style = AnsiColor::Cyan.on_default().bold();

/// How a result is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Table,
    /// For programs; errors are JSON too, on standard error
    Json,
    /// For programs
    Yaml,
    /// Kind and name only
    Name,
    /// For people, with more columns
    Wide,
}

/// Prints one line or more of data.
pub(crate) fn data(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Prints data for programs.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|cause| Error::new(format!("failed to write the result as JSON: {cause}")))?;
    Ok(data(&text)?)
}

/// Prints data for programs on one line.
pub(crate) fn compact(value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string(value)
        .map_err(|cause| Error::new(format!("failed to write the result as JSON: {cause}")))?;
    Ok(data(&text)?)
}

/// Prints data as YAML.
pub(crate) fn yaml(value: &impl Serialize) -> Result<(), Error> {
    Ok(data(&yaml::text(value)?)?)
}

/// Prints one line for the person who is watching.
pub(crate) fn note(text: &str) {
    say(&format!("{text}\n"));
}

/// Prints something that did not stop the command and should be known.
pub(crate) fn warning(text: &str) {
    say(&format!("{YELLOW}warning{YELLOW:#}: {text}\n"));
}

/// Prints an error and its advice; the one place where errors are printed.
pub(crate) fn error(error: &Error, as_json: bool) {
    if as_json {
        if let Ok(text) = serde_json::to_string(&serde_json::json!({ "error": error })) {
            say(&format!("{text}\n"));
        }
        return;
    }
    if error.problems.is_empty() {
        say(&format!("{RED}error{RED:#}: {}\n", error.message));
    }
    for placed in &error.problems {
        say(&format!("{RED}error{RED:#}: {}\n", placed.problem.message));
    }
    if let Some(hint) = &error.hint {
        say(&format!("{CYAN}hint{CYAN:#}: {hint}\n"));
    }
}

/// Writes to standard error, where a failure to write has nobody left to be told.
pub(crate) fn say(text: &str) {
    let mut err = stderr().lock();
    let _ = err.write_all(text.as_bytes());
    let _ = err.flush();
}
