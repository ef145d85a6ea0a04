//! What to PUT: the object as it should be, with everything of the stored one that is somebody else's to decide.

use ankka_crds::labels;
use serde_json::{Map, Value, json};

use crate::{Child, ChildKind};

/// The body of the PUT that makes the stored object what it should be.
///
/// Kept from the stored object: its identity and finalizers, owner references, labels and annotations of others (also on
/// the pod template), what the API server has allocated to a Service, and what token controllers hang on a
/// ServiceAccount. Dropped: everything else that is not wanted, and labels and annotations of ours that no longer are.
pub fn merged(live: &Value, child: &Child) -> Value {
    let mut body = merged_object(live, &child.body);
    let kept: &[&str] = match child.kind {
        ChildKind::Service => &["/spec/clusterIP", "/spec/clusterIPs"],
        ChildKind::ServiceAccount => &["/secrets", "/imagePullSecrets"],
        _ => &[],
    };
    for path in kept {
        if let Some(value) = live.pointer(path)
            && let Some((parent, key)) = path.rsplit_once('/')
            && let Some(parent) = body.pointer_mut(parent).and_then(Value::as_object_mut)
        {
            parent.insert(key.to_owned(), value.clone());
        }
    }
    body
}

/// The body of the PUT that gives a stored Deployment another number of instances and touches nothing else.
///
/// Its digest is taken away, so that the next complete rendering is written even when it is the one of before.
pub fn scaled(live: &Value, replicas: i32) -> Value {
    let mut body = live.clone();
    if let Some(object) = body.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = body["metadata"].as_object_mut() {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(labels::RENDERED);
        }
    }
    body["spec"]["replicas"] = json!(replicas);
    body
}

/// [`merged`] for an object of any kind.
pub(crate) fn merged_object(live: &Value, wanted: &Value) -> Value {
    let mut body = wanted.clone();
    body["metadata"] = metadata(live, wanted);
    if wanted.pointer("/spec/template/metadata").is_some() {
        for field in ["labels", "annotations"] {
            let path = format!("/spec/template/metadata/{field}");
            let owned = ["f:spec", "f:template", "f:metadata"];
            let strings = strings(live, wanted, &path, &owned, field);
            set(&mut body["spec"]["template"]["metadata"], field, strings);
        }
    }
    body
}

fn metadata(live: &Value, wanted: &Value) -> Value {
    let mut metadata = live["metadata"].clone();
    if let Some(fields) = metadata.as_object_mut() {
        // Left out, the API server keeps its own record.
        fields.remove("managedFields");
    }
    for field in ["labels", "annotations"] {
        let strings = strings(live, wanted, &format!("/metadata/{field}"), &["f:metadata"], field);
        set(&mut metadata, field, strings);
    }
    if let Some(wanted) = wanted.pointer("/metadata/ownerReferences").and_then(Value::as_array) {
        let mut owners = metadata["ownerReferences"].as_array().cloned().unwrap_or_default();
        for owner in wanted {
            match owners.iter_mut().find(|present| present["uid"] == owner["uid"]) {
                Some(present) => present.clone_from(owner),
                None => owners.push(owner.clone()),
            }
        }
        metadata["ownerReferences"] = Value::Array(owners);
    }
    metadata
}

/// The stored labels or annotations without those that only we wrote, and over them the wanted ones.
fn strings(live: &Value, wanted: &Value, path: &str, owned: &[&str], field: &str) -> Map<String, Value> {
    let object = |value: &Value| value.pointer(path).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut strings = object(live);
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    for entry in entries.into_iter().flatten().filter(|entry| entry["manager"] == labels::MANAGER) {
        let ours = owned.iter().fold(&entry["fieldsV1"], |node, key| &node[*key]);
        let ours = ours[format!("f:{field}")].as_object();
        for key in ours.into_iter().flat_map(Map::keys).filter_map(|key| key.strip_prefix("f:")) {
            strings.remove(key);
        }
    }
    strings.extend(object(wanted));
    strings
}

fn set(parent: &mut Value, field: &str, strings: Map<String, Value>) {
    let Some(parent) = parent.as_object_mut() else {
        return;
    };
    if strings.is_empty() {
        parent.remove(field);
    } else {
        parent.insert(field.to_owned(), Value::Object(strings));
    }
}
