//! The body of a PUT: what of the stored object is kept, and what is not.

use ankka_desired::{ChildKind, merged, scaled};
use serde_json::{Value, json};

use crate::support::World;

/// The child as stored, with what the server and others have added.
fn live(world: &World, kind: ChildKind) -> Value {
    let mut live = world.body(kind);
    let metadata = &mut live["metadata"];
    metadata["uid"] = json!("u");
    metadata["resourceVersion"] = json!("7");
    metadata["finalizers"] = json!(["other.io/hold"]);
    metadata["managedFields"] =
        json!([{ "manager": "ankka-operator", "fieldsV1": { "f:metadata": { "f:labels": { "f:old": {} } } } }]);
    metadata["labels"]["old"] = json!("ours");
    metadata["labels"]["theirs"] = json!("1");
    let theirs = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "theirs" });
    if let Some(owners) = metadata["ownerReferences"].as_array_mut() {
        owners.insert(0, theirs);
    }
    live["status"] = json!({ "x": 1 });
    live
}

#[test]
fn identity_finalizers_and_others_owners_and_labels_are_kept() {
    let world = World::cart(json!({}));
    for child in world.wanted() {
        let live = live(&world, child.kind);
        let body = merged(&live, &child);
        let metadata = &body["metadata"];
        assert_eq!((&metadata["uid"], &metadata["resourceVersion"]), (&json!("u"), &json!("7")));
        assert_eq!(metadata["finalizers"], json!(["other.io/hold"]));
        assert_eq!(metadata["ownerReferences"], live["metadata"]["ownerReferences"]);
        assert_eq!((&metadata["labels"]["theirs"], metadata["labels"].get("old")), (&json!("1"), None));
        assert_eq!((body.get("status"), metadata.get("managedFields")), (None, None));
        assert_eq!((&body["apiVersion"], &body["kind"]), (&child.body["apiVersion"], &child.body["kind"]));
    }
}

#[test]
fn merging_twice_changes_nothing_more() {
    let world = World::cart(json!({ "labels": { "team": "a" } }));
    for child in world.wanted() {
        let once = merged(&live(&world, child.kind), &child);
        assert_eq!(merged(&once, &child), once);
    }
}

#[test]
fn a_services_addresses_stay_and_everything_else_under_its_spec_is_ours() {
    let world = World::cart(json!({}));
    let mut live = live(&world, ChildKind::Service);
    live["spec"]["clusterIP"] = json!("10.0.0.7");
    live["spec"]["clusterIPs"] = json!(["10.0.0.7"]);
    live["spec"]["externalIPs"] = json!(["192.0.2.1"]);
    let child = world.child(ChildKind::Service).expect("a service");
    let mut wanted = child.body["spec"].clone();
    wanted["clusterIP"] = json!("10.0.0.7");
    wanted["clusterIPs"] = json!(["10.0.0.7"]);
    assert_eq!(merged(&live, &child)["spec"], wanted);
}

#[test]
fn what_token_controllers_hang_on_an_account_stays() {
    let world = World::cart(json!({}));
    let mut live = live(&world, ChildKind::ServiceAccount);
    live["secrets"] = json!([{ "name": "token" }]);
    live["automountServiceAccountToken"] = json!(false);
    let body = merged(&live, &world.child(ChildKind::ServiceAccount).expect("an account"));
    assert_eq!((&body["secrets"], &body["automountServiceAccountToken"]), (&live["secrets"], &json!(true)));
}

#[test]
fn scaling_changes_the_number_and_forgets_what_was_rendered() {
    let world = World::cart(json!({}));
    let live = live(&world, ChildKind::Deployment);
    let body = scaled(&live, 0);
    assert_eq!(body["spec"]["replicas"], 0);
    assert_eq!(body["spec"]["template"], live["spec"]["template"]);
    assert_eq!(body["metadata"]["annotations"].get("ankka.dev/rendered"), None);
    assert_eq!(body["metadata"]["labels"], live["metadata"]["labels"]);
    assert_eq!((body.get("status"), body["metadata"].get("managedFields")), (None, None));
}
