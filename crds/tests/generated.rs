//! The generated files: current, and as the API server, kubectl and editors need them.

use std::path::Path;
use std::process::Command;

use ankka_crds::corpus::{self, Layer};
use ankka_crds::{AnkkaService, Context, ServiceSpec, descriptor, settings};
use serde_json::Value;

/// `kubectl apply` copies the whole object into an annotation, which may have this many bytes.
const ANNOTATION_LIMIT: usize = 262_144;

#[test]
fn the_committed_files_are_current() {
    let output = Command::new(env!("CARGO_BIN_EXE_generate")).arg("--check").output().expect("the generator runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_the_charts_own_file_says_of_variables_is_so() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../helm/ankka/values.yaml");
    let values = std::fs::read_to_string(path).expect("the chart's values");
    let listed = values
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("#   "))
        .filter(|line| line.starts_with("ANKKA_"));
    let all: Vec<_> = [settings::OPERATOR, settings::DATABASE, settings::WEBHOOK].concat();
    let mut compared = 0;
    for line in listed {
        let mut words = line.split_whitespace();
        let (variable, default) = (words.next().expect("a variable"), words.next().expect("a default"));
        let known = all
            .iter()
            .find(|setting| setting.variable == variable)
            .unwrap_or_else(|| panic!("{variable} is no setting"));
        // Without it the log has a level of its own.
        assert!(known.default == default || variable == "ANKKA_LOG", "{line}");
        compared += 1;
    }
    assert!(compared > 15, "{compared}");
}

#[test]
fn the_generator_refuses_what_it_does_not_know() {
    let output = Command::new(env!("CARGO_BIN_EXE_generate")).arg("--chek").output().expect("the generator runs");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_schema_of_a_resource_says_types_and_no_bounds() {
    for (name, text, definition) in definitions() {
        assert!(text.len() < ANNOTATION_LIMIT, "{name} is {} bytes", text.len());
        assert_eq!(definition["spec"]["group"], "ankka.dev");
        assert_eq!(definition["spec"]["names"]["categories"][0], "ankka");
        let version = &definition["spec"]["versions"][0];
        assert_eq!(version["subresources"]["status"], serde_json::json!({}), "{name}");
        let schema = &version["schema"]["openAPIV3Schema"];
        structural(&name, schema, &["spec"]);
        let service = name == "ankkaservices.yaml";
        assert!(!service || says_nothing_of(&schema["properties"]["spec"], "required"), "{name}");
    }
}

/// One type, a description, nothing that refuses a value of that type, and no union with null.
fn structural(at: &str, schema: &Value, required: &[&str]) {
    let keywords = schema.as_object().unwrap_or_else(|| panic!("{at} is no schema"));
    let kind = schema["type"].as_str().unwrap_or_else(|| panic!("{at} has no single type"));
    for (keyword, value) in keywords {
        let known = match keyword.as_str() {
            "type" | "description" | "properties" | "items" | "additionalProperties" => true,
            "title" => required == ["spec"],
            "format" => kind == "integer" && value == "int64",
            "required" => {
                required == ["spec"] && value == &serde_json::json!(["spec"])
                    || at.contains(".status.")
                    || at.contains("administrators")
            }
            // Nobody has looked at an object until a controller says otherwise.
            "default" => at.ends_with(".yaml.status") && value == &serde_json::json!({ "observedGeneration": -1 }),
            "x-kubernetes-list-type" => kind == "array",
            "x-kubernetes-map-type" => kind == "object" && value == "atomic",
            "x-kubernetes-list-map-keys" => schema["x-kubernetes-list-type"] == "map",
            _ => false,
        };
        assert!(known, "{at} has {keyword}: {value}");
    }
    assert_eq!(kind == "integer", keywords.contains_key("format"), "{at}");
    assert_eq!(kind == "array", keywords.contains_key("x-kubernetes-list-type"), "{at}");
    for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
        let at = format!("{at}.{field}");
        assert!(schema["description"].as_str().is_some_and(|text| !text.contains('\n')), "{at} is not described");
        structural(&at, schema, &[]);
    }
    for inner in ["items", "additionalProperties"] {
        if schema.get(inner).is_some() {
            structural(&format!("{at}.{inner}"), &schema[inner], &[]);
        }
    }
}

fn says_nothing_of(schema: &Value, keyword: &str) -> bool {
    match schema {
        Value::Object(map) => map.iter().all(|(key, value)| key != keyword && says_nothing_of(value, keyword)),
        Value::Array(list) => list.iter().all(|value| says_nothing_of(value, keyword)),
        _ => true,
    }
}

#[test]
fn the_descriptor_and_its_lists_and_maps_are_atomic() {
    let (_, _, definition) =
        definitions().into_iter().find(|(name, ..)| name == "ankkaservices.yaml").expect("there is one");
    let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    assert_eq!(spec["service"]["x-kubernetes-map-type"], "atomic");
    for field in ["env", "objectStorageOrigins"] {
        assert_eq!(spec["service"]["properties"][field]["x-kubernetes-list-type"], "atomic");
    }
    for field in ["labels", "annotations"] {
        assert_eq!(spec["service"]["properties"][field]["x-kubernetes-map-type"], "atomic");
    }
}

