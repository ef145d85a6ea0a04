//! `ankka services apply --wait`.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::objects::{PODS, SERVICES, event, pod, service, status};
use crate::support::{CART, Fake, Home, Ran, Reply, Request, assert_schema};

fn apply(fake: &Fake, arguments: &[&str]) -> Ran {
    let home = Home::new();
    home.file("service.json", CART);
    home.run_with(fake, &[&["services", "apply", "-f", "service.json"], arguments].concat())
}

/// A cluster in which the service was just created; `then` is what the watch of it says, `pods` what is listed.
fn rollout(then: Vec<Value>, pods: Vec<Value>) -> impl Fn(&Request) -> Reply + Send + Sync {
    move |request| {
        let fresh = service("cart", 1, &Value::Null);
        match (request.method.as_str(), request.path.as_str()) {
            ("PATCH", _) => Reply::created(fresh),
            ("GET", SERVICES) if request.watches() => Reply::events(&then),
            ("GET", SERVICES) => Reply::list(&[fresh]),
            ("GET", PODS) if request.watches() => Reply::Silence,
            ("GET", PODS) => Reply::list(&pods),
            ("GET", path) if path.ends_with("/log") => Reply::Text(200, "it broke\n".to_owned()),
            (_, path) => panic!("nobody should ask for {path}"),
        }
    }
}

fn pulling() -> Value {
    json!({ "waiting": { "reason": "ContainerCreating" } })
}

#[test]
fn waiting_ends_when_the_service_is_ready() {
    let ready = service("cart", 1, &status(1, "Ready", 1, 1));
    let fake = Fake::start(rollout(vec![event("MODIFIED", &ready)], vec![pod("cart-1", &pulling(), 0)]));
    let ran = apply(&fake, &["--wait"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "service/cart created\n"), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("service 'cart' is ready\n"), "{}", ran.stderr);
}

#[test]
fn programs_get_the_service_as_it_was_last() {
    let ready = service("cart", 1, &status(1, "Ready", 1, 1));
    let fake = Fake::start(rollout(vec![event("MODIFIED", &ready)], Vec::new()));
    let json = apply(&fake, &["--wait", "-o", "json"]).json();
    assert_schema("service", &json);
    assert_eq!(json["status"], "Ready");
}

#[test]
fn a_service_that_is_ready_already_is_not_watched() {
    let fake = Fake::start(|_| Reply::ok(service("cart", 1, &status(1, "Ready", 1, 1))));
    let ran = apply(&fake, &["--wait"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "service/cart unchanged\n"), "{}", ran.stderr);
    assert_eq!(fake.requests().len(), 1);
}

#[test]
fn what_cannot_succeed_ends_the_waiting_at_once() {
    let refused = json!({ "waiting": { "reason": "ErrImagePull", "message": "registry.example.com/acme/cart:1.4.2: not found" } });
    let third = json!({ "waiting": { "reason": "CrashLoopBackOff", "message": "back-off 20s" } });
    let table = [
        (
            refused,
            0,
            "service 'cart' cannot become ready: cart-1: ErrImagePull: registry.example.com/acme/cart:1.4.2: not found",
            "check the image's name and tag",
        ),
        (
            third,
            2,
            "service 'cart' cannot become ready: cart-1: crashed 3 times: back-off 20s",
            "see why with: ankka services logs cart --previous -p shop; instances that were ready go on serving\n",
        ),
    ];
    for (state, restarts, message, next) in table {
        let fake = Fake::start(rollout(Vec::new(), vec![pod("cart-1", &state, restarts)]));
        let started = Instant::now();
        let ran = apply(&fake, &["--wait=30s"]);
        assert_eq!(ran.status, 1);
        assert!(ran.stderr.contains(&format!("error: {message}\nhint: {next}")), "{}", ran.stderr);
        assert!(started.elapsed() < Duration::from_secs(20));
        assert_eq!(ran.stderr.contains("  it broke\n"), restarts > 0, "{}", ran.stderr);
    }
}

#[test]
fn a_stalled_service_ends_the_waiting_with_its_detail() {
    let mut failed = status(1, "Failed", 0, 1);
    failed["detail"] = json!("object storage: the installation has no object store");
    failed["conditions"] = json!([{ "type": "Stalled", "status": "True", "reason": "Failed", "message": "", "lastTransitionTime": "2026-11-30T12:00:00Z" }]);
    let fake = Fake::start(rollout(vec![event("MODIFIED", &service("cart", 1, &failed))], Vec::new()));
    let ran = apply(&fake, &["--wait"]);
    assert_eq!(ran.status, 1);
    assert!(
        ran.stderr.contains(
            "error: service 'cart' cannot become ready: object storage: the installation has no object store\n"
        ),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_may_still_come_is_waited_for_and_named_when_the_time_is_over() {
    let missing = json!({ "waiting": { "reason": "CreateContainerConfigError", "message": "secret \"cart-secrets\" not found" } });
    let mut going = status(1, "UpdateInProgress", 0, 1);
    going["detail"] = Value::Null;
    let fake =
        Fake::start(rollout(vec![event("MODIFIED", &service("cart", 1, &going))], vec![pod("cart-1", &missing, 0)]));
    let ran = apply(&fake, &["--wait=1s"]);
    assert_eq!(ran.status, 1);
    let line = "cart-1: CreateContainerConfigError: secret \"cart-secrets\" not found\n";
    assert!(ran.stderr.contains(line), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("error: service 'cart' is not ready: waited 1s: {line}")), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("hint: the rollout goes on; look with: ankka services get cart -p shop\n"),
        "{}",
        ran.stderr
    );
}

#[test]
fn without_a_terminal_or_when_told_so_nothing_is_waited_for() {
    for arguments in [&[][..], &["--wait=0"], &["--no-wait"], &["--dry-run", "--wait"]] {
        let fake = Fake::start(|_| Reply::created(service("cart", 1, &Value::Null)));
        assert_eq!(apply(&fake, arguments).status, 0);
        assert_eq!(fake.requests().len(), 1);
    }
}

#[test]
fn who_may_not_see_pods_still_waits_for_the_service() {
    let ready = service("cart", 1, &status(1, "Ready", 1, 1));
    let cluster = rollout(vec![event("MODIFIED", &ready)], Vec::new());
    let fake = Fake::start(move |request| match request.path.as_str() {
        PODS => Reply::status(403, "Forbidden", "pods is forbidden", &json!({ "kind": "pods" })),
        _ => cluster(request),
    });
    assert_eq!(apply(&fake, &["--wait"]).status, 0);
}

#[test]
fn ctrl_c_leaves_the_rollout_going_and_says_so() {
    let home = Home::new();
    let fake = Fake::start(rollout(Vec::new(), vec![pod("cart-1", &pulling(), 0)]));
    home.file("service.json", CART).file("kubeconfig", fake.kubeconfig());
    let child = Command::new(env!("CARGO_BIN_EXE_ankka"))
        .args(["services", "apply", "-f", "service.json", "-p", "shop", "--kubeconfig", "kubeconfig", "--wait=50s"])
        .env_clear()
        .env("HOME", home.path())
        .current_dir(home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let started = Instant::now();
    while !fake.requests().iter().any(|request| request.path == PODS && request.watches()) {
        assert!(started.elapsed() < Duration::from_secs(30), "it never watched");
        std::thread::sleep(Duration::from_millis(20));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
    let output = child.wait_with_output().expect("the command ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(
        stderr
            .ends_with("stopped waiting; the rollout of 'cart' goes on, look with: ankka services get cart -p shop\n"),
        "{stderr}"
    );
}
