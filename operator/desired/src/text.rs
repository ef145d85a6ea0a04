//! Words of status and events.

use crate::ChildKind;

/// Longest detail, in bytes: what a node or a quota says can be arbitrarily long.
pub(crate) const DETAIL_LIMIT: usize = 1024;

/// Longest list of problems, in bytes: it stands in a status three times, which must stay far below what can be stored.
pub(crate) const PROBLEMS_LIMIT: usize = 16 * 1024;

/// `Reason: message`, or the reason alone.
pub(crate) fn reason(reason: &str, message: Option<&str>) -> String {
    match message.map(str::trim).filter(|message| !message.is_empty()) {
        Some(message) => cut(&format!("{reason}: {message}"), DETAIL_LIMIT),
        None => reason.to_owned(),
    }
}

/// Somebody else's object has a name that one of ours needs.
pub(crate) fn name_taken(kind: ChildKind, name: &str, namespace: &str) -> String {
    let article = if kind == ChildKind::HttpRoute { "an" } else { "a" };
    format!("{article} {} named '{name}' already exists in '{namespace}' and is not managed by ankka", kind.word())
}

/// The text, or as much of it as fits into `limit` bytes with an ellipsis.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = (0..=limit - '…'.len_utf8()).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &text[..end])
}
