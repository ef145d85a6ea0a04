//! The documented words of the lifecycle, and what goes with them.

use ankka_desired::{Cause, PodState, Problem, WorkloadState};
use serde_json::json;

use crate::support::World;

/// A service of three instances whose Deployment is as it should be, and how that is doing.
fn three(workload: WorkloadState) -> World {
    let mut world = World::cart(json!({ "resources": { "autoscaling": { "minInstances": 3 } } })).settled(3);
    world.workload = Some(workload);
    world
}

fn workload(total: i32, updated: i32, ready: i32) -> WorkloadState {
    WorkloadState {
        generation: 2,
        observed_generation: 2,
        desired: 3,
        total,
        updated,
        ready,
        complete: true,
        ..Default::default()
    }
}

fn pod(name: &str, problem: Option<&str>) -> PodState {
    PodState {
        name: name.to_owned(),
        template: "new".to_owned(),
        created: format!("2026-11-30T10:00:0{}Z", name.len() % 10),
        ready: problem.is_none(),
        problem: problem.map(|text| Problem::new(Cause::Other, text)),
        ..Default::default()
    }
}

fn said(world: &World) -> (String, Option<String>) {
    let status = world.decide().status;
    // Without the next step.
    let detail =
        status.detail.map(|detail| detail.rsplit_once("; ").map_or(detail.clone(), |(said, _)| said.to_owned()));
    (status.lifecycle.expect("a word"), detail)
}

#[test]
fn each_state_of_the_deployment_has_its_word() {
    let starting = WorkloadState { complete: false, ..workload(3, 3, 0) };
    let behind = |state: WorkloadState| WorkloadState { observed_generation: 1, ..state };
    let overdue = |state: WorkloadState| WorkloadState {
        deadline_exceeded: Some("ReplicaSet \"cart-1\" has timed out progressing.".to_owned()),
        ..state
    };
    let table = [
        ("all ready", workload(3, 3, 3), "Ready"),
        ("observed an older generation", behind(workload(3, 3, 3)), "UpdateInProgress"),
        ("its failure is an older generation's", behind(overdue(workload(3, 3, 3))), "UpdateInProgress"),
        ("new instances are missing", workload(3, 2, 3), "UpdateInProgress"),
        ("an old instance remains, all ready", workload(4, 3, 3), "UpdateInProgress"),
        ("too many after scaling down", workload(5, 5, 5), "UpdateInProgress"),
        ("starting for the first time", starting.clone(), "UpdateInProgress"),
        ("starting, one is there", WorkloadState { ready: 1, ..starting }, "UpdateInProgress"),
        ("one down", workload(3, 3, 2), "PartiallyReady"),
        ("all down", workload(3, 3, 0), "Unavailable"),
        ("no progress in time", overdue(workload(4, 1, 3)), "Failed"),
    ];
    for (what, state, word) in table {
        assert_eq!(said(&three(state)).0, word, "{what}");
    }
}

#[test]
fn a_service_without_a_deployment_is_being_updated() {
    let status = World::cart(json!({})).decide().status;
    assert_eq!(status.lifecycle.as_deref(), Some("UpdateInProgress"));
    assert_eq!((status.ready_instances, status.desired_instances), (0, 1));
    assert_eq!(status.observed_generation, Some(1));
}

#[test]
fn the_status_of_a_new_service_is_written_twice() {
    let mut world = World::cart(json!({}));
    let mut writes = 0;
    let mut pass = |world: &mut World| {
        let new = world.decide().status;
        if let Some(new) = ankka_desired::with_times(world.service.status.as_ref(), new, "2026-11-30T12:00:00Z") {
            world.service.status = Some(new);
            writes += 1;
        }
    };
    pass(&mut world);
    let made = World::cart(json!({})).settled(0);
    world.children = made.children;
    let one = WorkloadState { generation: 1, desired: 1, ..Default::default() };
    let observed = WorkloadState { observed_generation: 1, ..one.clone() };
    let created = WorkloadState { total: 1, updated: 1, ..observed.clone() };
    for state in [one, observed, created.clone()] {
        world.workload = Some(state);
        pass(&mut world);
    }
    let running = PodState { running: true, image_digest: Some("sha256:a".to_owned()), ..pod("cart-1", None) };
    for ready in [false, true] {
        world.pods = vec![PodState { ready, ..running.clone() }];
        pass(&mut world);
    }
    world.workload = Some(WorkloadState { ready: 1, complete: true, ..created });
    pass(&mut world);
    assert_eq!(world.service.status.expect("a status").lifecycle.as_deref(), Some("Ready"));
    assert_eq!(writes, 2);
}

