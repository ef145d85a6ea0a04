//! What is read off pods and Deployments.

use ankka_desired::{PodState, Problem, WorkloadState};
use serde_json::{Map, Value, json};

/// A pod of which one container is in this state, and not ready.
fn pod(state: Value, more: Value) -> PodState {
    let mut container: Map<String, Value> = serde_json::from_value(more).expect("an object");
    let always = [("ready", json!(false)), ("image", json!("i")), ("state", state)];
    container.extend(always.map(|(key, value)| (key.to_owned(), value)));
    for (key, value) in [("name", json!("service")), ("restartCount", json!(0)), ("imageID", json!(""))] {
        container.entry(key).or_insert(value);
    }
    of(json!({ "containerStatuses": [container] }))
}

fn of(status: Value) -> PodState {
    let mut pod = json!({
        "metadata": { "name": "cart-1", "labels": { "pod-template-hash": "abc" }, "creationTimestamp": "2026-11-30T10:00:00Z" },
        "spec": { "containers": [{ "name": "service", "env": [
            { "name": "PLAIN", "value": "hunter2" },
            { "name": "API_KEY", "valueFrom": { "secretKeyRef": { "name": "cart-secrets", "key": "api-key" } } },
        ] }] },
    });
    pod["status"] = status;
    PodState::of(&serde_json::from_value(pod).expect("a pod"))
}

fn text(problem: Option<&Problem>) -> Option<String> {
    problem.map(|problem| problem.text.clone())
}

fn waiting(reason: &str, message: &str) -> Option<String> {
    text(pod(json!({ "waiting": { "reason": reason, "message": message } }), json!({})).problem.as_ref())
}

#[test]
fn a_pod_is_known_by_its_name_its_template_and_its_time() {
    let pod = pod(json!({}), json!({}));
    assert_eq!((pod.name.as_str(), pod.template.as_str()), ("cart-1", "abc"));
    assert_eq!(pod.created, "2026-11-30T10:00:00Z");
    assert_eq!((pod.ready, pod.terminating, pod.running), (false, false, false));
}

#[test]
fn what_a_container_waits_for_is_its_problem_unless_it_is_just_starting() {
    assert_eq!(waiting("ContainerCreating", ""), None);
    assert_eq!(waiting("PodInitializing", ""), None);
    assert_eq!(waiting("InvalidImageName", "bad").as_deref(), Some("InvalidImageName: bad"));
    assert_eq!(waiting("CreateContainerError", "").as_deref(), Some("CreateContainerError"));
}

#[test]
fn an_image_that_cannot_be_pulled_has_one_word_whichever_turn_it_is() {
    let cause = "failed to pull: manifest unknown";
    let wanted = Some(format!("ImagePullBackOff: {cause}"));
    assert_eq!(waiting("ErrImagePull", cause), wanted);
    assert_eq!(waiting("ImagePullBackOff", &format!("Back-off pulling image \"x\": ErrImagePull: {cause}")), wanted);
    let plain = waiting("ImagePullBackOff", "Back-off pulling image \"x\"");
    assert_eq!(plain.as_deref(), Some("ImagePullBackOff: Back-off pulling image \"x\""));
}

#[test]
fn a_missing_secret_or_key_is_named_with_the_variable_that_reads_it() {
    assert_eq!(
        waiting("CreateContainerConfigError", "secret \"cart-secrets\" not found").as_deref(),
        Some(
            "CreateContainerConfigError: secret \"cart-secrets\" not found, whose key \"api-key\" env var API_KEY reads"
        )
    );
    let key = "couldn't find key api-key in Secret shop/cart-secrets";
    assert_eq!(waiting("CreateContainerConfigError", key), Some(format!("CreateContainerConfigError: {key}")));
}

#[test]
fn a_crash_is_told_in_our_words_and_never_in_those_of_the_log() {
    let end = json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled", "message": "secret log line" } });
    let more = json!({ "lastState": end, "restartCount": 3 });
    let crash = pod(json!({ "waiting": { "reason": "CrashLoopBackOff", "message": "back-off 40s" } }), more.clone());
    assert_eq!(
        text(crash.problem.as_ref()).as_deref(),
        Some("CrashLoopBackOff: container service ended with exit code 137, restarted 3 times (OOMKilled)")
    );
    assert_eq!(crash.restarts, 3);
    // Between two ends, running but not ready, the last one is still the reason.
    let again = pod(json!({ "running": {} }), more);
    assert_eq!(
        text(again.problem.as_ref()).as_deref(),
        Some("OOMKilled: container service ended with exit code 137, restarted 3 times")
    );
    let first =
        pod(json!({ "terminated": { "exitCode": 1, "reason": "Error", "message": "secret log line" } }), json!({}));
    assert_eq!(text(first.problem.as_ref()).as_deref(), Some("Error: container service ended with exit code 1"));
}

