//! The history of a service: annotation `ankka.dev/changes`, kept here and by nobody else.
//!
//! A JSON array of [`Change`], newest first, at most 50. Whatever a request says, the annotation is what is stored already
//! and what this request changes: so it is complete while controllers are down and when changes coalesce, and nobody can
//! forge it. A dry run goes the same way; nothing of it is stored.

use std::collections::BTreeMap;

use ankka_crds::{
    AnkkaServiceSpec, digest,
    history::{self, Change, KEPT, Kind},
    labels::{CHANGES, ROLLED_BACK_TO},
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    review::{Operation, Request, Verdict},
    services,
};

/// Bytes the annotation may have.
const LARGEST: usize = 64 * 1024;
/// Bytes Kubernetes lets all annotations of an object have, keys included.
const LARGEST_TOGETHER: usize = 256 * 1024;
/// Characters of a name or an image that are kept.
const LONGEST_TEXT: usize = 512;

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
    let mut operations = patch(annotations.as_ref(), wanted.as_deref());
    if annotations.is_some_and(|annotations| annotations.contains_key(ROLLED_BACK_TO)) {
        operations.push(json!({"op": "remove", "path": "/metadata/annotations/ankka.dev~1rolled-back-to"}));
    }
    Verdict::Admit { warnings: Vec::new(), patch: (!operations.is_empty()).then(|| operations.into()) }
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
    let earlier: Vec<Change> = stored.map(history::parse).unwrap_or_default();
    let digest = digest::of_descriptor(metadata.name.as_deref().unwrap_or_default(), &spec.service);
    let rolled_back_to = annotations.and_then(|annotations| rollback(annotations, &earlier, &digest));
    let change = |kind| Change {
        generation: old.and_then(|old| old.metadata.generation).unwrap_or(0) + 1,
        kind: if kind == Kind::Applied && rolled_back_to.is_some() { Kind::RolledBack } else { kind },
        who: cut(&request.user),
        at: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        image: spec.service.image.as_deref().map(cut),
        digest: digest.clone(),
        rolled_back_to: rolled_back_to.filter(|_| kind == Kind::Applied),
    };
    let changes: Vec<Change> = kinds.into_iter().map(change).chain(earlier).take(KEPT).collect();
    fitting(changes, room(annotations))
}

/// The generation a request says it brings back, when it really brings back that generation's descriptor.
fn rollback(annotations: &Annotations, earlier: &[Change], digest: &str) -> Option<i64> {
    let generation = annotations.get(ROLLED_BACK_TO)?.parse().ok()?;
    (history::digest_at(earlier, generation) == Some(digest)).then_some(generation)
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

/// The operations that turn the request's annotation into the wanted one.
fn patch(annotations: Option<&Annotations>, wanted: Option<&str>) -> Vec<Value> {
    const PATH: &str = "/metadata/annotations/ankka.dev~1changes";
    match (stored(annotations), wanted) {
        (said, wanted) if said == wanted => Vec::new(),
        (Some(_), None) => vec![json!({"op": "remove", "path": PATH})],
        (_, Some(wanted)) if annotations.is_some() => vec![json!({"op": "add", "path": PATH, "value": wanted})],
        (_, wanted) => vec![json!({"op": "add", "path": "/metadata/annotations", "value": {CHANGES: wanted}})],
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test ends where it fails")]
mod tests;