#[test]
fn a_deployment_that_is_about_to_be_written_is_being_updated() {
    let mut world = three(workload(3, 3, 3));
    world.service.spec.restarts = 1;
    assert_eq!(said(&world).0, "UpdateInProgress");
}

#[test]
fn a_pause_counts_before_any_failure() {
    let mut world = three(workload(3, 3, 0));
    world.service.spec.paused = true;
    world.service.spec.service.image = None;
    let status = world.decide().status;
    assert_eq!(status.lifecycle.as_deref(), Some("Paused"));
    assert_eq!(status.desired_instances, 0);
    assert_eq!((status.conditions[0].status.as_str(), status.conditions[0].reason.as_str()), ("True", "Paused"));
    assert_eq!(status.conditions.len(), 1);
}

#[test]
fn the_first_problem_of_the_newest_pods_is_the_detail() {
    let mut world = three(workload(4, 1, 3));
    let old = PodState {
        template: "old".to_owned(),
        created: "2026-11-30T09:00:00Z".to_owned(),
        ..pod("a", Some("Old: one"))
    };
    let gone =
        PodState { terminating: true, created: "2026-11-30T11:00:00Z".to_owned(), ..pod("b", Some("Gone: one")) };
    world.pods =
        vec![gone, pod("ccc", Some("Second: one")), pod("cc", Some("ImagePullBackOff: manifest unknown")), old];
    assert_eq!(said(&world), ("UpdateInProgress".to_owned(), Some("ImagePullBackOff: manifest unknown".to_owned())));
    let message = &world.decide().status.conditions[0].message;
    assert!(message.starts_with("ImagePullBackOff: manifest unknown; "), "{message}");
}

#[test]
fn a_problem_is_seen_although_the_old_pod_was_made_in_the_same_second() {
    let mut world = three(workload(3, 1, 3));
    let broken =
        PodState { created: "2026-11-30T10:00:05Z".to_owned(), ..pod("cart-5c", Some("ImagePullBackOff: no")) };
    let old = PodState { template: "old".to_owned(), ready: true, name: "cart-96".to_owned(), ..broken.clone() };
    world.pods = vec![PodState { problem: None, ..old }, broken];
    assert_eq!(said(&world).1.as_deref(), Some("ImagePullBackOff: no"));
}

#[test]
fn an_exceeded_quota_is_quoted_and_goes_on_being_waited_for() {
    let refusal = "pods \"cart-1\" is forbidden: exceeded quota: small".to_owned();
    let held_up = WorkloadState { replica_failure: Some(refusal.clone()), ..workload(3, 0, 3) };
    assert_eq!(said(&three(held_up.clone())), ("UpdateInProgress".to_owned(), Some(refusal.clone())));
    let overdue = WorkloadState { deadline_exceeded: Some(String::new()), ..held_up };
    assert_eq!(said(&three(overdue)), ("UpdateInProgress".to_owned(), Some(refusal)));
}

#[test]
fn a_failed_rollout_says_why_as_well_as_it_can() {
    let overdue = |message: &str| WorkloadState { deadline_exceeded: Some(message.to_owned()), ..workload(4, 1, 3) };
    assert_eq!(
        said(&three(overdue(""))).1.as_deref(),
        Some("the rollout did not complete within its progress deadline")
    );
    assert_eq!(said(&three(overdue("timed out"))).1.as_deref(), Some("timed out"));
    let mut world = three(overdue("timed out"));
    world.pods = vec![PodState { running: true, ready: false, ..pod("cart-1", None) }];
    let unanswered = "NotReady: instance cart-1 is running but does not answer GET /ready on port 7626";
    assert_eq!(said(&world).1.as_deref(), Some(unanswered));
    world.pods.push(pod("cart-22", Some("CrashLoopBackOff: again")));
    assert_eq!(said(&world).1.as_deref(), Some("CrashLoopBackOff: again"));
}

