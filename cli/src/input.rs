//! A descriptor named on the command line: a file, or standard input.

use std::convert::Infallible;
use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::Error;

/// Where a descriptor is read from.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// Standard input, written `-`.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl FromStr for Input {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "-" { Self::Stdin } else { Self::File(text.into()) })
    }
}

impl fmt::Display for Input {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => out.write_str("<stdin>"),
            Self::File(path) => path.display().fmt(out),
        }
    }
}

impl Input {
    /// Reads all of it.
    pub(crate) fn read(&self) -> Result<Vec<u8>, Error> {
        match self {
            Self::Stdin => {
                let mut text = Vec::new();
                std::io::stdin().lock().read_to_end(&mut text).map(|_| text)
            }
            Self::File(path) => std::fs::read(path),
        }
        .map_err(|cause| Error::new(format!("failed to read '{self}': {}", reason(&cause))))
    }
}

/// The reason without the number the system gives it.
pub(crate) fn reason(cause: &std::io::Error) -> String {
    let text = cause.to_string();
    let plain = text.split(" (os error").next().unwrap_or(&text);
    plain
        .chars()
        .next()
        .map(|first| first.to_lowercase().collect::<String>() + &plain[first.len_utf8()..])
        .unwrap_or_default()
}
