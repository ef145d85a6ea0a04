//! From the tree to a name and a [`ServiceSpec`], field by field.

use std::collections::BTreeMap;

use jsonc_parser::ast::Value;

use super::path::Path;
use super::shape::Shape;
use crate::ServiceSpec;
use crate::resources::{Autoscaling, EnvEntry, ResourcesSpec, SecretKeyRef};

/// What of a descriptor could be read.
#[derive(Default)]
pub(super) struct Document {
    pub(super) name: Option<String>,
    pub(super) service: ServiceSpec,
    /// Whether there is a `service` at all.
    pub(super) has_service: bool,
}

/// Reads the whole document; none when it is no object.
pub(super) fn document(shape: &mut Shape, root: &Value<'_>) -> Option<Document> {
    let mut document = Document::default();
    shape.object(&Path::Root, root, |shape, at, field, value| {
        match field {
            "name" => document.name = shape.string(at, value),
            "service" => {
                document.has_service = true;
                document.service = service(shape, at, value);
            }
            _ => return false,
        }
        true
    })?;
    Some(document)
}

fn service(shape: &mut Shape, path: &Path<'_>, value: &Value<'_>) -> ServiceSpec {
    let mut spec = ServiceSpec::default();
    shape.object(path, value, |shape, at, field, value| {
        match field {
            "image" => spec.image = shape.string(at, value),
            "runtime" => spec.runtime = shape.nullable(at, value, Shape::string),
            "hosting" => spec.hosting = shape.string(at, value),
            "protocol" => spec.protocol = shape.nullable(at, value, Shape::string),
            "env" => spec.env = shape.array(at, value, env_entry),
            "labels" => spec.labels = strings(shape, at, value),
            "annotations" => spec.annotations = strings(shape, at, value),
            "http" => spec.http = shape.boolean(at, value),
            "port" => spec.port = shape.integer(at, value),
            "resources" => spec.resources = resources(shape, at, value),
            "provisionObjectStorage" => spec.provision_object_storage = shape.boolean(at, value),
            "exposeObjectStorage" => spec.expose_object_storage = shape.boolean(at, value),
            "objectStorageOrigins" => spec.object_storage_origins = origins(shape, at, value),
            "objectStorageCredential" => spec.object_storage_credential = shape.boolean(at, value),
            "objectStorageVersionAgeDays" => {
                spec.object_storage_version_age_days = shape.nullable(at, value, Shape::integer);
            }
            _ => return false,
        }
        true
    });
    spec
}

fn env_entry(shape: &mut Shape, path: &Path<'_>, value: &Value<'_>) -> EnvEntry {
    let mut entry = EnvEntry::default();
    shape.object(path, value, |shape, at, field, value| {
        match field {
            "name" => entry.name = shape.string(at, value),
            "value" => entry.value = shape.nullable(at, value, Shape::string),
            "secretKeyRef" => entry.secret_key_ref = shape.nullable(at, value, secret_key_ref),
            _ => return false,
        }
        true
    });
    entry
}

fn secret_key_ref(shape: &mut Shape, path: &Path<'_>, value: &Value<'_>) -> Option<SecretKeyRef> {
    let mut reference = SecretKeyRef::default();
    shape.object(path, value, |shape, at, field, value| {
        match field {
            "name" => reference.name = shape.string(at, value),
            "key" => reference.key = shape.string(at, value),
            _ => return false,
        }
        true
    })?;
    Some(reference)
}

fn resources(shape: &mut Shape, path: &Path<'_>, value: &Value<'_>) -> Option<ResourcesSpec> {
    let mut resources = ResourcesSpec::default();
    shape.object(path, value, |shape, at, field, value| {
        match field {
            "instanceType" => resources.instance_type = shape.string(at, value),
            "autoscaling" => resources.autoscaling = autoscaling(shape, at, value),
            _ => return false,
        }
        true
    })?;
    Some(resources)
}

fn autoscaling(shape: &mut Shape, path: &Path<'_>, value: &Value<'_>) -> Option<Autoscaling> {
    let mut scaling = Autoscaling::default();
    shape.object(path, value, |shape, at, field, value| {
        match field {
            "minInstances" => scaling.min_instances = shape.integer(at, value),
            "maxInstances" => scaling.max_instances = shape.integer(at, value),
            "targetCpuPercent" => scaling.target_cpu_percent = shape.integer(at, value),
            _ => return false,
        }
        true
    })?;
    Some(scaling)
}

fn strings(shape: &mut Shape, path: &Path<'_>, value: &Value<'_>) -> Option<BTreeMap<String, String>> {
    let mut strings = BTreeMap::new();
    shape.map(path, value, |shape, at, key, value| {
        if let Some(value) = shape.string(at, value) {
            strings.insert(key.to_owned(), value);
        }
    })?;
    Some(strings)
}

/// An origin of the wrong type leaves an empty one, about which no rule speaks, so that the others keep their places.
fn origins(shape: &mut Shape, path: &Path<'_>, value: &Value<'_>) -> Option<Vec<String>> {
    shape.array(path, value, |shape, at, value| shape.string(at, value).unwrap_or_default())
}
