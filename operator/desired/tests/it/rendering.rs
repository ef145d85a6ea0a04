//! What is rendered, as recorded in `testdata/`, and what holds whatever is rendered.

use crate::support::{NAMESPACE, UID, World, identity};
use ankka_desired::ChildKind;
use serde_json::{Value, json};

fn corpus() -> Vec<World> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("testdata").map(|entry| entry.expect("a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    assert!(files.len() >= 8);
    let read = |path: &std::path::PathBuf| std::fs::read(path).expect("a readable file");
    files.iter().map(|path| World::new(&serde_json::from_slice(&read(path)).expect("JSON"))).collect()
}

#[test]
fn every_service_renders_as_recorded() {
    insta::with_settings!({ snapshot_path => "../../testdata/rendered", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::glob!("../../testdata", "*.json", |path| {
            let input = serde_json::from_slice(&std::fs::read(path).expect("a readable file")).expect("JSON");
            let documents: Vec<_> = World::new(&input)
                .wanted()
                .iter()
                .map(|child| serde_yaml_ng::to_string(&child.body).expect("YAML"))
                .collect();
            insta::assert_snapshot!(documents.join("---\n"));
        });
    });
}

#[test]
fn building_twice_is_the_same() {
    for world in corpus() {
        assert_eq!(world.wanted(), world.wanted());
    }
}

#[test]
fn every_object_carries_its_owner_and_who_it_belongs_to() {
    for world in corpus() {
        let name = world.service.metadata.name.clone().unwrap_or_default();
        for child in world.wanted() {
            let metadata = &child.body["metadata"];
            for (key, value) in identity(&name) {
                assert_eq!(metadata["labels"][&key], value, "{key} of {:?}", child.kind);
            }
            let owner = json!([{
                "apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaService", "name": name, "uid": UID,
                "controller": true, "blockOwnerDeletion": true,
            }]);
            // The data outlives the service.
            assert_eq!(metadata.get("ownerReferences"), (child.kind != ChildKind::Database).then_some(&owner));
            assert_eq!(metadata["namespace"], NAMESPACE);
            assert_eq!(metadata["name"], child.name.as_str());
            assert_eq!(metadata["annotations"]["ankka.dev/rendered"], child.rendered.as_str());
            assert_eq!(child.body["apiVersion"], child.kind.api_version());
            assert_eq!(child.body["kind"], child.kind.kind());
            assert_eq!(child.kind.service_of(&child.name), Some(name.as_str()));
        }
    }
}

#[test]
fn children_come_in_the_order_of_their_kinds_and_nothing_but_a_route_after_the_deployment() {
    for world in corpus() {
        let kinds: Vec<_> = world.wanted().iter().map(|child| child.kind).collect();
        assert!(kinds.is_sorted(), "{kinds:?}");
        let after = kinds.iter().skip_while(|kind| **kind != ChildKind::Deployment).skip(1);
        assert!(after.eq(world.service.spec.exposed.then_some(&ChildKind::HttpRoute)));
    }
}

#[test]
fn the_longest_name_still_fits_every_label_and_service_name() {
    let name = "a".repeat(63);
    let world = World::new(&json!({ "name": name, "service": { "image": "i:1" } }));
    for child in world.wanted() {
        for value in child.body["metadata"]["labels"].as_object().expect("labels").values() {
            assert!(value.as_str().is_some_and(|value| value.len() <= 63));
        }
        let limit = if child.kind == ChildKind::Service { 63 } else { 253 };
        assert!(child.name.len() <= limit, "{}", child.name);
    }
}

#[test]
fn the_template_is_the_same_for_every_number_of_instances_and_every_generation() {
    let template = |instances: i64, paused: bool, generation: i64| {
        let mut world = World::cart(json!({ "resources": { "autoscaling": { "minInstances": instances } } }));
        world.service.spec.paused = paused;
        world.service.metadata.generation = Some(generation);
        world.template()
    };
    let one = template(1, false, 1);
    for (instances, paused, generation) in [(1, true, 2), (2, false, 3), (3, false, 4), (3, true, 5), (10, false, 99)] {
        assert_eq!(template(instances, paused, generation), one);
    }
}

#[test]
fn scaling_writes_the_deployment_and_what_depends_on_the_number_only() {
    let scaled = |from: i64, to: i64| {
        let world =
            |instances: i64| World::cart(json!({ "resources": { "autoscaling": { "minInstances": instances } } }));
        let mut after = world(to);
        after.children = world(from).settled(1).children;
        after.service.metadata.generation = Some(2);
        crate::support::told(&after.decide().actions)
    };
    assert_eq!(scaled(3, 4), ["update deployment"]);
    assert_eq!(scaled(1, 3), ["update configmap", "create poddisruptionbudget", "update deployment"]);
    assert_eq!(scaled(3, 1), ["update configmap", "delete poddisruptionbudget", "update deployment"]);
}

#[test]
fn a_restart_changes_the_template_and_nothing_else() {
    let mut world = World::cart(json!({})).settled(1);
    let before = world.template();
    world.service.spec.restarts = 1;
    assert_ne!(world.template(), before);
    assert_eq!(crate::support::told(&world.decide().actions), ["update deployment"]);
}

#[test]
fn a_new_generation_alone_writes_nothing() {
    let mut world = World::cart(json!({})).settled(1);
    world.service.metadata.generation = Some(2);
    assert_eq!(world.decide().actions, []);
    assert_eq!(world.body(ChildKind::Deployment)["metadata"]["annotations"]["ankka.dev/generation"], "2");
}

#[test]
fn annotations_that_others_keep_writing_cannot_be_declared() {
    let kept = [
        "deployment.kubernetes.io/revision",
        "deprecated.deployment.rollback.to",
        "ankka.dev/restarts",
        "ankka.dev/database-credential-generation",
    ];
    let mut declared: serde_json::Map<_, _> = kept.map(|key| (key.to_owned(), json!("1"))).into_iter().collect();
    declared.insert("example.com/owner".to_owned(), json!("checkout"));
    let world = World::cart(json!({ "annotations": declared }));
    for kind in [ChildKind::Deployment, ChildKind::Service] {
        let annotations = &world.body(kind)["metadata"]["annotations"];
        assert_eq!(annotations["example.com/owner"], "checkout");
        assert!(kept.iter().all(|key| annotations.get(key).is_none()), "{annotations}");
    }
    let template = &world.body(ChildKind::Deployment)["spec"]["template"];
    assert_eq!(template["metadata"]["annotations"], json!({ "example.com/owner": "checkout" }));
}

#[test]
fn every_dollar_is_doubled_and_nothing_else_is_changed() {
    let world = World::cart(json!({ "env": [
        { "name": "A", "value": "$" }, { "name": "B", "value": "$(POD_IP) $$(X) a$b\n\t${C} 🙂" },
    ] }));
    let env = &world.body(ChildKind::Deployment)["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(env[0]["value"], "$$");
    assert_eq!(env[1]["value"], "$$(POD_IP) $$$$(X) a$$b\n\t$${C} 🙂");
}

#[test]
fn variables_come_in_their_order_and_the_platforms_after_them() {
    let world = World::cart(json!({ "env": [{ "name": "Z", "value": "1" }, { "name": "A", "value": "2" }] }));
    assert_eq!(
        names(&world, 0),
        [
            "Z",
            "A",
            "ANKKA_HTTP_PORT",
            "ANKKA_CLUSTER_MODE",
            "POD_IP",
            "ANKKA_CLUSTER_SERVICE",
            "ANKKA_CLUSTER_POD_SELECTOR",
            "ANKKA_CLUSTER_CONTACT_POINTS",
            "ANKKA_DB_HOST",
            "ANKKA_DB_PORT",
            "ANKKA_DB_NAME",
            "ANKKA_DB_USER",
            "ANKKA_DB_PASSWORD",
        ]
    );
}

#[test]
fn a_process_and_its_sidecar_share_the_variables_by_name() {
    let world = World::cart(json!({ "hosting": "process", "protocol": "1.0", "env": [
        { "name": "MINE", "value": "1" }, { "name": "ANTHROPIC_X", "value": "2" }, { "name": "ANKKA_MODEL_X", "value": "3" },
        { "name": "ANKKA_DB_HOST", "value": "4" }, { "name": "ANKKA_S3_X", "value": "5" }, { "name": "ANKKA_MODELX", "value": "6" },
    ] }));
    assert_eq!(
        names(&world, 0),
        [
            "ANTHROPIC_X",
            "ANKKA_MODEL_X",
            "ANKKA_DB_HOST",
            "ANKKA_HTTP_PORT",
            "ANKKA_CLUSTER_MODE",
            "POD_IP",
            "ANKKA_CLUSTER_SERVICE",
            "ANKKA_CLUSTER_POD_SELECTOR",
            "ANKKA_CLUSTER_CONTACT_POINTS",
            "ANKKA_PROCESS_ADDRESS",
            "ANKKA_SIDECAR_PORT",
            "ANKKA_SIDECAR_BIND",
        ]
    );
    assert_eq!(names(&world, 1), ["MINE", "ANKKA_S3_X", "ANKKA_MODELX", "ANKKA_PROCESS_PORT", "ANKKA_SIDECAR_ADDRESS"]);
}

fn names(world: &World, container: usize) -> Vec<String> {
    let env = world.body(ChildKind::Deployment)["spec"]["template"]["spec"]["containers"][container]["env"].clone();
    let name = |variable: &Value| variable["name"].as_str().expect("a name").to_owned();
    env.as_array().expect("variables").iter().map(name).collect()
}

#[test]
fn every_field_of_the_descriptor_changes_something() {
    let process = json!({ "hosting": "process", "protocol": "1.0" });
    let changes = [
        (json!({}), json!({ "image": "i:2" })),
        (json!({}), process.clone()),
        (json!({}), json!({ "env": [{ "name": "A", "value": "1" }] })),
        (json!({ "env": [{ "name": "A", "value": "1" }] }), json!({ "env": [{ "name": "B", "value": "1" }] })),
        (json!({ "env": [{ "name": "A", "value": "1" }] }), json!({ "env": [{ "name": "A", "value": "2" }] })),
        (
            json!({ "env": [{ "name": "A", "secretKeyRef": { "name": "s", "key": "k" } }] }),
            json!({ "env": [{ "name": "A", "secretKeyRef": { "name": "t", "key": "k" } }] }),
        ),
        (
            json!({ "env": [{ "name": "A", "secretKeyRef": { "name": "s", "key": "k" } }] }),
            json!({ "env": [{ "name": "A", "secretKeyRef": { "name": "s", "key": "l" } }] }),
        ),
        (json!({}), json!({ "labels": { "team": "a" } })),
        (json!({}), json!({ "annotations": { "team": "a" } })),
        (json!({}), json!({ "http": false })),
        (json!({}), json!({ "port": 8080 })),
        (json!({}), json!({ "resources": { "instanceType": "large" } })),
        (json!({}), json!({ "resources": { "autoscaling": { "minInstances": 2 } } })),
    ];
    for (before, after) in changes {
        assert_ne!(World::cart(before.clone()).wanted(), World::cart(after.clone()).wanted(), "{before} {after}");
    }
    // Declared to be compared or stored, and acted on by nobody.
    let without_effect = [
        (json!({}), json!({ "runtime": "0.1.9" })),
        (json!({}), json!({ "resources": { "autoscaling": { "maxInstances": 20 } } })),
        (json!({}), json!({ "resources": { "autoscaling": { "targetCpuPercent": 1 } } })),
        (json!({}), json!({ "port": 9000, "http": true, "hosting": "embedded", "env": [], "resources": {} })),
        (json!({ "http": false }), json!({ "http": false, "port": 1 })),
    ];
    for (before, after) in without_effect {
        assert_eq!(World::cart(before.clone()).wanted(), World::cart(after.clone()).wanted(), "{before} {after}");
    }
}
