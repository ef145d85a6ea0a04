//! What applying a descriptor would change: in the descriptor, in the objects that run the service, and for its instances.
//! Pure: what is stored and what would be stored in, a difference out.

mod fields;
mod objects;
mod text;

use ankka_crds::AnkkaService;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cluster::Document;
use crate::settings::Project;
use fields::FieldChange;
use objects::{Object, rendered};

/// The difference between a service as it is stored and as it would be. Its fields are the output of `-o json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Difference {
    name: String,
    project: String,
    /// Whether anything would change.
    pub(crate) changed: bool,
    /// Whether the service would be made.
    created: bool,
    /// Whether running instances would be replaced; null where that cannot be told.
    rolls: Option<bool>,
    /// Fields of the descriptor.
    descriptor: Vec<FieldChange>,
    /// Objects that run the service.
    objects: Vec<ObjectChange>,
    #[serde(skip)]
    documents: (Value, Value),
    #[serde(skip)]
    generation: Option<i64>,
    /// Instances before and after.
    #[serde(skip)]
    instances: (i64, i64),
    #[serde(skip)]
    paused: bool,
}

/// One object that would be made, changed or taken away.
#[derive(Serialize)]
struct ObjectChange {
    kind: &'static str,
    name: String,
    change: Change,
    /// The fields that would change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<FieldChange>,
    #[serde(skip)]
    bodies: (Value, Value),
}

/// What would happen to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Change {
    Created,
    Changed,
    Removed,
}

impl Difference {
    /// Compares what is stored, if anything is, with what would be.
    pub(crate) fn between(stored: Option<&AnkkaService>, wanted: &AnkkaService, project: &Project) -> Self {
        let document = |service: &AnkkaService| json!(Document::of(service));
        let documents = (stored.map(document).unwrap_or_default(), document(wanted));
        let descriptor = fields::between(&documents.0, &documents.1);
        // A descriptor that was stored under older rules cannot be rendered any more.
        let before = match stored {
            Some(stored) => rendered(stored, project),
            None => Some(Vec::new()),
        };
        let after = rendered(wanted, project).unwrap_or_default();
        let paused = wanted.spec.paused;
        let rolls = match (&before, stored) {
            (_, None) => Some(false),
            _ if paused => Some(false),
            (Some(before), _) => Some(objects::template(before) != objects::template(&after)),
            (None, _) => None,
        };
        let objects = before.map(|before| changes(&before, &after)).unwrap_or_default();
        Self {
            name: Document::of(wanted).name,
            project: project.id.clone(),
            changed: !descriptor.is_empty() || !objects.is_empty(),
            created: stored.is_none(),
            rolls,
            descriptor,
            objects,
            documents,
            generation: stored.and_then(|stored| stored.metadata.generation),
            instances: (stored.map_or(0, asked), asked(wanted)),
            paused,
        }
    }
}

/// Objects of one side that are not the same on the other, in the order in which they are made.
fn changes(before: &[Object], after: &[Object]) -> Vec<ObjectChange> {
    let twin = |objects: &[Object], of: &Object| {
        objects.iter().find(|other| (other.kind, &other.name) == (of.kind, &of.name)).map(|other| other.body.clone())
    };
    let gone = before.iter().filter(|object| twin(after, object).is_none());
    let changes = after.iter().map(|object| (object, twin(before, object), Some(object.body.clone())));
    changes
        .chain(gone.map(|object| (object, Some(object.body.clone()), None)))
        .filter(|(_, before, after)| before != after)
        .map(|(object, before, after)| ObjectChange {
            kind: object.kind,
            name: object.name.clone(),
            change: match (&before, &after) {
                (None, _) => Change::Created,
                (_, None) => Change::Removed,
                _ => Change::Changed,
            },
            fields: match (&before, &after) {
                (Some(before), Some(after)) => fields::between(before, after),
                _ => Vec::new(),
            },
            bodies: (before.unwrap_or_default(), after.unwrap_or_default()),
        })
        .collect()
}

/// Instances a descriptor asks for.
fn asked(service: &AnkkaService) -> i64 {
    let resources = service.spec.service.resources.as_ref();
    resources.and_then(|resources| resources.autoscaling.as_ref()?.min_instances).unwrap_or(1)
}
