//! The two streams: data goes to standard output, everything else to standard error.
//!
//! Under `-o json` each line on standard error is a JSON object with one key: `error`, `warning` or `note`.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{stderr, stdout};
use clap::ValueEnum;
use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;

use crate::error::Error;
use crate::show::yaml;

const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const CYAN: Style = AnsiColor::Cyan.on_default().bold();

/// Whether a program reads standard error. Set once, before anything is said.
static FOR_PROGRAMS: AtomicBool = AtomicBool::new(false);

/// Decides for whom standard error is written.
pub(crate) fn for_programs(yes: bool) {
    FOR_PROGRAMS.store(yes, Ordering::Relaxed);
}

/// Whether nothing is said at all. Set once, before anything is said.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Says nothing from now on: a shell that completes a line would show it in the middle of it.
pub(crate) fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

fn programs() -> bool {
    FOR_PROGRAMS.load(Ordering::Relaxed)
}

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

/// Prints one line or more of data. A reader who has seen enough and gone away is no failure.
pub(crate) fn data(text: &str) -> io::Result<()> {
    let ending = if text.ends_with('\n') { "" } else { "\n" };
    let mut out = stdout().lock();
    let written = write!(out, "{text}{ending}").and_then(|()| out.flush());
    written.or_else(|cause| if cause.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(cause) })
}

/// Prints data for programs.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value)
        .map(yaml::safe)
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
    if programs() { say(&line("note", &text)) } else { say(&format!("{text}\n")) }
}

/// Prints something that did not stop the command and should be known.
pub(crate) fn warning(text: &str) {
    if programs() { say(&line("warning", &text)) } else { say(&format!("{YELLOW}warning{YELLOW:#}: {text}\n")) }
}

/// Prints an error and its advice; the one place where errors are printed.
pub(crate) fn error(error: &Error) {
    if programs() {
        return say(&line("error", error));
    }
    let messages = error.problems.iter().map(|placed| &placed.problem.message);
    let whole = error.problems.is_empty().then_some(&error.message);
    for message in messages.chain(whole) {
        say(&format!("{RED}error{RED:#}: {message}\n"));
    }
    if let Some(hint) = &error.hint {
        say(&format!("{CYAN}hint{CYAN:#}: {hint}\n"));
    }
}

/// One line for programs.
fn line(key: &str, value: &impl Serialize) -> String {
    format!("{}\n", serde_json::json!({ key: value }))
}

/// Writes to standard error, where a failure to write has nobody left to be told.
pub(crate) fn say(text: &str) {
    if SILENT.load(Ordering::Relaxed) {
        return;
    }
    let mut err = stderr().lock();
    let _ = err.write_all(text.as_bytes());
    let _ = err.flush();
}
