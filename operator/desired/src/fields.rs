//! Whose fields are whose, read from `managedFields`: small enough to be held for every child of every service.
//!
//! A field is remembered as a hash of its path.

use ankka_crds::labels;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::digest;

/// Fields of ours, as sorted hashes of their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnFields(Box<[u32]>);

/// What the record of an object says: the fields that are ours, and whether anybody else holds content that is not.
pub(crate) fn read(entries: &[ManagedFieldsEntry]) -> (OwnFields, bool) {
    let mut own = Vec::new();
    let mut others = Vec::new();
    for entry in entries.iter().filter(|entry| entry.subresource.as_deref() != Some("status")) {
        let Some(tree) = entry.fields_v1.as_ref().and_then(|fields| fields.0.as_object()) else {
            continue;
        };
        if entry.manager.as_deref() == Some(labels::MANAGER) {
            collect(ROOT, tree, &mut own);
        } else {
            others.push(content_of(tree.clone()));
        }
    }
    own.sort_unstable();
    own.dedup();
    let own = OwnFields(own.into());
    let foreign = others.iter().any(|tree| !own.cover(ROOT, tree));
    (own, foreign)
}

impl OwnFields {
    /// Whether every field of `body` that we write is still ours: nobody changed it, nobody took it away.
    ///
    /// An object without a record of ours is taken for held: there is no telling, and writing it again would not make one.
    pub(crate) fn hold(&self, body: &Value) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let Some(fields) = body.as_object() else {
            return true;
        };
        fields.iter().all(|(key, value)| match key.as_str() {
            "apiVersion" | "kind" => true,
            "metadata" => ["labels", "annotations"].iter().all(|field| {
                value
                    .get(field)
                    .is_none_or(|strings| self.holds(ROOT.then("f:metadata").then_field(field), strings, field))
            }),
            field => self.holds(ROOT.then_field(field), value, field),
        })
    }

    fn holds(&self, path: Path, value: &Value, field: &str) -> bool {
        match value {
            // The record has nothing to say about what is empty.
            Value::Object(fields) if fields.is_empty() => true,
            Value::Array(items) if items.is_empty() => true,
            Value::Object(fields) if !ONE_PIECE.contains(&field) => {
                fields.iter().all(|(key, value)| self.holds(path.then_field(key), value, key))
            }
            Value::Array(items) if !list_key(field, &Value::Null).is_empty() => items.iter().all(|item| {
                let key = list_key(field, item).iter().map(|name| ((*name).to_owned(), item[*name].clone()));
                let key = digest::canonical(&Value::Object(key.collect()));
                self.holds(path.then(&format!("k:{key}")), item, field)
            }),
            _ => self.contains(path),
        }
    }

    /// Whether every field of a foreign record is ours too: two holders of one field agree on its value.
    fn cover(&self, path: Path, tree: &Map<String, Value>) -> bool {
        tree.iter().filter(|(key, _)| *key != ".").all(|(key, value)| {
            let path = path.then_recorded(key);
            match value.as_object() {
                Some(below) if !below.is_empty() => self.cover(path, below),
                _ => self.contains(path),
            }
        })
    }

    fn contains(&self, path: Path) -> bool {
        self.0.binary_search(&path.0).is_ok()
    }
}

/// Objects, and objects in lists, that we write and the record holds as one field. Their kind is part of Kubernetes' schema: the record alone does
/// not tell one field from a list or map of which nothing is left.
const ONE_PIECE: [&str; 7] =
    ["configMapKeyRef", "fieldRef", "imagePullSecrets", "labelSelector", "roleRef", "secretKeyRef", "selector"];

/// Names of the fields that identify an item of a list that we write; none for a list that the record holds as one field.
fn list_key(list: &str, item: &Value) -> &'static [&'static str] {
    match list {
        "containers" | "env" | "imagePullSecrets" => &["name"],
        "ports" if item.get("containerPort").is_some() => &["containerPort", "protocol"],
        "ports" => &["port", "protocol"],
        "topologySpreadConstraints" => &["topologyKey", "whenUnsatisfiable"],
        _ => &[],
    }
}

/// A foreign record without what others may hold: metadata, labels and annotations of the pod template, and what token
/// controllers hang on a ServiceAccount.
fn content_of(mut tree: Map<String, Value>) -> Map<String, Value> {
    for key in ["f:metadata", "f:status", "f:secrets", "f:imagePullSecrets"] {
        tree.remove(key);
    }
    for field in ["f:labels", "f:annotations"] {
        remove(&mut tree, &["f:spec", "f:template", "f:metadata", field]);
    }
    tree
}

/// Removes what is at the end of a path, and what is left empty on the way.
fn remove(tree: &mut Map<String, Value>, path: &[&str]) {
    let [key, rest @ ..] = path else { return };
    let Some(below) = tree.get_mut(*key).and_then(Value::as_object_mut) else {
        return;
    };
    remove(below, rest);
    if rest.is_empty() || below.keys().all(|key| key == ".") {
        tree.remove(*key);
    }
}

#[derive(Clone, Copy)]
struct Path(u32);

const ROOT: Path = Path(0);

impl Path {
    fn then(self, key: &str) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "32 bits tell the few hundred fields of one object apart")]
        Self(xxh3_64_with_seed(key.as_bytes(), u64::from(self.0)) as u32)
    }

    fn then_field(self, name: &str) -> Self {
        self.then(&format!("f:{name}"))
    }

    /// A key of the record: a field, or an item of a list, whose key is JSON that other programs have written.
    fn then_recorded(self, key: &str) -> Self {
        let parsed = key.strip_prefix("k:").and_then(|json| serde_json::from_str::<Value>(json).ok());
        match parsed {
            Some(parsed) => self.then(&format!("k:{}", digest::canonical(&parsed))),
            None => self.then(key),
        }
    }
}

/// The paths of all fields.
fn collect(path: Path, tree: &Map<String, Value>, fields: &mut Vec<u32>) {
    for (key, value) in tree.iter().filter(|(key, _)| *key != ".") {
        let path = path.then_recorded(key);
        match value.as_object() {
            Some(below) if !below.is_empty() => collect(path, below, fields),
            _ => fields.push(path.0),
        }
    }
}
