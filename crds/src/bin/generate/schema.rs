//! The JSON Schema of `service.json`: editors complete from it and flag what they can.
//!
//! Types, fields and descriptions come from [`ServiceSpec`]; what a schema can say of the rules is laid over them here.
//! The rules themselves judge: nothing of ours reads this schema.

use ankka_crds::ServiceSpec;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::crd::flowing;

const PATH: &str = "docs/service.schema.json";

/// Fields in which a file may say `null` for absent.
const NULLABLE: [&str; 5] = ["runtime", "protocol", "objectStorageVersionAgeDays", "value", "secretKeyRef"];

/// Path from the root of the repository, and content.
pub(crate) fn file() -> (String, String) {
    let mut service = SchemaSettings::draft07().into_generator().into_root_schema_for::<ServiceSpec>().to_value();
    let mut definitions = service["definitions"].take();
    for schema in std::iter::once(&mut service).chain(definitions.as_object_mut().into_iter().flat_map(Map::values_mut))
    {
        strict(schema);
    }
    for keyword in ["$schema", "title", "definitions"] {
        service.as_object_mut().and_then(|service| service.remove(keyword));
    }
    definitions["Service"] = service;
    for (definition, field, rules) in overlay() {
        let schema = &mut definitions[definition];
        let schema = if field.is_empty() { schema } else { &mut schema["properties"][field] };
        assert!(schema.is_object(), "the overlay of {definition}.{field} has nothing under it");
        merge(schema, rules);
    }
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Ankka service descriptor",
        "description": "The desired state of one service: `ankka services apply -f service.json`.",
        "type": "object",
        "additionalProperties": false,
        "required": ["name", "service"],
        "properties": {
            "name": {
                "description": "The service's name within its project: lowercase letters, digits and `-`, starting with a letter.",
                "type": "string",
                "pattern": "^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$",
                "examples": ["cart"],
            },
            "service": { "$ref": "#/definitions/Service" },
        },
        "definitions": definitions,
        "examples": [{ "name": "cart", "service": { "image": "registry.example.com/acme/cart:1.4.2" } }],
    });
    let text = serde_json::to_string_pretty(&schema).expect("a value is JSON");
    (PATH.to_owned(), text + "\n")
}

/// No unknown fields, no `null` but where it means absent, and nothing that only Kubernetes reads.
fn strict(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    if schema.contains_key("properties") {
        schema.insert("additionalProperties".to_owned(), false.into());
    }
    describe(schema);
    for (field, value) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let Some(value) = value.as_object_mut() else { continue };
        value.retain(|keyword, _| !keyword.starts_with("x-kubernetes-") && keyword != "format");
        describe(value);
        if NULLABLE.contains(&field.as_str()) {
            continue;
        }
        if let Some([kind, Value::String(null)]) = value.get("type").and_then(Value::as_array).map(Vec::as_slice)
            && null == "null"
        {
            let kind = kind.clone();
            value.insert("type".to_owned(), kind);
        }
        if let Some([reference, _]) = value.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
            let reference = reference.clone();
            value.remove("anyOf");
            value.insert("allOf".to_owned(), json!([reference]));
        }
    }
}

fn describe(schema: &mut Map<String, Value>) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = flowing(description);
    }
}

fn merge(schema: &mut Value, rules: Value) {
    let (Some(schema), Value::Object(rules)) = (schema.as_object_mut(), rules) else { return };
    schema.extend(rules);
}

