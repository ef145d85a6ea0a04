//! What is worth an Event: a service that changes its word, or has something new to say.

use ankka_crds::AnkkaServiceStatus;

use crate::{database, text};

/// Longest note, in bytes: the API server's limit.
const NOTE_LIMIT: usize = 1024;

/// Whether an event is good or bad news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// As it should be.
    Normal,
    /// Somebody may want to look.
    Warning,
}

/// One Event about a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Good or bad news.
    pub type_: EventType,
    /// The word of `status.lifecycle`, one of seven.
    pub reason: &'static str,
    /// One sentence, at most 1024 bytes.
    pub note: String,
}

/// The Event for the change from one status to the next; none when neither the word nor the detail changed.
pub fn event(old: Option<&AnkkaServiceStatus>, new: &AnkkaServiceStatus) -> Option<Event> {
    let before = old.map(|old| (old.lifecycle.as_deref(), old.detail.as_deref()));
    let now = (new.lifecycle.as_deref(), new.detail.as_deref());
    let told = before == Some(now) || (before.is_some_and(|(word, _)| word == now.0) && now.1.is_none());
    if told {
        return None;
    }
    let (type_, reason, sentence) = match new.lifecycle.as_deref()? {
        "Ready" => (EventType::Normal, "Ready", "all instances are ready"),
        "Paused" => (EventType::Normal, "Paused", "the service is paused; its descriptor and its data are kept"),
        "UpdateInProgress" => (EventType::Normal, "UpdateInProgress", "instances are being replaced or started"),
        "PartiallyReady" => (EventType::Warning, "PartiallyReady", "some instances are not ready"),
        "Unavailable" => (EventType::Warning, "Unavailable", "no instance is ready"),
        "Failed" => (EventType::Warning, "Failed", "the service failed"),
        "NotDeployed" => (EventType::Normal, "NotDeployed", "the service has no instances"),
        _ => return None,
    };
    // To wait for a database that is being made is the ordinary way of a new service.
    let expected = reason == "Paused" || new.detail.as_deref() == Some(database::WAITING);
    let type_ = if new.detail.is_some() && !expected { EventType::Warning } else { type_ };
    Some(Event { type_, reason, note: text::cut(new.detail.as_deref().unwrap_or(sentence), NOTE_LIMIT) })
}
