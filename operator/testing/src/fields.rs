//! Who owns which field, as the API server records it in `managedFields`: enough of it for these tests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

type Path = Vec<String>;

/// Records that `manager` has written `new` over `old`: what it changed is its own now and nobody else's.
pub(crate) fn record(old: Option<&Value>, new: &mut Value, manager: &str) {
    let before = old.map(leaves).unwrap_or_default();
    let after = leaves(new);
    let changed: BTreeSet<&Path> =
        after.iter().filter(|(path, value)| before.get(*path) != Some(value)).map(|(path, _)| path).collect();
    let mut owners = old.map(owners).unwrap_or_default();
    owners.entry(manager.to_owned()).or_default();
    for (owner, owned) in &mut owners {
        owned.retain(|path| after.contains_key(path) && (owner == manager || !changed.contains(path)));
        if owner == manager {
            owned.extend(changed.iter().map(|path| (*path).clone()));
        }
    }
    owners.retain(|_, owned| !owned.is_empty());
    let entries: Vec<Value> = owners
        .iter()
        .map(|(manager, owned)| {
            json!({"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": tree(owned)})
        })
        .collect();
    new["metadata"]["managedFields"] = entries.into();
}

fn leaves(object: &Value) -> BTreeMap<Path, Value> {
    let mut found = BTreeMap::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        match key.as_str() {
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                for field in ["labels", "annotations", "ownerReferences"] {
                    if let Some(value) = value.get(field) {
                        collect(&["f:metadata".to_owned(), format!("f:{field}")], value, &mut found);
                    }
                }
            }
            key => collect(&[format!("f:{key}")], value, &mut found),
        }
    }
    found
}

fn collect(path: &[String], value: &Value, found: &mut BTreeMap<Path, Value>) {
    let field = path.last().and_then(|key| key.strip_prefix("f:")).unwrap_or_default();
    match value {
        Value::Object(fields) if !ONE_PIECE.contains(&field) => {
            for (key, value) in fields {
                collect(&[path, &[format!("f:{key}")]].concat(), value, found);
            }
        }
        Value::Array(items) if !list_keys(field).is_empty() => {
            for item in items {
                let key = list_keys(field).iter().find(|keys| keys.iter().all(|key| item.get(key).is_some()));
                let key: Map<String, Value> = key
                    .into_iter()
                    .flat_map(|keys| keys.iter())
                    .map(|key| ((*key).to_owned(), item[key].clone()))
                    .collect();
                collect(&[path, &[format!("k:{}", Value::Object(key))]].concat(), item, found);
            }
        }
        value => {
            found.insert(path.to_vec(), value.clone());
        }
    }
}

/// Objects that the API server records as one field.
const ONE_PIECE: [&str; 6] = ["configMapKeyRef", "fieldRef", "labelSelector", "roleRef", "secretKeyRef", "selector"];

/// Names of the fields that tell items of a list apart, where the API server records them one by one.
fn list_keys(list: &str) -> &'static [&'static [&'static str]] {
    match list {
        "containers" | "env" => &[&["name"]],
        "ports" => &[&["containerPort", "protocol"], &["port", "protocol"]],
        "topologySpreadConstraints" => &[&["topologyKey", "whenUnsatisfiable"]],
        _ => &[],
    }
}

fn owners(object: &Value) -> BTreeMap<String, BTreeSet<Path>> {
    let entries = object["metadata"]["managedFields"].as_array();
    let read = |entry: &Value| {
        let mut owned = BTreeSet::new();
        paths(&[], &entry["fieldsV1"], &mut owned);
        (entry["manager"].as_str().unwrap_or_default().to_owned(), owned)
    };
    entries.into_iter().flatten().map(read).collect()
}

fn paths(path: &[String], tree: &Value, found: &mut BTreeSet<Path>) {
    for (key, below) in tree.as_object().into_iter().flatten() {
        let path = [path, std::slice::from_ref(key)].concat();
        if below.as_object().is_some_and(Map::is_empty) {
            found.insert(path);
        } else {
            paths(&path, below, found);
        }
    }
}

fn tree(owned: &BTreeSet<Path>) -> Value {
    let mut root = json!({});
    for path in owned {
        let mut node = &mut root;
        for key in path {
            node = &mut node[key];
        }
        *node = json!({});
    }
    root
}