#[test]
fn an_absent_field_is_not_written() {
    let service = AnkkaService::new("cart", ankka_crds::AnkkaServiceSpec::default());
    let written = serde_json::to_value(&service).expect("a resource is JSON");
    assert_eq!(written["spec"], serde_json::json!({ "service": {} }));
    let status = serde_json::to_value(ankka_crds::AnkkaServiceStatus::default()).expect("a status is JSON");
    assert!(status.as_object().expect("an object").values().all(|value| !value.is_null()), "{status}");
}

#[test]
fn an_explicit_null_means_absent_in_a_resource() {
    let (_, document) = corpus::cases_for(Layer::Api)
        .into_iter()
        .find(|case| case.name == "valid/null-everything")
        .map(|case| case.resource())
        .expect("the case is there");
    let service: ServiceSpec = serde_json::from_value(document.clone()).expect("nulls are read");
    assert_eq!(service, ServiceSpec { image: service.image.clone(), ..ServiceSpec::default() });
}

#[test]
fn editors_accept_every_valid_descriptor() {
    let schema = editor_schema();
    for case in corpus::cases_for(Layer::File).iter().filter(|case| case.problems.is_empty()) {
        let document = document(case);
        let problems: Vec<String> = schema.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{}: {problems:?}", case.name);
    }
}

#[test]
fn editors_flag_every_invalid_descriptor_but_those_no_schema_can() {
    let schema = editor_schema();
    let accepted: Vec<String> = corpus::cases_for(Layer::File)
        .iter()
        .filter(|case| !case.problems.is_empty() && serde_json::from_slice::<Value>(&case.text).is_ok())
        .filter(|case| schema.is_valid(&document(case)))
        .map(|case| case.name.clone())
        .collect();
    assert_eq!(
        accepted,
        [
            "invalid/annotations-too-large",
            "invalid/default-max-below-min",
            "invalid/env-declared-twice",
            "invalid/garage-bucket-alias",
            "invalid/garage-bucket-punycode",
            "invalid/garage-bucket-too-long",
            "invalid/garage-needs-credential",
            "invalid/gcs-without-provider",
            "invalid/labels-too-large",
            "invalid/max-below-min",
            "invalid/port-management",
            "invalid/port-process",
            "invalid/port-remoting",
            "invalid/port-sidecar",
            "invalid/repeated-among-many",
            "invalid/repeated-escaped",
            "invalid/repeated-image",
            "invalid/repeated-label",
            "invalid/storage-asked-and-supplied",
        ]
    );
}

#[test]
fn a_file_may_have_the_fields_of_the_types_and_no_others() {
    let schema: Value = serde_json::from_str(include_str!("../../docs/service.schema.json")).expect("it is JSON");
    let objects = [
        ("Service", r#"{"service":{"zzzzzzzzzzzz":0}}"#),
        ("EnvEntry", r#"{"service":{"env":[{"zzzzzzzzzzzz":0}]}}"#),
        ("SecretKeyRef", r#"{"service":{"env":[{"secretKeyRef":{"zzzzzzzzzzzz":0}}]}}"#),
        ("ResourcesSpec", r#"{"service":{"resources":{"zzzzzzzzzzzz":0}}}"#),
        ("Autoscaling", r#"{"service":{"resources":{"autoscaling":{"zzzzzzzzzzzz":0}}}}"#),
    ];
    assert_eq!(schema["definitions"].as_object().map(serde_json::Map::len), Some(objects.len()));
    for (definition, text) in objects {
        let known = schema["definitions"][definition]["properties"].as_object().expect("it has fields");
        let problems = descriptor::read(text.as_bytes(), Context::default()).expect_err("the field is unknown");
        let (_, listed) =
            problems[0].problem.message.split_once("the fields here are ").expect("the fields are listed");
        let mut listed: Vec<&str> = listed.split(", ").collect();
        listed.sort_unstable();
        assert_eq!(listed, known.keys().collect::<Vec<_>>(), "{definition}");
        for field in known.keys() {
            let text = text.replace("zzzzzzzzzzzz", field);
            for located in descriptor::read(text.as_bytes(), Context::default()).expect_err("more is missing") {
                assert!(!located.problem.message.starts_with("unknown field"), "{definition}: {:?}", located.problem);
            }
        }
    }
}

fn editor_schema() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(include_str!("../../docs/service.schema.json")).expect("it is JSON");
    jsonschema::meta::validate(&schema).expect("it is a schema");
    jsonschema::validator_for(&schema).expect("it is a schema")
}

fn document(case: &corpus::Case) -> Value {
    serde_json::from_slice(case.text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&case.text)).expect("the case is JSON")
}

fn definitions() -> Vec<(String, String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../helm/ankka/files/crds");
    ["ankkaprojects", "ankkaservices", "ankkabuckets", "ankkadatabases"]
        .map(|plural| {
            let name = format!("{plural}.yaml");
            let text = std::fs::read_to_string(folder.join(&name)).expect("the definition is committed");
            let definition = serde_yaml_ng::from_str(&text).expect("it is YAML");
            (name, text, definition)
        })
        .into()
}
