//! Outputs for programs, held against the schemas in the documentation.

use std::path::Path;

use serde_json::Value;

/// Checks that a document is what `docs/reference/cli-schemas/<name>.json` promises.
pub(crate) fn assert_schema(name: &str, document: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/cli-schemas").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()));
    let schema: Value = serde_json::from_str(&text).expect("a schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema is valid");
    let faults: Vec<_> =
        validator.iter_errors(document).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{name}: {faults:?} in {document}");
}
