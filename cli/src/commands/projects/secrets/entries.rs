//! The entries of a Secret as they are named on the command line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use ankka_crds::secrets::{VALUE_LIMIT, validate_entry};
use k8s_openapi::ByteString;

use crate::error::Error;
use crate::input::reason;
use crate::output;

/// How much of a file of entries is read, in bytes: more than any Secret can hold.
const FILE_LIMIT: u64 = 4 * 1024 * 1024;

/// One argument: `KEY=VALUE`, `KEY=@file` or `KEY=-`.
struct Assignment {
    key: String,
    from: From,
}

enum From {
    Given(String),
    File(PathBuf),
    Stdin,
}

/// Reads one argument. What is wrong with it is said without repeating it: it may be a value.
fn assignment(text: &str) -> Result<Assignment, Error> {
    let (key, value) = text.split_once('=').ok_or_else(|| {
        Error::new("an argument is no entry: it has no '='")
            .hint("write KEY=VALUE, KEY=@FILE, or KEY=- for standard input")
    })?;
    let from = match value.strip_prefix('@') {
        Some(path) => From::File(path.into()),
        None if value == "-" => From::Stdin,
        None => From::Given(value.to_owned()),
    };
    Ok(Assignment { key: key.to_owned(), from })
}

/// All entries, checked. A later one of the same key would hide an earlier, so it is refused. Of a file no key is repeated:
/// what looks like one may be the second line of a value.
pub(super) fn read(arguments: &[String], env_file: Option<&Path>) -> Result<BTreeMap<String, ByteString>, Error> {
    let mut entries = env_file.map(env_entries).transpose()?.unwrap_or_default();
    let mut stdin = env_file.is_some_and(|path| path == Path::new("-"));
    for (number, argument) in arguments.iter().enumerate() {
        let Assignment { key, from } = assignment(argument)?;
        validate_entry(&key, 1)
            .map_err(|why| Error::new(why).hint(format!("entry {} of the arguments is meant", number + 1)))?;
        let value = match from {
            From::Given(value) => value.into_bytes(),
            From::File(path) => file(&key, &path)?,
            From::Stdin if std::mem::replace(&mut stdin, true) => {
                return Err(Error::new("standard input can be read for one thing only"));
            }
            From::Stdin => standard_input(&key)?,
        };
        validate_entry(&key, value.len()).map_err(Error::new)?;
        if entries.insert(key.clone(), ByteString(value)).is_some() {
            return Err(Error::new(format!("secret entry '{key}' is given twice")));
        }
    }
    if entries.is_empty() {
        return Err(Error::new("no entries are given")
            .hint("name them KEY=VALUE, KEY=@FILE or KEY=- for standard input, or in a file with --from-env-file"));
    }
    Ok(entries)
}

/// A file as it is, byte for byte.
fn file(key: &str, path: &Path) -> Result<Vec<u8>, Error> {
    let mut value = Vec::new();
    File::open(path).and_then(|file| file.take(VALUE_LIMIT as u64 + 1).read_to_end(&mut value)).map_err(|cause| {
        Error::new(format!("failed to read secret entry '{key}' from '{}': {}", path.display(), reason(&cause)))
    })?;
    Ok(value)
}

/// Standard input without the line break that ends it, which `echo` and people add.
fn standard_input(key: &str) -> Result<Vec<u8>, Error> {
    if io::stdin().is_terminal() {
        output::note(&format!("type the value of secret entry '{key}', then a line break and Ctrl-D"));
    }
    let mut value = Vec::new();
    io::stdin().lock().take(VALUE_LIMIT as u64 + 3).read_to_end(&mut value).map_err(|cause| {
        Error::new(format!("failed to read secret entry '{key}' from standard input: {}", reason(&cause)))
    })?;
    if value.ends_with(b"\n") {
        value.pop();
        if value.ends_with(b"\r") {
            value.pop();
        }
    }
    Ok(value)
}

/// Lines `KEY=VALUE` of a file, or of standard input. Empty lines and those that start with `#` say nothing; a value is all that
/// follows the first `=`, quotes included, as kubectl reads such files.
fn env_entries(path: &Path) -> Result<BTreeMap<String, ByteString>, Error> {
    let shown = if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() };
    let failed = |why: String| Error::new(format!("failed to read secret entries from '{shown}': {why}"));
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(FILE_LIMIT).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(FILE_LIMIT).read_to_string(&mut text))
    };
    read.map_err(|cause| failed(reason(&cause)))?;
    let mut entries = BTreeMap::new();
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let number = number + 1;
        let (key, value) = line.split_once('=').ok_or_else(|| failed(format!("line {number} is not KEY=VALUE")))?;
        let key = key.trim_end();
        validate_entry(key, value.len()).map_err(|_| {
            failed(format!(
                "line {number} is no entry: a key of letters, digits, '-', '_' and '.', and a value of 1 to {VALUE_LIMIT} bytes"
            ))
        })?;
        if entries.insert(key.to_owned(), ByteString(value.as_bytes().to_vec())).is_some() {
            return Err(failed(format!("line {number} gives an entry of a line before it")));
        }
    }
    Ok(entries)
}
