//! One broken rule, addressed the way its author wrote it.

use std::ops::Range;

use serde::Serialize;

/// One broken rule: the documented message, and the field it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The exact message.
    pub message: String,
    /// The field, from the descriptor's root: `name`, `service.port`, `service.env[2].name`; empty for the whole document.
    pub path: String,
}

/// A problem with its place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Located {
    /// What is wrong.
    #[serde(flatten)]
    pub problem: Problem,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The offending piece, in bytes of the text that was read.
    #[serde(skip)]
    pub span: Range<usize>,
}

impl Problem {
    /// A problem of the field at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { message: message.into(), path: path.into() }
    }
}

/// What a decoder says it expected, out of a message that also quotes what it found: that may be a secret value.
pub fn expected(message: &str) -> Option<&str> {
    let (_, expected) = message.rsplit_once(", expected ").or_else(|| message.rsplit_once(". Expected "))?;
    Some(expected)
}

#[cfg(test)]
mod tests {
    use super::expected;

    #[test]
    fn what_was_found_is_left_out() {
        let said = serde_json::from_str::<String>("4711").map_err(|error| error.to_string());
        assert_eq!(said.as_deref().err().map(String::as_str).and_then(expected), Some("a string at line 1 column 4"));
        assert_eq!(expected("Invalid type string \". Expected x\". Expected i64"), Some("i64"));
        assert_eq!(expected("Missing field phase"), None);
    }
}
