//! A descriptor named on the command line: a file, or standard input.

use std::convert::Infallible;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::str::FromStr;

use ankka_crds::descriptor::SIZE_LIMIT;

use crate::error::Error;

/// How much is read, in bytes: enough to say of a file that is somewhat too large how large it is.
const READ: usize = 16 * SIZE_LIMIT;

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
    /// Reads all of it, unless it is far larger than any descriptor.
    pub(crate) fn read(&self) -> Result<Vec<u8>, Error> {
        let read = match self {
            Self::Stdin => up_to(READ, std::io::stdin().lock()),
            Self::File(path) => File::open(path).and_then(|file| up_to(READ, file)),
        };
        let text = read.map_err(|cause| Error::new(format!("failed to read '{self}': {}", reason(&cause))))?;
        if text.len() > READ {
            return Err(Error::new(format!(
                "failed to read '{self}': it goes on after {READ} bytes, and a descriptor has at most {SIZE_LIMIT}"
            )));
        }
        Ok(text)
    }
}

/// Reads no more than one byte beyond `most`: a device or a pipe may never end.
fn up_to(most: usize, source: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    source.take(most as u64 + 1).read_to_end(&mut text)?;
    Ok(text)
}

/// The reason without the number the system gives it.
pub(crate) fn reason(cause: &io::Error) -> String {
    let text = cause.to_string();
    let plain = text.split(" (os error").next().unwrap_or(&text);
    plain
        .chars()
        .next()
        .map(|first| first.to_lowercase().collect::<String>() + &plain[first.len_utf8()..])
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_not_read_to_the_end() {
        assert_eq!(up_to(10, io::repeat(b'x')).expect("it can be read").len(), 11);
        assert_eq!(up_to(10, &b"0123456789"[..]).expect("it can be read"), b"0123456789");
    }
}
