//! Environment variables, read with errors that say what is allowed.

use std::env;

use anyhow::{Context, anyhow};

/// The variable's value; none when it is not set or empty.
///
/// # Errors
/// A value that is not UTF-8.
pub fn optional(name: &str) -> anyhow::Result<Option<String>> {
    match env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(anyhow!("{name} is not UTF-8")),
    }
}

/// The variable's value, which the platform sets on every instance.
pub(crate) fn required(name: &str) -> anyhow::Result<String> {
    optional(name)?.with_context(|| format!("{name} is not set; the platform sets it on every instance"))
}

/// The port a variable names; none when it is not set.
///
/// # Errors
/// Anything but a whole number from 1 to 65535.
pub fn port(name: &str) -> anyhow::Result<Option<u16>> {
    let Some(text) = optional(name)? else {
        return Ok(None);
    };
    match text.parse() {
        Ok(port) if port > 0 => Ok(Some(port)),
        _ => Err(anyhow!("{name} is '{text}'; it must be a whole number from 1 to 65535")),
    }
}
