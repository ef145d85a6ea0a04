//! Metadata as a real API server (Kubernetes 1.36.3) recorded it: of children as they were created, and of the same after
//! others had changed them.

use ankka_desired::Seen;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;

use crate::support::World;

#[derive(Deserialize)]
struct Recorded {
    /// The file in `testdata` it was rendered from.
    service: String,
    /// What was done to it.
    change: String,
    kind: String,
    /// Whether that leaves it as it should be.
    settled: bool,
    metadata: ObjectMeta,
}

#[test]
fn what_a_real_server_records_is_read_rightly() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata");
    let read = |name: &str| std::fs::read(format!("{folder}/{name}")).expect("a readable file");
    let recorded: Vec<Recorded> = serde_json::from_slice(&read("recorded/metadata.json")).expect("JSON");
    assert!(recorded.len() >= 40);
    for case in recorded {
        let input = serde_json::from_slice(&read(&format!("{}.json", case.service))).expect("JSON");
        let world = World::new(&input);
        let mut child = world.wanted().into_iter().find(|child| child.kind.kind() == case.kind).expect("a child");
        without_database(&mut child.body);
        let mut seen = Seen::of(&case.metadata);
        // Only the record matters here: digests change with what is rendered.
        child.rendered.clear();
        seen.rendered = Some(String::new());
        assert_eq!(seen.settled(&child), case.settled, "{} after: {}", case.kind, case.change);
    }
}

/// When they were recorded, services had no database yet.
fn without_database(body: &mut Value) {
    let containers = body.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        let env = container["env"].as_array_mut().expect("an environment");
        env.retain(|variable| !variable["name"].as_str().is_some_and(|name| name.starts_with("ANKKA_DB_")));
    }
}
