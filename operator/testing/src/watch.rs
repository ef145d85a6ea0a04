//! Watches of collections: who is told what.

use bytes::Bytes;
use futures::channel::mpsc;
use serde_json::{Value, json};

/// A watch, or the question what a listing contains.
pub(crate) struct Watch {
    pub(crate) collection: String,
    pub(crate) selector: Option<(String, String)>,
    pub(crate) sender: mpsc::UnboundedSender<Bytes>,
}

/// Collections end in a plural; the objects of these tests do not.
pub(crate) fn is_collection(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    let parent = path.trim_end_matches(last).trim_end_matches('/');
    parent.ends_with("/v1") || parent.ends_with("/v1alpha1")
}

impl Watch {
    pub(crate) fn wants(&self, path: &str, object: &Value) -> bool {
        let in_collection = collection_of(path).is_some_and(|collection| collection == self.collection);
        let labels = &object["metadata"]["labels"];
        in_collection && self.selector.as_ref().is_none_or(|(key, value)| labels[key] == value.as_str())
    }

    pub(crate) fn tell(&self, path: &str, old: Option<&Value>, new: Option<&Value>) {
        let before = old.filter(|object| self.wants(path, object));
        let after = new.filter(|object| self.wants(path, object));
        let (kind, object) = match (before, after) {
            (None, Some(object)) => ("ADDED", object.clone()),
            (Some(_), Some(object)) => ("MODIFIED", object.clone()),
            (Some(object), None) => {
                let mut object = object.clone();
                if let Some(new) = new {
                    object["metadata"]["resourceVersion"] = new["metadata"]["resourceVersion"].clone();
                }
                ("DELETED", object)
            }
            (None, None) => return,
        };
        let line = format!("{}\n", json!({"type": kind, "object": object}));
        let _ = self.sender.unbounded_send(line.into());
    }
}

/// The cluster-wide collection an object's path belongs to.
fn collection_of(path: &str) -> Option<String> {
    let (parent, _) = path.rsplit_once('/')?;
    match parent.split_once("/namespaces/") {
        Some((root, rest)) => Some(format!("{root}/{}", rest.split_once('/')?.1)),
        None => Some(parent.to_owned()),
    }
}