#[test]
fn a_first_start_that_meets_an_obstacle_is_unavailable() {
    let mut world = three(WorkloadState { complete: false, ..workload(3, 3, 0) });
    world.pods = vec![pod("cart-1", Some("ImagePullBackOff: manifest unknown"))];
    assert_eq!(said(&world), ("Unavailable".to_owned(), Some("ImagePullBackOff: manifest unknown".to_owned())));
}

#[test]
fn conditions_say_the_same_as_the_word() {
    let conditions = |world: &World| {
        let conditions = world.decide().status.conditions;
        assert!(conditions.iter().all(|condition| condition.observed_generation == Some(1)));
        let told =
            conditions.iter().map(|condition| format!("{}={}:{}", condition.type_, condition.status, condition.reason));
        told.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(conditions(&three(workload(3, 3, 3))), "Ready=True:Ready DatabaseReady=True:Provisioned");
    assert_eq!(
        conditions(&three(workload(4, 3, 3))),
        "Ready=Unknown:UpdateInProgress Reconciling=True:UpdateInProgress DatabaseReady=True:Provisioned"
    );
    assert_eq!(
        conditions(&three(workload(3, 3, 1))),
        "Ready=False:InstancesDown Reconciling=True:InstancesDown DatabaseReady=True:Provisioned"
    );
    let overdue = WorkloadState { deadline_exceeded: Some(String::new()), ..workload(4, 1, 3) };
    assert_eq!(
        conditions(&three(overdue)),
        "Ready=False:DeadlineExceeded Stalled=True:DeadlineExceeded DatabaseReady=True:Provisioned"
    );
    let mut old = three(workload(3, 3, 3));
    old.service.spec.service.runtime = Some("9.0.0".to_owned());
    assert_eq!(conditions(&old), "Ready=False:Incompatible Stalled=True:Incompatible DatabaseReady=True:Provisioned");
}

#[test]
fn the_address_is_the_services_inside_the_cluster() {
    let address = |more| World::cart(more).decide().status.address;
    assert_eq!(address(json!({})).as_deref(), Some("http://cart.ankka-shop.svc.cluster.local:9000"));
    assert_eq!(address(json!({ "port": 80 })).as_deref(), Some("http://cart.ankka-shop.svc.cluster.local:80"));
    assert_eq!(address(json!({ "http": false })), None);
}

#[test]
fn the_digest_is_the_newest_ready_pods_and_is_kept_meanwhile() {
    let mut world = three(workload(3, 3, 3));
    let with = |digest: &str, pod: PodState| PodState { image_digest: Some(digest.to_owned()), ..pod };
    world.pods = vec![
        with("sha256:a", pod("a", None)),
        with("sha256:b", pod("bb", None)),
        with("sha256:c", pod("ccc", Some("No: x"))),
    ];
    let status = world.decide().status;
    assert_eq!(status.image_digest.as_deref(), Some("sha256:b"));
    world.service.status = Some(status);
    world.workload = Some(workload(4, 1, 3));
    world.pods.clear();
    assert_eq!(world.decide().status.image_digest.as_deref(), Some("sha256:b"));
}

#[test]
fn no_value_of_a_variable_is_ever_in_the_status() {
    let env = json!([{ "name": "TOKEN", "value": "hunter2" }, { "name": "OTHER", "secretKeyRef": { "name": "s", "key": "k" } }]);
    let mut worlds = vec![World::cart(json!({ "env": env })), World::cart(json!({ "env": env, "port": 0 }))];
    worlds.push(World::cart(
        json!({ "env": [{ "name": "TOKEN", "value": "hunter2", "secretKeyRef": { "name": "s", "key": "k" } }] }),
    ));
    for world in worlds {
        let status = serde_json::to_string(&world.decide().status).expect("JSON");
        assert!(!status.contains("hunter2"), "{status}");
    }
}
