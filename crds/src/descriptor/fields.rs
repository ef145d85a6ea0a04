//! The fields a descriptor knows, and what to say about one it does not.

use crate::rules::grammar;

/// Fields by the path of their object.
pub(super) const FIELDS: [(&str, &[&str]); 6] = [
    ("", &["name", "service"]),
    (
        "service",
        &[
            "image",
            "runtime",
            "hosting",
            "protocol",
            "env",
            "labels",
            "annotations",
            "http",
            "port",
            "resources",
            "provisionObjectStorage",
            "exposeObjectStorage",
            "objectStorageOrigins",
            "objectStorageCredential",
            "objectStorageVersionAgeDays",
        ],
    ),
    ("service.env[]", &["name", "value", "secretKeyRef"]),
    ("service.env[].secretKeyRef", &["name", "key"]),
    ("service.resources", &["instanceType", "autoscaling"]),
    ("service.resources.autoscaling", &["minInstances", "maxInstances", "targetCpuPercent"]),
];

/// The sentence about an unknown field of the object at `path`: what it may be a slip of, where it belongs, or what there is.
pub(super) fn unknown(path: &str, field: &str) -> String {
    let object = without_indexes(path);
    let siblings = FIELDS.iter().find(|(at, _)| *at == object).map_or(&[][..], |(_, fields)| fields);
    let shown = grammar::shown(field);
    let nearest = siblings.iter().map(|known| (distance(field, known), known)).min();
    if let Some((distance, known)) = nearest
        && distance <= known.len().div_ceil(4)
    {
        return format!("unknown field '{shown}'; did you mean '{known}'?");
    }
    if let Some((home, _)) = FIELDS.iter().find(|(_, fields)| field != "name" && fields.contains(&field)) {
        let place = if home.is_empty() { "the top level" } else { home };
        return format!("unknown field '{shown}' here; it belongs in {place}");
    }
    format!("unknown field '{shown}'; the fields here are {}", siblings.join(", "))
}

/// Edits between two names, whatever their case.
fn distance(written: &str, known: &str) -> usize {
    if written.len() > 2 * known.len() {
        return usize::MAX;
    }
    strsim::osa_distance(&written.to_lowercase(), &known.to_lowercase())
}

/// `service.env[3].x` as `service.env[].x`.
fn without_indexes(path: &str) -> String {
    let mut inside = false;
    path.chars()
        .filter(|character| {
            let keep = !inside || *character == ']';
            inside = *character == '[' || inside && *character != ']';
            keep
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::unknown;

    #[test]
    fn an_unknown_field_is_met_with_the_nearest_help() {
        assert_eq!(
            unknown("service", "provisionObjectStorge"),
            "unknown field 'provisionObjectStorge'; did you mean 'provisionObjectStorage'?"
        );
        assert_eq!(unknown("service", "Image"), "unknown field 'Image'; did you mean 'image'?");
        assert_eq!(unknown("", "instanceType"), "unknown field 'instanceType' here; it belongs in service.resources");
        assert_eq!(
            unknown("service.resources.autoscaling", "minReplicas"),
            "unknown field 'minReplicas'; the fields here are minInstances, maxInstances, targetCpuPercent"
        );
        assert_eq!(unknown("service.env[17].secretKeyRef", "Key"), "unknown field 'Key'; did you mean 'key'?");
    }
}
