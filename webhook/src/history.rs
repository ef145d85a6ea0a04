//! The history of a service: annotation `ankka.dev/changes`, kept here and by nobody else.
//!
//! A JSON array of [`Change`], newest first, at most 50. Whatever a request says, the annotation is what is stored already
//! and what this request changes: so it is complete while controllers are down and when changes coalesce, and nobody can
//! forge it. A dry run goes the same way; nothing of it is stored.

use std::collections::BTreeMap;

use ankka_crds::{AnkkaServiceSpec, labels::CHANGES};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    digest,
    review::{Operation, Request, Verdict},
    services,
};

/// Changes kept.
pub const KEPT: usize = 50;
/// Bytes the annotation may have.
const LARGEST: usize = 64 * 1024;
/// Bytes Kubernetes lets all annotations of an object have, keys included.
const LARGEST_TOGETHER: usize = 256 * 1024;
/// Characters of a name or an image that are kept.
const LONGEST_TEXT: usize = 512;

/// One change of a service's spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The service's generation after the change.
    pub generation: i64,
    /// What was changed.
    pub kind: Kind,
    /// Who changed it, as the API server knows them.
    pub who: String,
    /// When, RFC 3339, in whole seconds.
    pub at: String,
    /// The image after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Digest of the descriptor after the change.
    pub digest: String,
}

/// What a change changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each is the documented word of a command")]
pub enum Kind {
    Applied,
    Restarted,
    Paused,
    Resumed,
    Exposed,
    Unexposed,
    StorageCredentialReissued,
    StorageSettingsReapplied,
    StorageMoved,
    DatabaseCredentialReissued,
}

/// The patch that makes a request's history right. It never refuses: an object that breaks a rule is refused afterwards.
pub fn keep(request: &Request<AnkkaServiceSpec>, now: Timestamp) -> Verdict {
    let Some(new) = &request.object else {
        return Verdict::admit();
    };
    let annotations = new.metadata.annotations();
    let old_annotations = request.old.as_ref().and_then(|old| old.metadata.annotations());
    let stored = stored(old_annotations.as_ref());
    let wanted = match (request.operation, &new.spec) {
        (Operation::Create | Operation::Update, Ok(spec)) if request.sub_resource.is_empty() => {
            extended(request, spec, annotations.as_ref(), stored, now)
        }
        (Operation::Create | Operation::Update, _) => stored.map(str::to_owned),
        (Operation::Other, _) => return Verdict::admit(),
    };
    Verdict::Admit { warnings: Vec::new(), patch: patch(annotations.as_ref(), wanted.as_deref()) }
}

type Annotations = BTreeMap<String, String>;

fn stored(annotations: Option<&Annotations>) -> Option<&str> {
    annotations?.get(CHANGES).map(String::as_str)
}

/// The stored history with this request's changes before it; none when there is nothing, or no room for any.
fn extended(
    request: &Request<AnkkaServiceSpec>,
    spec: &AnkkaServiceSpec,
    annotations: Option<&Annotations>,
    stored: Option<&str>,
    now: Timestamp,
) -> Option<String> {
    let old = request.old.as_ref();
    let kinds = match old {
        None => of_creation(spec),
        Some(old) => of_update(&old.spec().unwrap_or_default(), spec),
    };
    if kinds.is_empty() {
        return stored.map(str::to_owned);
    }
    let metadata = request.object.as_ref().map(|object| &object.metadata)?;
    let change = |kind| Change {
        generation: old.and_then(|old| old.metadata.generation).unwrap_or(0) + 1,
        kind,
        who: cut(&request.user),
        at: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        image: spec.service.image.as_deref().map(cut),
        digest: digest::of_descriptor(metadata.name.as_deref().unwrap_or_default(), &spec.service),
    };
    // What cannot be read was not written here, and is not history.
    let earlier: Vec<Change> = stored.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let changes: Vec<Change> = kinds.into_iter().map(change).chain(earlier).take(KEPT).collect();
    fitting(changes, room(annotations))
}

/// Kinds of change of a new service. Counters it starts with ask for nothing.
fn of_creation(spec: &AnkkaServiceSpec) -> Vec<Kind> {
    let set = [(true, Kind::Applied), (spec.paused, Kind::Paused), (spec.exposed, Kind::Exposed)];
    set.into_iter().filter_map(|(is, kind)| is.then_some(kind)).collect()
}

/// Kinds of change from `old` to `new`: several when one request changes several things.
fn of_update(old: &AnkkaServiceSpec, new: &AnkkaServiceSpec) -> Vec<Kind> {
    let rose = |count: fn(&AnkkaServiceSpec) -> i64| count(new) > count(old);
    let set = [
        (old.service != new.service, Kind::Applied),
        (rose(|spec| spec.restarts), Kind::Restarted),
        (!old.paused && new.paused, Kind::Paused),
        (old.paused && !new.paused, Kind::Resumed),
        (!old.exposed && new.exposed, Kind::Exposed),
        (old.exposed && !new.exposed, Kind::Unexposed),
        (rose(services::credential_generation), Kind::StorageCredentialReissued),
        (rose(services::settings_generation), Kind::StorageSettingsReapplied),
        (rose(services::move_generation), Kind::StorageMoved),
        (rose(services::database_generation), Kind::DatabaseCredentialReissued),
    ];
    set.into_iter().filter_map(|(is, kind)| is.then_some(kind)).collect()
}

fn cut(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}

/// Bytes the other annotations leave: a long one of the author's must not make the request fail because of ours.
fn room(annotations: Option<&Annotations>) -> usize {
    let others: usize = annotations
        .into_iter()
        .flatten()
        .filter(|(key, _)| *key != CHANGES)
        .map(|(key, value)| key.len() + value.len())
        .sum();
    LARGEST.min(LARGEST_TOGETHER.saturating_sub(others + CHANGES.len()))
}

/// The newest changes that fit in `room` bytes.
fn fitting(changes: Vec<Change>, room: usize) -> Option<String> {
    let mut text = String::from("[");
    for change in changes {
        let change = serde_json::to_string(&change).expect("strings and numbers always serialise");
        // A comma or the closing bracket follows.
        if text.len() + change.len() + 2 > room {
            break;
        }
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&change);
    }
    text.push(']');
    (text.len() > 2).then_some(text)
}

/// The operation that turns the request's annotation into the wanted one, if one is needed.
fn patch(annotations: Option<&Annotations>, wanted: Option<&str>) -> Option<Value> {
    const PATH: &str = "/metadata/annotations/ankka.dev~1changes";
    match (stored(annotations), wanted) {
        (said, wanted) if said == wanted => None,
        (Some(_), None) => Some(json!([{"op": "remove", "path": PATH}])),
        (_, Some(wanted)) if annotations.is_some() => Some(json!([{"op": "add", "path": PATH, "value": wanted}])),
        (_, wanted) => Some(json!([{"op": "add", "path": "/metadata/annotations", "value": {CHANGES: wanted}}])),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test ends where it fails")]
mod tests;
