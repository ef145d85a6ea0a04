//! What holds for every valid service.

use ankka_desired::ChildKind;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::model::Api;
use crate::support::{World, identity, told};

fn services() -> impl Strategy<Value = Value> {
    let env = prop::collection::btree_map("[A-Z][A-Z_]{0,8}", "\\PC{0,12}", 0..5);
    let strings = || prop::collection::btree_map("[a-z]{1,8}(/[a-z]{1,8})?", "[a-z0-9]{0,8}", 0..4);
    let size = prop::sample::select(vec!["small", "medium", "large"]);
    (
        "[a-z][a-z0-9]{0,62}",
        env,
        strings(),
        strings(),
        any::<bool>(),
        1..7000_u16,
        1..10_i64,
        size,
        any::<bool>(),
        (any::<bool>(), any::<bool>()),
    )
        .prop_map(|(name, env, labels, annotations, http, port, instances, size, process, (paused, exposed))| {
            let env: Vec<_> = env.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
            let mut service = json!({
                "image": "registry.example.com/acme/x:1", "env": env, "labels": labels, "annotations": annotations,
                "http": http, "port": port,
                "resources": { "instanceType": size, "autoscaling": { "minInstances": instances } },
            });
            if process {
                service["hosting"] = json!("process");
                service["protocol"] = json!("1.0");
            }
            json!({ "name": name, "paused": paused, "exposed": exposed, "service": service })
        })
        .prop_filter("a service that breaks no rule", |input| !World::new(input).decide().actions.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_service_settles_after_one_pass_whatever_was_there_before(before in services(), after in services()) {
        let mut before = World::new(&before);
        let mut after = World::new(&after);
        before.service.metadata.name.clone_from(&after.service.metadata.name);
        let mut api = Api::default();
        for world in [&mut before, &mut after] {
            world.children = api.seen();
            for action in world.decide().actions {
                api.act(&action).expect("an action on what was just observed");
            }
        }
        after.children = api.seen();
        prop_assert_eq!(told(&after.decide().actions), [] as [&str; 0]);
        // What was there before leaves no trace.
        let mut fresh = Api::default();
        after.children.clear();
        for action in after.decide().actions {
            fresh.act(&action).expect("creating");
        }
        prop_assert_eq!(api.state(), fresh.state());
    }

    #[test]
    fn every_object_is_identified_and_selected_whatever_the_descriptor_says(input in services()) {
        let world = World::new(&input);
        let identity = identity(input["name"].as_str().expect("a name"));
        let children = world.wanted();
        prop_assert_eq!(&children, &world.wanted());
        for child in &children {
            for (key, value) in &identity {
                prop_assert_eq!(&child.body["metadata"]["labels"][key], value);
            }
            let owner = &child.body["metadata"]["ownerReferences"][0];
            prop_assert_eq!(owner["controller"] == true, child.kind.is_owned());
        }
        let deployment = world.body(ChildKind::Deployment);
        let selector = &deployment["spec"]["selector"]["matchLabels"];
        prop_assert_eq!(selector, &serde_json::to_value(&identity).expect("labels"));
        let labels = deployment["spec"]["template"]["metadata"]["labels"].clone();
        for (key, value) in &identity {
            prop_assert_eq!(&labels[key], value);
        }
    }
}
