//! Each way in which a service fails to become ready: what the status and the Event say, and the next step.

use ankka_desired::{Cause, ChildKind, DatabaseState, PodState, WorkloadState, event};
use serde_json::{Value, json};

use crate::support::{World, provisioned};

/// A container that crashed twice, as this says.
fn crashed(reason: &str, exit_code: i32, message: &str) -> Value {
    let end = json!({ "terminated": { "exitCode": exit_code, "reason": reason, "message": message } });
    json!({ "state": { "waiting": { "reason": "CrashLoopBackOff" } }, "lastState": end, "restartCount": 2 })
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({ "state": { "waiting": { "reason": reason, "message": message } } })
}

fn pod(status: Value) -> PodState {
    let mut pod = json!({
        "metadata": { "name": "cart-1", "creationTimestamp": "2026-11-30T11:00:00Z" },
        "spec": { "containers": [{ "name": "service", "env": [
            { "name": "TOKEN", "valueFrom": { "secretKeyRef": { "name": "keys", "key": "token" } } },
        ] }] },
    });
    pod["status"] = status;
    PodState::of(&serde_json::from_value(pod).expect("a pod"))
}

fn container(status: Value) -> PodState {
    let mut whole = json!({ "name": "service", "ready": false, "restartCount": 0, "image": "i", "imageID": "" });
    whole
        .as_object_mut()
        .expect("an object")
        .extend(serde_json::from_value::<serde_json::Map<_, _>>(status).expect("fields"));
    pod(json!({ "containerStatuses": [whole] }))
}

/// One new instance beside nothing, doing like this.
fn starting(pods: Vec<PodState>) -> World {
    let mut world = World::cart(json!({})).settled(0);
    world.workload.as_mut().expect("a workload").complete = false;
    World { pods, ..world }
}

fn refused(refusal: &str) -> World {
    let mut world = starting(Vec::new());
    let workload = world.workload.as_mut().expect("a workload");
    (workload.total, workload.updated, workload.replica_failure) = (0, 0, Some(refusal.to_owned()));
    world
}

fn overdue() -> World {
    let mut world = starting(Vec::new());
    let message = "ReplicaSet \"cart-1\" has timed out progressing.";
    world.workload.as_mut().expect("a workload").deadline_exceeded = Some(message.to_owned());
    world
}

fn without_its_server() -> World {
    let mut world = starting(vec![container(crashed("Error", 1, "no route to host"))]);
    let (phase, detail) = (Some("waiting for database".to_owned()), Some("db.example.com:5432: timed out".to_owned()));
    world.database = Some(DatabaseState { phase, detail, ..provisioned() });
    world
}

fn without_its_database() -> World {
    let mut world = World::cart(json!({}));
    let (phase, detail) =
        ("database provisioning failed".to_owned(), "permission denied to create database".to_owned());
    world.database = Some(DatabaseState { phase: Some(phase), detail: Some(detail), ..DatabaseState::default() });
    world
}

