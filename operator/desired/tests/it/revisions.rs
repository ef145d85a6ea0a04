//! Which descriptors are kept, and which go.

use ankka_crds::digest;
use ankka_desired::revisions::{Recording, RevisionSeen, renewed};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::support::{UID, World};

/// What is kept of `cart`'s present descriptor, as it is first written.
fn first(world: &World) -> (String, Value) {
    match world.decide().recordings.into_iter().next() {
        Some(Recording::Create { name, body }) => (name, body),
        other => panic!("{other:?}"),
    }
}

fn kept(name: &str, generation: i64, size: u64) -> RevisionSeen {
    let (uid, owner) = (format!("uid-of-{name}"), Some(UID.to_owned()));
    RevisionSeen { name: name.to_owned(), uid, owner, generation, size, terminating: false }
}

/// What is seen of a body once it is stored.
fn stored(body: &Value) -> RevisionSeen {
    let mut metadata: ObjectMeta = serde_json::from_value(body["metadata"].clone()).expect("metadata");
    metadata.uid = Some("uid-of-the-present".to_owned());
    RevisionSeen::of(&metadata)
}

fn dropped(world: &World) -> Vec<String> {
    let recordings = world.decide().recordings.into_iter();
    recordings.filter_map(|done| if let Recording::Delete { name, .. } = done { Some(name) } else { None }).collect()
}

#[test]
fn a_descriptor_is_kept_as_it_was_applied_under_its_digest() {
    let mut world = World::cart(json!({ "labels": { "team": "a" }, "port": 9000 }));
    world.service.metadata.generation = Some(7);
    let (name, body) = first(&world);
    let digest = digest::of_descriptor("cart", &world.service.spec.service);
    assert_eq!(name, format!("ankka-cart-{}", &digest[..12]));
    let descriptor = json!({ "name": "cart", "service": { "image": "registry.example.com/acme/cart:1", "labels": { "team": "a" }, "port": 9000 } });
    assert_eq!(
        body,
        json!({
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": name,
                "namespace": "ankka-shop",
                "labels": {
                    "app.kubernetes.io/managed-by": "ankka", "app.kubernetes.io/name": "cart",
                    "ankka.dev/project": "shop", "ankka.dev/service": "cart",
                },
                "annotations": { "ankka.dev/generation": "7", "ankka.dev/size": descriptor.to_string().len().to_string() },
                "ownerReferences": [{
                    "apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaService", "name": "cart", "uid": UID,
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "revision": 7,
            "data": descriptor,
        })
    );
}

#[test]
fn what_is_kept_is_not_written_again() {
    let mut world = World::cart(json!({})).settled(1);
    let present = stored(&first(&world).1);
    assert_eq!((present.generation, present.owner.as_deref()), (1, Some(UID)));
    world.revisions = vec![kept("ankka-cart-aaaaaaaaaaaa", 0, 10), present];
    world.service.metadata.generation = Some(9);
    world.service.spec.paused = true;
    assert_eq!(world.decide().recordings, [], "a pause is a generation, not a descriptor");
}

#[test]
fn a_descriptor_of_before_that_is_applied_again_becomes_the_newest() {
    let mut world = World::cart(json!({})).settled(1);
    let (name, body) = first(&world);
    world.revisions = vec![stored(&body), kept("ankka-cart-aaaaaaaaaaaa", 2, 10)];
    world.service.metadata.generation = Some(3);
    let uid = "uid-of-the-present".to_owned();
    assert_eq!(world.decide().recordings, [Recording::Renew { name, uid, generation: 3 }]);

    let mut live = body.clone();
    live["metadata"]["managedFields"] = json!([{ "manager": "ankka-operator" }]);
    live["metadata"]["annotations"]["other.io/note"] = json!("x");
    let now = renewed(&live, 3);
    assert_eq!((&now["revision"], &now["data"]), (&json!(3), &body["data"]));
    assert_eq!(now["metadata"].get("managedFields"), None);
    assert_eq!(now["metadata"]["annotations"]["other.io/note"], "x");
    world.revisions[0] = stored(&now);
    assert_eq!(world.decide().recordings, []);
}

#[test]
fn fifty_are_kept_and_the_oldest_go_first() {
    let mut world = World::cart(json!({}));
    let names: Vec<_> = (0..51).map(|number| format!("ankka-cart-{number:012x}")).collect();
    world.revisions = names.iter().zip(1..).map(|(name, generation)| kept(name, generation, 10)).collect();
    world.revisions.reverse();
    world.service.metadata.generation = Some(52);
    assert!(matches!(world.decide().recordings[0], Recording::Create { .. }), "what is new is kept first");
    assert_eq!(dropped(&world), [names[1].clone(), names[0].clone()]);
    world.revisions.retain(|seen| seen.generation > 2);
    assert_eq!(dropped(&world), [] as [&str; 0]);
}

#[test]
fn a_mebibyte_is_kept_and_the_present_one_whatever_its_size() {
    let third = 350_000;
    let mut world = World::cart(json!({}));
    world.revisions = (1..=3).map(|number| kept(&format!("ankka-cart-{number:012x}"), number, third)).collect();
    assert_eq!(dropped(&world), ["ankka-cart-000000000001"]);
    let mut present = stored(&first(&world).1);
    present.generation = 4;
    present.size = 2 * 1024 * 1024;
    world.revisions.push(present);
    assert_eq!(dropped(&world).len(), 3);
    assert_eq!(world.decide().recordings.len(), 3);
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let mut world = World::cart(json!({})).settled(1);
    let present = stored(&first(&world).1);
    for (owner, terminating) in [(None, false), (Some("another"), false), (Some(UID), true)] {
        let taken = RevisionSeen { owner: owner.map(str::to_owned), terminating, ..present.clone() };
        let others = (1..=60).map(|number| kept(&format!("ankka-cart-{number:012x}"), number, 10));
        let foreign = others.map(|seen| RevisionSeen { owner: Some("another".to_owned()), ..seen });
        world.revisions = foreign.chain([taken]).collect();
        assert_eq!(world.decide().recordings, [], "{owner:?} {terminating}");
    }
}

#[test]
fn only_a_descriptor_that_breaks_no_rule_is_kept() {
    let mut broken = World::cart(json!({}));
    broken.service.spec.service.port = Some(0);
    assert_eq!(broken.decide().recordings, []);
    let mut elsewhere = World::cart(json!({}));
    elsewhere.project = None;
    assert_eq!(elsewhere.decide().recordings, []);
    let mut held = World::cart(json!({ "hosting": "process", "protocol": "1.0" }));
    held.settings.sidecar_image = None;
    assert_eq!(held.decide().recordings.len(), 1, "it is the installation that lacks something");
}
