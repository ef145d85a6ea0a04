//! What a command ends with: an exit status, or an error with advice.

use std::process::ExitCode;

use ankka_crds::Problem;
use serde::Serialize;

/// How a command that did not fail unexpectedly ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked.
    Success,
    /// It found something wrong and has already said what.
    Failure,
    /// It compared and could not; it has already said why.
    Trouble,
    /// Ctrl-C ended the waiting.
    Interrupted,
    /// As a command in an instance ended.
    Code(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Success => Self::SUCCESS,
            Exit::Failure => Self::FAILURE,
            Exit::Trouble => Self::from(2),
            Exit::Interrupted => Self::from(130),
            Exit::Code(code) => Self::from(code),
        }
    }
}

/// What every command returns.
pub(crate) type Outcome = Result<Exit, Error>;

/// Why a command did not do what was asked, and what to do about it. Advice stands apart from the error, so that programs
/// can tell them apart too.
#[derive(Debug, Serialize)]
pub(crate) struct Error {
    /// What was attempted on what, and why it failed.
    pub(crate) message: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// The broken rules, when it is a descriptor that was refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) problems: Vec<Placed>,
}

/// A problem, with its place where the refused text is at hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Placed {
    /// What is wrong.
    #[serde(flatten)]
    pub(crate) problem: Problem,
    /// Line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    /// Column in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<usize>,
}

impl From<Problem> for Placed {
    fn from(problem: Problem) -> Self {
        Self { problem, line: None, column: None }
    }
}

impl Error {
    /// An error without advice.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, problems: Vec::new() }
    }

    /// The same error with advice.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<std::io::Error> for Error {
    /// Only writing to standard output fails this way.
    fn from(cause: std::io::Error) -> Self {
        Self::new(format!("failed to write the output: {cause}"))
    }
}