/// Every cause, as a cluster shows it, and what is said.
fn cases() -> Vec<(Cause, World, &'static str)> {
    let unschedulable = json!({ "conditions": [
        { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available" },
    ] });
    let exec = "failed to create containerd task: exec /cart: exec format error: unknown";
    let running = json!({ "state": { "running": { "startedAt": "2026-11-30T11:59:45Z" } } });
    let future = World::cart(json!({ "runtime": "0.9.0" }));
    vec![
        (
            Cause::Image,
            starting(vec![container(waiting("ErrImagePull", "manifest unknown"))]),
            "ImagePullBackOff: manifest unknown",
        ),
        (
            Cause::ImageName,
            starting(vec![container(waiting("InvalidImageName", "couldn't parse image name"))]),
            "InvalidImageName: couldn't parse image name",
        ),
        (
            Cause::Architecture,
            starting(vec![container(crashed("StartError", 128, exec))]),
            "CrashLoopBackOff: container service could not be started, exit code 128: its program is built for another architecture (exec format error), restarted 2 times (StartError)",
        ),
        (
            Cause::Configuration,
            starting(vec![container(waiting("CreateContainerConfigError", "secret \"keys\" not found"))]),
            "CreateContainerConfigError: secret \"keys\" not found, whose key \"token\" env var TOKEN reads",
        ),
        (
            Cause::Credential,
            starting(vec![container(waiting("CreateContainerConfigError", "secret \"cart-db\" not found"))]),
            "CreateContainerConfigError: secret \"cart-db\" not found",
        ),
        (Cause::Unschedulable, starting(vec![pod(unschedulable)]), "Unschedulable: 0/3 nodes are available"),
        (
            Cause::Quota,
            refused("pods \"cart-1\" is forbidden: exceeded quota: small"),
            "pods \"cart-1\" is forbidden: exceeded quota: small",
        ),
        (
            Cause::Crash,
            starting(vec![container(crashed("Error", 1, "a secret line of the log"))]),
            "CrashLoopBackOff: container service ended with exit code 1, restarted 2 times (Error)",
        ),
        (
            Cause::Memory,
            starting(vec![container(crashed("OOMKilled", 137, ""))]),
            "CrashLoopBackOff: container service ended with exit code 137, restarted 2 times (OOMKilled)",
        ),
        (
            Cause::Silent,
            starting(vec![container(running)]),
            "NotReady: instance cart-1 is running but does not answer GET /ready on port 7626",
        ),
        (
            Cause::Evicted,
            starting(vec![pod(json!({ "phase": "Failed", "reason": "Evicted", "message": "low on memory" }))]),
            "Evicted: low on memory",
        ),
        (Cause::Database, without_its_server(), "waiting for database: db.example.com:5432: timed out"),
        (Cause::DatabaseRefused, without_its_database(), "database: permission denied to create database"),
        (Cause::Deadline, overdue(), "ReplicaSet \"cart-1\" has timed out progressing."),
        (
            Cause::Incompatible,
            future,
            "runtime 0.9.0 is outside the platform's supported range: runtimes 0.1.x–0.2.x (platform 0.2.0)",
        ),
        (
            Cause::Other,
            starting(vec![container(waiting("CreateContainerError", "no such device"))]),
            "CreateContainerError: no such device",
        ),
    ]
}

fn next(cause: Cause) -> String {
    let next = cause.row().next.replace("{service}", "cart").replace("{project}", "shop");
    next.replace("{namespace}", "ankka-shop").replace("{secret}", "keys").replace("{key}", "token")
}

#[test]
fn each_cause_is_named_with_the_next_step_in_status_condition_and_event() {
    let cases = cases();
    assert_eq!(cases.iter().map(|(cause, ..)| *cause).collect::<Vec<_>>(), Cause::ALL, "one case each");
    for (cause, world, said) in cases {
        let status = world.decide().status;
        let expected = format!("{said}; {}", next(cause));
        assert_eq!(status.detail.as_deref(), Some(&*expected), "{cause:?}");
        assert_eq!(status.conditions[0].message, expected, "{cause:?}");
        assert_ne!(status.conditions[0].status, "True", "{cause:?}");
        assert_eq!(event(None, &status).map(|event| event.note), Some(expected), "{cause:?}");
        let stored = serde_json::to_string(&status).expect("JSON");
        assert!(!stored.contains("a secret line"), "a line of a log is in the status: {stored}");
    }
}

#[test]
fn the_documentation_has_each_cause() {
    let table: String = Cause::ALL
        .map(|cause| {
            let row = cause.row();
            let next = next(cause);
            format!("| {} | `{}` | {next} | {} |\n", row.cause, row.says, row.recovers)
        })
        .concat();
    let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/causes.md"));
    assert!(page.contains(&table), "docs/reference/causes.md should have:\n{table}");
}

#[test]
fn what_the_documentation_says_of_a_detail_is_how_it_begins() {
    for (cause, world, _) in cases() {
        let detail = world.decide().status.detail.expect("a detail");
        let says = cause.row().says;
        let mut rest = detail.as_str();
        for part in says.split('…').filter(|_| cause != Cause::Other) {
            let at = rest.find(part).unwrap_or_else(|| panic!("{says:?} is not in {detail:?}"));
            rest = &rest[at + part.len()..];
        }
    }
}

#[test]
fn a_program_that_finds_out_itself_that_it_is_for_another_processor_says_nothing_else() {
    let cause = |message: &str| container(crashed("Error", 255, message)).problem.expect("a problem").cause;
    assert_eq!(cause("exec /usr/bin/cart: exec format error\n"), Cause::Architecture);
    // One that started another, which it could not.
    for message in
        ["exec format error", "starting\nexec /cart: exec format error", "exec /cart: exec format error\nbye", ""]
    {
        assert_eq!(cause(message), Cause::Crash, "{message}");
    }
}

#[test]
fn a_long_reason_is_cut_and_the_next_step_is_not() {
    let world = starting(vec![container(waiting("ErrImagePull", &"x".repeat(5000)))]);
    let detail = world.decide().status.detail.expect("a detail");
    assert!(detail.len() <= 1024 && detail.ends_with(&next(Cause::Image)), "{detail}");
}

#[test]
fn what_is_missing_is_named_in_the_command_that_sets_it() {
    let long = "k".repeat(253);
    let told = [
        ("secret \"keys\" not found", "ankka projects secrets set keys token=- -p shop,"),
        ("secret \"unread\" not found", "ankka projects secrets set unread KEY=- -p shop,"),
        ("couldn't find key other in Secret ankka-shop/keys", "ankka projects secrets set keys other=- -p shop,"),
        (
            &format!("couldn't find key {long} in Secret ankka-shop/{long}"),
            &format!("ankka projects secrets set {long} {long}=- -p shop,"),
        ),
        // What `set` refuses is not advised.
        ("couldn't find key ANKKA_DB_HOST in Secret ankka-shop/cart-db", "ankka services get cart -p shop"),
        // Other things that a node cannot configure are no Secret's matter.
        ("container has runAsNonRoot and image will run as root", "kubectl describe pods -n ankka-shop"),
        ("failed to sync secret cache: timed out waiting for the condition", "kubectl describe pods -n ankka-shop"),
    ];
    for (message, command) in told {
        let world = starting(vec![container(waiting("CreateContainerConfigError", message))]);
        let detail = world.decide().status.detail.expect("a detail");
        assert!(detail.len() <= 1024 && detail.contains(command), "{detail}");
    }
}

#[test]
fn a_starting_instance_is_given_the_time_of_three_probes() {
    let running = json!({ "state": { "running": { "startedAt": "2026-11-30T11:59:50Z" } } });
    let mut world = starting(vec![container(running)]);
    let decision = world.decide();
    assert_eq!(decision.status.detail, None, "10 seconds are too early");
    let at = decision.review.expect("a time to look again");
    assert_eq!(at.to_string(), "2026-11-30T12:00:05Z");
    world.now = at;
    let decision = world.decide();
    assert_eq!(decision.status.lifecycle.as_deref(), Some("UpdateInProgress"), "it may still come");
    assert!(decision.status.detail.expect("a detail").starts_with("NotReady: instance cart-1"));
    assert_eq!(decision.review, None);
}

#[test]
fn a_database_that_is_down_explains_a_crash_and_not_a_missing_image() {
    let mut world = without_its_server();
    world.pods = vec![container(waiting("ErrImagePull", "manifest unknown"))];
    assert!(world.decide().status.detail.expect("a detail").starts_with("ImagePullBackOff"));
    let mut ready = World::cart(json!({})).settled(1);
    ready.database = without_its_server().database;
    assert_eq!(ready.decide().status.detail, None, "all instances are ready");
    assert!(ready.child(ChildKind::Deployment).is_some());
    assert_eq!(ready.workload.as_ref().map(|workload: &WorkloadState| workload.ready), Some(1));
}