#[test]
fn a_program_for_another_architecture_is_told_apart() {
    let message = "failed to create containerd task: exec /cart: exec format error: unknown";
    let end = json!({ "terminated": { "exitCode": 128, "reason": "StartError", "message": message } });
    let state = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
    let problem = pod(state, json!({ "lastState": end, "restartCount": 1 })).problem.expect("a problem").text;
    assert!(problem.contains("built for another architecture (exec format error)"), "{problem}");
}

#[test]
fn the_whole_pods_problem_comes_from_the_scheduler_or_the_node() {
    let unscheduled = of(json!({ "conditions": [
        { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available" },
    ] }));
    assert_eq!(text(unscheduled.problem.as_ref()).as_deref(), Some("Unschedulable: 0/3 nodes are available"));
    let evicted = of(json!({ "phase": "Failed", "reason": "Evicted", "message": "low on memory" }));
    assert_eq!(text(evicted.problem.as_ref()).as_deref(), Some("Evicted: low on memory"));
}

#[test]
fn a_ready_pod_has_no_problem_whatever_it_has_been_through() {
    let ready = of(json!({
        "conditions": [{ "type": "Ready", "status": "True" }],
        "containerStatuses": [{
            "name": "service", "ready": true, "restartCount": 2, "image": "i", "imageID": "",
            "state": { "running": {} }, "lastState": { "terminated": { "exitCode": 1 } },
        }],
    }));
    assert_eq!((ready.ready, ready.running, ready.problem.clone()), (true, true, None));
    assert_eq!(ready.overdue_problem(), None);
}

#[test]
fn a_pod_that_runs_and_does_not_answer_is_told_so_when_its_time_is_over() {
    let silent = pod(json!({ "running": {} }), json!({}));
    assert_eq!(silent.problem, None);
    let wanted = "NotReady: instance cart-1 is running but does not answer GET /ready on port 7626";
    assert_eq!(text(silent.overdue_problem().as_ref()).as_deref(), Some(wanted));
}

#[test]
fn the_digest_is_that_of_the_services_own_container() {
    let digest = |name: &str, id: &str| pod(json!({}), json!({ "name": name, "imageID": id })).image_digest;
    assert_eq!(digest("service", "registry.example.com/acme/cart@sha256:0a1b").as_deref(), Some("sha256:0a1b"));
    assert_eq!(digest("service", "sha256:0a1b").as_deref(), Some("sha256:0a1b"));
    assert_eq!(digest("service", ""), None);
    assert_eq!(digest("sidecar", "x@sha256:0a1b"), None);
}

#[test]
fn a_problem_is_cut_where_it_grows_too_long() {
    let problem = waiting("CreateContainerError", &"ä".repeat(5000)).expect("a problem");
    assert!(problem.len() <= 1024 && problem.ends_with('…'), "{} bytes", problem.len());
}

#[test]
fn a_deployment_is_read_field_by_field() {
    let deployment = |status: Value| {
        let object = json!({
            "metadata": { "generation": 4 },
            "spec": { "replicas": 3, "selector": {}, "template": {} },
            "status": status,
        });
        WorkloadState::of(&serde_json::from_value(object).expect("a Deployment"))
    };
    let condition = |type_: &str, status: &str, reason: &str| json!({ "type": type_, "status": status, "reason": reason, "message": "words" });
    let state = deployment(json!({
        "observedGeneration": 3, "replicas": 4, "updatedReplicas": 1, "readyReplicas": 2,
        "conditions": [
            condition("Progressing", "False", "ProgressDeadlineExceeded"),
            condition("ReplicaFailure", "True", "FailedCreate"),
        ],
    }));
    let wanted = WorkloadState {
        generation: 4,
        observed_generation: 3,
        desired: 3,
        total: 4,
        updated: 1,
        ready: 2,
        complete: false,
        deadline_exceeded: Some("words".to_owned()),
        replica_failure: Some("words".to_owned()),
        sidecar: None,
    };
    assert_eq!(state, wanted);
    let done = deployment(json!({ "conditions": [
        condition("Progressing", "True", "NewReplicaSetAvailable"), condition("ReplicaFailure", "False", "FailedCreate"),
    ] }));
    assert_eq!((done.complete, done.deadline_exceeded, done.replica_failure), (true, None, None));
}
