//! Descriptors as they were, so that each can be looked at and brought back: one ControllerRevision a descriptor.

use ankka_crds::{AnkkaService, digest, history, labels, names};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::{Facts, Seen, objects};

/// How many bytes of descriptors are kept of one service.
const BYTES: u64 = 1024 * 1024;

/// A ControllerRevision that has the name of one of a service's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevisionSeen {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// UID of the AnkkaService that controls it, when one does.
    pub owner: Option<String>,
    /// The generation of the service that took this descriptor up last.
    pub generation: i64,
    /// How many bytes the descriptor has.
    pub size: u64,
    /// It is being deleted.
    pub terminating: bool,
}

impl RevisionSeen {
    /// What of a ControllerRevision's metadata the decision needs.
    pub fn of(meta: &ObjectMeta) -> Self {
        let annotation = |key: &str| meta.annotations.as_ref()?.get(key);
        let Seen { uid, owner, terminating, .. } = Seen::of(meta);
        Self {
            name: meta.name.clone().unwrap_or_default(),
            uid,
            owner: owner.map(|owner| owner.uid),
            generation: annotation(labels::GENERATION).and_then(|text| text.parse().ok()).unwrap_or_default(),
            size: annotation(labels::SIZE).and_then(|text| text.parse().ok()).unwrap_or_default(),
            terminating,
        }
    }

    /// Whether this AnkkaService controls it.
    pub fn is_owned_by(&self, service: &AnkkaService) -> bool {
        self.owner.is_some() && self.owner == service.metadata.uid
    }
}

/// One write of a service's history. Each is safe to repeat after a crash at any point.
#[derive(Clone, Debug, PartialEq)]
pub enum Recording {
    /// POST: an object of that name already there is somebody else's.
    Create {
        /// Its name.
        name: String,
        /// The whole object.
        body: Value,
    },
    /// Read, then PUT [`renewed`] with the UID and resourceVersion that were read: a descriptor of before is taken up again.
    Renew {
        /// Its name.
        name: String,
        /// UID of the object that was seen.
        uid: String,
        /// The generation that took it up.
        generation: i64,
    },
    /// DELETE with the UID as precondition.
    Delete {
        /// Its name.
        name: String,
        /// UID of the object that was seen.
        uid: String,
    },
}

/// What to write so that the present descriptor is kept, and of those of before as many as there is room for.
///
/// An object that is somebody else's is left alone, and nothing is kept under its name.
pub(crate) fn recordings(facts: &Facts<'_>) -> Vec<Recording> {
    let service = facts.service;
    let digest = digest::of_descriptor(facts.name(), &service.spec.service);
    let name = names::revision(facts.name(), &digest);
    let generation = service.metadata.generation.unwrap_or_default();
    let mut others: Vec<_> =
        facts.revisions.iter().filter(|seen| seen.is_owned_by(service) && !seen.terminating).collect();
    others.retain(|seen| seen.name != name);
    others.sort_by(|a, b| (b.generation, &b.name).cmp(&(a.generation, &a.name)));

    let mut wanted = Vec::new();
    let size = match facts.revisions.iter().find(|seen| seen.name == name) {
        None => {
            let (body, size) = revision(facts, &name, generation);
            wanted.push(Recording::Create { name, body });
            size
        }
        Some(seen) if !seen.is_owned_by(service) || seen.terminating => 0,
        Some(seen) => {
            let is_newest = others.first().is_none_or(|newest| newest.generation <= seen.generation);
            if !is_newest && seen.generation != generation {
                wanted.push(Recording::Renew { name, uid: seen.uid.clone(), generation });
            }
            seen.size
        }
    };
    let mut bytes = size;
    let over = others.iter().enumerate().filter(|(place, seen)| {
        bytes = bytes.saturating_add(seen.size);
        place + 1 >= history::KEPT || bytes > BYTES
    });
    let over = over.map(|(_, seen)| Recording::Delete { name: seen.name.clone(), uid: seen.uid.clone() });
    wanted.extend(over);
    wanted
}

/// The object that keeps the present descriptor, and how many bytes that has.
fn revision(facts: &Facts<'_>, name: &str, generation: i64) -> (Value, u64) {
    let service = facts.name();
    let data = json!({ "name": service, "service": facts.service.spec.service });
    let size = data.to_string().len() as u64;
    let project = names::project_of(&facts.settings.prefix, facts.namespace()).unwrap_or_default();
    let body = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": facts.namespace(),
            "labels": labels::identity(project, service),
            "annotations": { labels::GENERATION: generation.to_string(), labels::SIZE: size.to_string() },
            "ownerReferences": [objects::owner(service, facts.uid())],
        },
        "revision": generation,
        "data": data,
    });
    (body, size)
}

/// The body of the PUT that says of a stored ControllerRevision which generation took its descriptor up last.
pub fn renewed(live: &Value, generation: i64) -> Value {
    let mut body = live.clone();
    if let Some(metadata) = body["metadata"].as_object_mut() {
        // Left out, the API server keeps its own record.
        metadata.remove("managedFields");
    }
    body["metadata"]["annotations"][labels::GENERATION] = generation.to_string().into();
    body["revision"] = generation.into();
    body
}
