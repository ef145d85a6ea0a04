//! Which fields of two documents are not the same.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

/// One field that is not the same on both sides, addressed as problems of a descriptor are: `service.env[2].value`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct FieldChange {
    path: String,
    /// Absent where the field would be new.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Value>,
    /// Absent where the field would be taken away.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Value>,
}

/// Every field that differs, and only it: of an object its fields, of a list its entries one by one.
pub(super) fn between(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut found = Vec::new();
    compare("", present(before), present(after), &mut found);
    found
}

/// A document that is not there is null.
fn present(document: &Value) -> Option<&Value> {
    Some(document).filter(|document| !document.is_null())
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<FieldChange>) {
    match (before, after) {
        (before, after) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            for key in keys(before, after) {
                compare(&below(path, key), before.get(key), after.get(key), found);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            for index in 0..before.len().max(after.len()) {
                compare(&format!("{path}[{index}]"), before.get(index), after.get(index), found);
            }
        }
        (before, after) => {
            found.push(FieldChange { path: path.to_owned(), before: before.cloned(), after: after.cloned() });
        }
    }
}

fn keys<'a>(before: &'a Map<String, Value>, after: &'a Map<String, Value>) -> BTreeSet<&'a str> {
    before.keys().chain(after.keys()).map(String::as_str).collect()
}

/// The path of a field, its name in brackets where it has characters of a path.
fn below(path: &str, name: &str) -> String {
    let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    match (plain, path) {
        (true, "") => name.to_owned(),
        (true, path) => format!("{path}.{name}"),
        (false, path) => format!("{path}[{}]", Value::from(name)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_differs_is_named_with_its_place() {
        let before = json!({ "a": 1, "b": { "c/d": "x", "same": [1] }, "list": [1, { "k": 2 }, 3], "gone": true });
        let after = json!({ "a": 1, "b": { "c/d": "y", "same": [1] }, "list": [1, { "k": 4 }], "new": [] });
        let change = |path: &str, before: Option<Value>, after: Option<Value>| FieldChange {
            path: path.to_owned(),
            before,
            after,
        };
        assert_eq!(
            between(&before, &after),
            [
                change("b[\"c/d\"]", Some(json!("x")), Some(json!("y"))),
                change("gone", Some(json!(true)), None),
                change("list[1].k", Some(json!(2)), Some(json!(4))),
                change("list[2]", Some(json!(3)), None),
                change("new", None, Some(json!([]))),
            ]
        );
        assert_eq!(between(&before, &before), []);
        assert_eq!(between(&Value::Null, &json!({ "a": 1 })), [change("", None, Some(json!({ "a": 1 })))]);
    }
}
