//! What an installation's new sidecar means for its services.

use ankka_desired::{Action, ChildKind, WorkloadState};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;

use crate::support::World;

const NOW: &str = "registry.example.com/ankka/sidecar:0.3.0";

fn process_hosted() -> World {
    World::cart(json!({ "hosting": "process", "protocol": "1.0" }))
}

/// Settled with the sidecar of before, in an installation that has another one now.
fn upgraded(world: World) -> World {
    let mut world = world.settled(1);
    let before = world.settings.sidecar_image.replace(NOW.to_owned());
    world.workload.as_mut().expect("a workload").sidecar = before;
    world
}

#[test]
fn another_sidecar_alone_may_wait_and_meanwhile_nothing_is_to_be_done() {
    let mut world = upgraded(process_hosted());
    let before = world.workload.as_ref().and_then(|workload| workload.sidecar.clone());
    let decision = world.decide();
    assert!(
        matches!(decision.actions.as_slice(), [Action::Update { child, .. }] if child.kind == ChildKind::Deployment)
    );
    assert_eq!(decision.upgrade, before);
    world.settings.sidecar_image = before;
    let decision = world.decide();
    assert_eq!((decision.actions, decision.upgrade), (Vec::new(), None));
    assert_eq!(decision.status.lifecycle.as_deref(), Some("Ready"));
}

#[test]
fn what_is_asked_for_beside_it_and_what_rolls_nothing_does_not_wait() {
    let mut restarted = upgraded(process_hosted());
    restarted.service.spec.restarts = 1;
    let mut changed = upgraded(process_hosted());
    changed.service.spec.service.image = Some("registry.example.com/acme/cart:2".to_owned());
    let mut paused = process_hosted();
    paused.service.spec.paused = true;
    let mut edited = upgraded(process_hosted());
    edited.workload.as_mut().expect("a workload").sidecar = Some("registry.example.com/somebody/elses:1".to_owned());
    for (name, world) in
        [("restarted", restarted), ("changed", changed), ("paused", upgraded(paused)), ("edited", edited)]
    {
        let decision = world.decide();
        assert_eq!((decision.actions.len(), decision.upgrade), (1, None), "{name}");
    }
    let decision = upgraded(World::cart(json!({}))).decide();
    assert_eq!((decision.actions, decision.upgrade), (Vec::new(), None), "an embedded service has no sidecar");
}

#[test]
fn instances_are_being_replaced_until_the_rollout_is_complete_or_has_failed() {
    let complete = process_hosted().settled(1).workload.expect("a workload");
    let begun = WorkloadState { generation: 2, ..complete.clone() };
    let seen = WorkloadState { complete: false, total: 2, ..complete.clone() };
    let failed = WorkloadState { deadline_exceeded: Some("words".to_owned()), ..seen.clone() };
    let unready = WorkloadState { ready: 0, ..complete.clone() };
    let states = [complete, begun, seen, failed, unready].map(|state| state.is_rolling());
    assert_eq!(states, [false, true, true, false, false]);
}

#[test]
fn the_sidecar_is_read_from_the_template() {
    for (world, image) in [(process_hosted(), Some(NOW)), (World::cart(json!({})), None)] {
        let mut world = world;
        world.settings.sidecar_image = Some(NOW.to_owned());
        let child = world.child(ChildKind::Deployment).expect("it is wanted");
        let deployment: Deployment = serde_json::from_value(child.body.clone()).expect("a Deployment");
        assert_eq!(WorkloadState::of(&deployment).sidecar.as_deref(), image);
    }
}
