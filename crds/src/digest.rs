//! What identifies a descriptor: the digest of its wire form (reference, section A1).

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::{
    ServiceSpec,
    resources::{Autoscaling, ResourcesSpec},
};

#[derive(Serialize)]
struct Wire<'a> {
    name: &'a str,
    service: ServiceSpec,
}

/// Lowercase hex SHA-256 of the descriptor `{"name", "service"}` as compact JSON: fields in the order of [`ServiceSpec`],
/// labels and annotations sorted by key, variables in the declared order, and nothing that says its own default.
pub fn of_descriptor(name: &str, service: &ServiceSpec) -> String {
    let wire = Wire { name, service: without_defaults(service) };
    let json = serde_json::to_vec(&wire).expect("a descriptor always serialises");
    hex(&Sha256::digest(json))
}

/// Lowercase hex of `bytes`.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn without_defaults(service: &ServiceSpec) -> ServiceSpec {
    let mut wire = service.clone();
    forget(&mut wire.hosting, |hosting| hosting == "embedded");
    forget(&mut wire.env, Vec::is_empty);
    forget(&mut wire.labels, std::collections::BTreeMap::is_empty);
    forget(&mut wire.annotations, std::collections::BTreeMap::is_empty);
    forget(&mut wire.http, |http| *http);
    forget(&mut wire.port, |port| *port == 9000);
    forget(&mut wire.provision_object_storage, |asked| !asked);
    forget(&mut wire.expose_object_storage, |asked| !asked);
    forget(&mut wire.object_storage_origins, Vec::is_empty);
    forget(&mut wire.object_storage_credential, |issued| *issued);
    if let Some(resources) = &mut wire.resources {
        forget(&mut resources.instance_type, |size| size == "small");
        if let Some(instances) = &mut resources.autoscaling {
            forget(&mut instances.min_instances, |count| *count == 1);
            forget(&mut instances.max_instances, |count| *count == 10);
            forget(&mut instances.target_cpu_percent, |percent| *percent == 80);
        }
        forget(&mut resources.autoscaling, |instances| *instances == Autoscaling::default());
    }
    forget(&mut wire.resources, |resources| *resources == ResourcesSpec::default());
    wire
}

fn forget<T>(field: &mut Option<T>, is_default: impl FnOnce(&T) -> bool) {
    if field.as_ref().is_some_and(is_default) {
        *field = None;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn digest(service: serde_json::Value) -> String {
        of_descriptor("cart", &from_value(service).expect("it reads"))
    }

    #[test]
    fn it_is_the_sha_256_of_the_compact_wire_form() {
        let expected = Sha256::digest(br#"{"name":"cart","service":{"image":"i:1"}}"#);
        assert_eq!(digest(json!({"image": "i:1"})), hex(&expected));
        assert_eq!(hex(&[0x00, 0xaf]), "00af");
    }

    #[test]
    fn saying_a_default_changes_nothing() {
        let all = json!({
            "image": "i:1", "hosting": "embedded", "env": [], "labels": {}, "annotations": {}, "http": true, "port": 9000,
            "provisionObjectStorage": false, "exposeObjectStorage": false, "objectStorageOrigins": [],
            "objectStorageCredential": true,
            "resources": {"instanceType": "small",
                "autoscaling": {"minInstances": 1, "maxInstances": 10, "targetCpuPercent": 80}},
        });
        assert_eq!(digest(all), digest(json!({"image": "i:1"})));
    }

    #[test]
    fn label_order_does_not_matter_and_variable_order_does() {
        assert_eq!(
            digest(serde_json::from_str(r#"{"image":"i","labels":{"a":"1","b":"2"}}"#).expect("it reads")),
            digest(serde_json::from_str(r#"{"labels":{"b":"2","a":"1"},"image":"i"}"#).expect("it reads")),
        );
        let env = |first: &str, second: &str| {
            digest(json!({"image": "i", "env": [{"name": first, "value": "x"}, {"name": second, "value": "x"}]}))
        };
        assert_ne!(env("A", "B"), env("B", "A"));
        assert_ne!(digest(json!({"image": "i", "port": 9001})), digest(json!({"image": "i"})));
        assert_ne!(digest(json!({"image": "i", "http": false})), digest(json!({"image": "i"})));
    }
}