/// What a schema can say of the rules: definition, field (none for the definition itself), keywords.
fn overlay() -> Vec<(&'static str, &'static str, Value)> {
    let label = "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";
    let key = "^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
    let asked = json!({ "properties": { "provisionObjectStorage": { "const": true } }, "required": ["provisionObjectStorage"] });
    let process = json!({ "properties": { "hosting": { "const": "process" } }, "required": ["hosting"] });
    vec![
        (
            "Service",
            "",
            json!({
                "required": ["image"],
                "allOf": [
                    {
                        "if": process,
                        "then": { "required": ["protocol"], "properties": { "protocol": { "type": "string" } } },
                        "else": { "properties": { "protocol": { "type": "null" } } },
                    },
                    {
                        "if": asked,
                        "else": {
                            "properties": {
                                "exposeObjectStorage": { "const": false },
                                "objectStorageOrigins": { "maxItems": 0 },
                                "objectStorageCredential": { "const": true },
                                "objectStorageVersionAgeDays": { "type": "null" },
                            },
                        },
                    },
                ],
            }),
        ),
        (
            "Service",
            "image",
            json!({ "minLength": 1, "pattern": "^\\S+$", "examples": ["registry.example.com/acme/cart:1.4.2"] }),
        ),
        (
            "Service",
            "runtime",
            json!({ "pattern": "^[0-9]+\\.[0-9]+\\.[0-9]+(-SNAPSHOT|\\+.*)?$", "examples": ["0.2.0"] }),
        ),
        ("Service", "hosting", json!({ "enum": ["embedded", "process"], "default": "embedded" })),
        ("Service", "protocol", json!({ "pattern": "^[0-9]+\\.[0-9]+$", "examples": ["1.0"] })),
        ("Service", "env", json!({ "default": [], "examples": [[{ "name": "LOG_LEVEL", "value": "info" }]] })),
        (
            "Service",
            "labels",
            json!({
                "default": {},
                "propertyNames": { "pattern": key },
                "additionalProperties": { "type": "string", "pattern": label },
                "examples": [{ "team": "checkout" }],
            }),
        ),
        (
            "Service",
            "annotations",
            json!({ "default": {}, "propertyNames": { "pattern": key }, "examples": [{ "example.com/owner": "checkout-team" }] }),
        ),
        ("Service", "http", json!({ "default": true })),
        ("Service", "port", json!({ "minimum": 1, "maximum": 65535, "default": 9000, "examples": [8080] })),
        ("Service", "provisionObjectStorage", json!({ "default": false })),
        ("Service", "exposeObjectStorage", json!({ "default": false })),
        (
            "Service",
            "objectStorageOrigins",
            json!({
                "default": [],
                "items": {
                    "type": "string",
                    "pattern": "^(\\*|https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3}))?)$",
                },
                "examples": [["https://app.example.com"]],
            }),
        ),
        ("Service", "objectStorageCredential", json!({ "default": true })),
        ("Service", "objectStorageVersionAgeDays", json!({ "minimum": 1, "examples": [30] })),
        (
            "EnvEntry",
            "",
            json!({
                "required": ["name"],
                "oneOf": [
                    { "required": ["value"], "properties": { "value": { "type": "string" } } },
                    { "required": ["secretKeyRef"], "properties": { "secretKeyRef": { "type": "object" } } },
                ],
            }),
        ),
        (
            "EnvEntry",
            "name",
            json!({
                "pattern": "^[-._a-zA-Z][-._a-zA-Z0-9]*$",
                "not": { "pattern": "^(ANKKA_HTTP_PORT|ANKKA_CLUSTER_(MODE|SERVICE|POD_SELECTOR|CONTACT_POINTS)|POD_IP|ANKKA_PROCESS_(PORT|ADDRESS)|ANKKA_SIDECAR_(PORT|ADDRESS|BIND))$" },
                "examples": ["LOG_LEVEL"],
            }),
        ),
        ("EnvEntry", "value", json!({ "pattern": "^[^\\u0000]*$" })),
        ("SecretKeyRef", "", json!({ "required": ["name", "key"] })),
        (
            "SecretKeyRef",
            "name",
            json!({
                "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
                "maxLength": 253,
                "not": { "pattern": "-storage$" },
            }),
        ),
        ("SecretKeyRef", "key", json!({ "pattern": "^[-._a-zA-Z0-9]+$", "maxLength": 253 })),
        ("ResourcesSpec", "instanceType", json!({ "enum": ["small", "medium", "large"], "default": "small" })),
        ("Autoscaling", "minInstances", json!({ "minimum": 1, "maximum": i32::MAX, "default": 1, "examples": [3] })),
        ("Autoscaling", "maxInstances", json!({ "minimum": 1, "default": 10 })),
        ("Autoscaling", "targetCpuPercent", json!({ "minimum": 1, "maximum": 100, "default": 80 })),
    ]
}
