//! `labels` and `annotations`: what Kubernetes takes, and how much of it.

use std::collections::BTreeMap;

use super::{Findings, Place, env, grammar};
use crate::ServiceSpec;

/// Bytes of a service's annotations, keys and values. Kubernetes takes 256 KiB an object; the rest is for what the platform
/// and others put beside them.
const ANNOTATIONS_LIMIT: usize = 240 * 1024;

/// Bytes that labels, annotations and env may take in a Deployment. Kubernetes stores 1.5 MiB an object.
const WORKLOAD_LIMIT: usize = 1280 * 1024;

/// Checks every key and value, then the sizes.
pub(super) fn check(service: &ServiceSpec, found: &mut Findings<'_>) {
    labels(pairs(service.labels.as_ref()), found);
    annotations(pairs(service.annotations.as_ref()), found);
    weight(service, found);
}

fn labels<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>, found: &mut Findings<'_>) {
    for (key, value) in labels {
        if !grammar::is_label_key(key) {
            let key_shown = grammar::shown(key);
            found.add_at(Place::Key, path("labels", key), format!("label key '{key_shown}' is invalid: {KEY_RULE}"));
        }
        if !value.is_empty() && !grammar::is_qualified_part(value) {
            let (key_shown, value) = (grammar::shown(key), grammar::shown(value));
            found.add(
                path("labels", key),
                format!(
                    "label '{key_shown}' has the invalid value '{value}': at most 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit"
                ),
            );
        }
    }
}

fn annotations<'a>(annotations: impl Iterator<Item = (&'a str, &'a str)>, found: &mut Findings<'_>) {
    let mut total = 0;
    let mut largest = ("", 0);
    for (key, value) in annotations {
        // Kubernetes lowers annotation keys before it judges them, so a prefix may have capitals there.
        if !grammar::is_label_key(&key.to_lowercase()) {
            let key_shown = grammar::shown(key);
            found.add_at(
                Place::Key,
                path("annotations", key),
                format!("annotation key '{key_shown}' is invalid: {KEY_RULE}"),
            );
        }
        let size = key.len() + value.len();
        total += size;
        if size > largest.1 {
            largest = (key, size);
        }
    }
    if total > ANNOTATIONS_LIMIT {
        let (key, size) = largest;
        let key_shown = grammar::shown(key);
        found.add_at(
            Place::Key,
            path("annotations", key),
            format!(
                "annotations are {total} bytes, over the {ANNOTATIONS_LIMIT} byte limit; '{key_shown}' alone is {size}"
            ),
        );
    }
}

/// Labels and annotations stand in a Deployment twice, and the keys once more where Kubernetes notes who owns them; env
/// stands there once, each `$` doubled.
fn weight(service: &ServiceSpec, found: &mut Findings<'_>) {
    let twice = |map: &Option<BTreeMap<String, String>>| -> usize {
        pairs(map.as_ref()).map(|(key, value)| 4 * key.len() + 2 * value.len()).sum()
    };
    let env = env::declared(service)
        .iter()
        .map(|entry| {
            let value = entry.value.as_deref().unwrap_or_default();
            env::name_of(entry).len() + value.len() + value.bytes().filter(|byte| *byte == b'$').count()
        })
        .sum::<usize>();
    let parts = [("annotations", twice(&service.annotations)), ("labels", twice(&service.labels)), ("env", env)];
    let total: usize = parts.iter().map(|(_, size)| size).sum();
    if let Some((heaviest, size)) = parts.into_iter().max_by_key(|(_, size)| *size)
        && total > WORKLOAD_LIMIT
    {
        found.add_at(
            Place::Key,
            format_args!("service.{heaviest}"),
            format!(
                "env, labels and annotations take {total} bytes in a Deployment, over the {WORKLOAD_LIMIT} byte limit; {heaviest} alone take {size}"
            ),
        );
    }
}

const KEY_RULE: &str = "at most 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit, optionally after a DNS name and '/'";

fn pairs(map: Option<&BTreeMap<String, String>>) -> impl Iterator<Item = (&str, &str)> {
    map.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()))
}

fn path(map: &str, key: &str) -> String {
    format!("service.{map}[{}]", serde_json::Value::from(key))
}
