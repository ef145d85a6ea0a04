//! Grammars that several rules share, and the rule of a service's name.

use std::borrow::Cow;

use super::Findings;

/// Longest name of a service, a namespace or anything else that is a DNS label.
pub(crate) const LABEL_LIMIT: usize = 63;

/// Longest DNS name: prefixes of label keys, names and keys of Secrets.
pub(crate) const SUBDOMAIN_LIMIT: usize = 253;

/// Characters of a culprit that are shown in a message.
const SHOWN: usize = 300;

/// The rule of a service's name (descriptor document, "Top level").
pub(crate) fn service_name(name: &str, found: &mut Findings<'_>) {
    if name.is_empty() {
        found.add("name", "service name must not be empty");
    } else if name.len() > LABEL_LIMIT || !is_identifier(name) {
        let name = shown(name);
        found.add(
            "name",
            format!("service name '{name}' is invalid: lowercase letters, digits and '-', starting with a letter"),
        );
    }
}

/// Lowercase letters, digits and `-`, starting with a letter, ending with a letter or digit. No limit of length.
pub(crate) fn is_identifier(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && !text.ends_with('-')
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// A lowercase DNS name as Kubernetes takes it: labels of letters, digits and `-`, at most 253 characters in all.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_LIMIT
        && text.split('.').all(|label| {
            !label.is_empty()
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        })
}

/// The part of a label key after the prefix, and a label's value unless it is empty.
pub(crate) fn is_qualified_part(text: &str) -> bool {
    text.len() <= LABEL_LIMIT
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.ends_with(|last: char| last.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// A label key as Kubernetes takes it: `[prefix/]name`.
pub(crate) fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_qualified_part(name),
        None => is_qualified_part(key),
    }
}

/// The keys a Secret can have.
pub(crate) fn is_secret_key(key: &str) -> bool {
    key.len() <= SUBDOMAIN_LIMIT
        && !key.is_empty()
        && key != "."
        && !key.starts_with("..")
        && key.bytes().all(is_name_byte)
}

/// What names of variables and keys of Secrets consist of.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// Numbers separated by dots, `count` of them, each of one or more digits. A number that is too large for 64 bits is the
/// largest there is: no version comes near it.
pub(crate) fn version<const COUNT: usize>(text: &str) -> Option<[u64; COUNT]> {
    let mut numbers = [0; COUNT];
    let mut parts = text.split('.');
    for number in &mut numbers {
        let part = parts.next()?;
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().unwrap_or(u64::MAX);
    }
    parts.next().is_none().then_some(numbers)
}

/// A culprit as it stands in a message: control characters escaped, so that nothing leaves its line, and cut when very
/// long.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if text.len() <= SHOWN && !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut result = String::new();
    for character in text.chars().take(SHOWN) {
        if character.is_control() {
            result.extend(character.escape_default());
        } else {
            result.push(character);
        }
    }
    if text.chars().nth(SHOWN).is_some() {
        result.push('…');
    }
    Cow::Owned(result)
}
