//! `ankka services logs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::objects::{PODS, SERVICES, event, instance, service, status};
use crate::support::{Fake, Home, Reply, Request, assert_schema};

/// The instance whose log is asked for.
fn asked(request: &Request) -> Option<&str> {
    request.path.strip_prefix(PODS)?.strip_prefix('/')?.strip_suffix("/log")
}

/// A log with these lines, each `<second>.<fraction> <text>`.
fn log(lines: &[&str]) -> Reply {
    Reply::Text(
        200,
        lines.iter().fold(String::new(), |text, line| text + "2026-11-30T12:00:" + &line.replacen(' ', "Z ", 1) + "\n"),
    )
}

pub(crate) fn two(request: &Request) -> Reply {
    match asked(request) {
        Some("cart-abc-aaaaa") => log(&["01.1 first", "03.3 third"]),
        Some(_) => log(&["02.2 second", "04.4 fourth"]),
        None if request.path == PODS => Reply::list(&[instance("cart-abc-aaaaa", 1), instance("cart-abc-bbbbb", 2)]),
        None => panic!("{}", request.line()),
    }
}

#[test]
fn the_logs_of_all_instances_are_merged_by_time() {
    let (home, fake) = (Home::new(), Fake::start(two));
    let ran = home.run_with(&fake, &["services", "logs", "cart"]);
    assert_snapshot!(ran.transcript(), @r"
    status: 0
    ----- stdout -----
    aaaaa | first
    bbbbb | second
    aaaaa | third
    bbbbb | fourth
    ----- stderr -----
    ");
    let list = &fake.requests()[0];
    assert!(list.query.contains("ankka.dev%2Fservice%3Dcart"), "{}", list.query);
    let queries: Vec<_> = fake.requests().into_iter().filter(|request| asked(request).is_some()).collect();
    assert!(queries.iter().all(|request| request.query.contains("container=service")));
    let ran = home.run_with(&fake, &["services", "logs", "cart", "--timestamps", "--instance", "bbbbb"]);
    assert_eq!(
        ran.stdout,
        "2026-11-30T12:00:02.2Z bbbbb | second\n2026-11-30T12:00:04.4Z bbbbb | fourth\n",
        "{}",
        ran.transcript()
    );
}

#[test]
fn each_line_is_an_object_for_programs() {
    let (home, fake) = (Home::new(), Fake::start(two));
    let ran = home.run_with(&fake, &["services", "logs", "cart", "-o", "json"]);
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 4);
    for line in &lines {
        assert_schema("log-line", line);
    }
    assert_eq!(
        lines[0],
        json!({ "time": "2026-11-30T12:00:01.1Z", "instance": "cart-abc-aaaaa", "container": "service", "message": "first" })
    );
}

#[test]
fn what_is_asked_for_is_asked_of_the_cluster() {
    let (home, fake) = (Home::new(), Fake::start(two));
    home.run_with(&fake, &["services", "logs", "cart", "--since", "1m30s", "--tail", "7", "--previous"]);
    let query = &fake.requests().into_iter().find(|request| asked(request).is_some()).expect("a log").query;
    for part in ["sinceSeconds=90", "tailLines=7", "previous=true", "timestamps=true"] {
        assert!(query.contains(part), "{query}");
    }
}

#[test]
fn an_instance_that_has_no_log_keeps_nobody_from_the_others() {
    let home = Home::new();
    let why = "container \"service\" in pod \"cart-abc-bbbbb\" is waiting to start: ContainerCreating";
    let fake = Fake::start(move |request| match asked(request) {
        Some("cart-abc-bbbbb") => Reply::status(400, "BadRequest", why, &json!({})),
        _ => two(request),
    });
    let ran = home.run_with(&fake, &["services", "logs", "cart"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "aaaaa | first\naaaaa | third\n"));
    assert_eq!(ran.stderr, format!("{why}\n"));
    let fake = Fake::start(move |request| match asked(request) {
        Some(_) => Reply::status(400, "BadRequest", "previous terminated container not found", &json!({})),
        None => two(request),
    });
    assert_eq!(
        home.run_with(&fake, &["services", "logs", "cart", "--previous"]).stderr,
        "error: no instance of service 'cart' has been restarted\n\
         hint: the log of the present run is shown without --previous\n"
    );
}

#[test]
fn what_is_not_there_is_said() {
    let home = Home::new();
    let fake = Fake::start(|request| match request.path.as_str() {
        PODS => Reply::list(&[]),
        path if path == format!("{SERVICES}/cart") => Reply::ok(service("cart", 1, &status(1, "Paused", 0, 0))),
        _ => Reply::status(404, "NotFound", "not found", &json!({ "kind": "ankkaservices" })),
    });
    let ran = home.run_with(&fake, &["services", "logs", "cart"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, "service 'cart' has no instances\n"));
    let ran = home.run_with(&fake, &["services", "logs", "absent"]);
    assert!(ran.stderr.starts_with("error: service 'absent' not found in project 'shop'\n"), "{}", ran.stderr);
    let fake = Fake::start(two);
    let ran = home.run_with(&fake, &["services", "logs", "cart", "--instance", "ccccc"]);
    assert_eq!(
        ran.stderr,
        "error: service 'cart' in project 'shop' has no instance 'ccccc'\n\
         hint: its instances are cart-abc-aaaaa, cart-abc-bbbbb\n"
    );
    let ran = home.run_with(&fake, &["services", "logs", "cart", "--container", "sidecar"]);
    assert!(ran.stderr.starts_with("error: the instances of service 'cart' have no container 'sidecar'\n"));
}

#[test]
fn who_may_not_read_logs_is_told_which_role_would() {
    let home = Home::new();
    let fake = Fake::start(|request| match asked(request) {
        Some(_) => {
            let said = "pods \"x\" is forbidden: User \"ann\" cannot get resource \"pods/log\"";
            Reply::status(403, "Forbidden", said, &json!({ "kind": "pods" }))
        }
        None => two(request),
    });
    let ran = home.run_with(&fake, &["services", "logs", "cart"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("the role view in the namespace 'ankka-shop'"), "{}", ran.stderr);
}

#[test]
fn a_followed_log_goes_on_where_the_connection_broke_and_over_a_restart() {
    let home = Home::new();
    let requests = Arc::new(AtomicUsize::new(0));
    let fake = Fake::start(move |request| {
        let restarted = || {
            let mut pod = instance("cart-abc-aaaaa", 1);
            pod["status"]["containerStatuses"][0]["containerID"] = json!("containerd://again");
            pod
        };
        let number = requests.load(Ordering::Relaxed);
        let previous = request.query.contains("previous=true");
        match asked(request) {
            Some(_) if previous => log(&["02.5 twice", "02.5 twice", "02.9 before the crash"]),
            Some(_) => {
                requests.fetch_add(1, Ordering::Relaxed);
                match number {
                    0 => log(&["01.0 one", "02.5 twice"]),
                    // It was still running, so the connection had broken.
                    1 => {
                        assert!(request.query.contains("sinceTime=2026-11-30T12%3A00%3A02"), "{}", request.query);
                        log(&["02.5 twice", "02.5 twice"])
                    }
                    _ => log(&["03.1 after the crash"]),
                }
            }
            None if request.path == PODS => Reply::list(&[instance("cart-abc-aaaaa", 1)]),
            None => match number {
                0 | 1 => Reply::ok(instance("cart-abc-aaaaa", 1)),
                2 => Reply::ok(restarted()),
                _ => Reply::status(404, "NotFound", "not found", &json!({ "kind": "pods" })),
            },
        }
    });
    let ran = home.run_with(&fake, &["services", "logs", "cart", "--follow", "--instance", "aaaaa"]);
    assert_eq!(ran.status, 0, "{}", ran.transcript());
    assert_eq!(
        ran.stdout,
        "aaaaa | one\naaaaa | twice\naaaaa | twice\naaaaa | before the crash\naaaaa | after the crash\n"
    );
}

#[test]
fn the_instances_of_a_rollout_are_picked_up() {
    let home = Home::new();
    let fake = Fake::start(|request| match asked(request) {
        Some("cart-abc-aaaaa") => log(&["01.1 old"]),
        Some("cart-def-ccccc") => {
            assert!(!request.query.contains("tailLines"), "all of what a new instance has written is shown");
            log(&["05.1 new", "05.2 newer"])
        }
        Some(other) => panic!("{other}"),
        None if request.watches() => Reply::events(&[event("ADDED", &instance("cart-def-ccccc", 5))]),
        None if request.path == PODS => Reply::list(&[instance("cart-abc-aaaaa", 1)]),
        // Both are gone once they were read; the watch goes on.
        None if request.path.ends_with("aaaaa") => Reply::ok(instance("cart-abc-aaaaa", 1)),
        None => Reply::ok(instance("cart-def-ccccc", 5)),
    });
    let following = home.start_with(&fake, &["services", "logs", "cart", "--follow", "--tail", "1"]);
    let mut lines = [following.line(), following.line(), following.line()];
    lines.sort();
    assert_eq!(lines, ["aaaaa | old", "ccccc | new", "ccccc | newer"]);
    assert!(following.is_silent(), "nothing is shown twice");
}

#[test]
fn a_connection_that_breaks_is_said_and_no_success() {
    let home = Home::new();
    let fake = Fake::start(|request| match asked(request) {
        Some("cart-abc-bbbbb") => Reply::Broken("2026-11-30T12:00:02.2Z second\n2026-11-30T12:00:03".to_owned()),
        _ => two(request),
    });
    for previous in [&[][..], &["--previous"]] {
        let ran = home.run_with(&fake, &[&["services", "logs", "cart"], previous].concat());
        assert_eq!(ran.status, 1, "{}", ran.transcript());
        assert_eq!(ran.stdout, "aaaaa | first\nbbbbb | second\naaaaa | third\n");
        assert_eq!(ran.stderr, "warning: the log of instance 'cart-abc-bbbbb' goes on: the connection to it broke\n");
    }
}

#[test]
fn only_what_was_not_restarted_is_said_to_be_so() {
    let home = Home::new();
    let fake = Fake::start(|request| match asked(request) {
        Some("cart-abc-aaaaa") => Reply::status(
            400,
            "BadRequest",
            "previous terminated container \"service\" in pod \"cart-abc-aaaaa\" not found",
            &json!({}),
        ),
        Some(_) => Reply::status(404, "NotFound", "pods \"cart-abc-bbbbb\" not found", &json!({ "kind": "pods" })),
        None => two(request),
    });
    let ran = home.run_with(&fake, &["services", "logs", "cart", "--previous"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, "pods \"cart-abc-bbbbb\" not found\n"));
    let fake = Fake::start(|request| match asked(request) {
        Some(_) => Reply::Broken(String::new()),
        None => two(request),
    });
    let ran = home.run_with(&fake, &["services", "logs", "cart", "--previous"]);
    assert_eq!(ran.status, 1);
    assert!(!ran.stderr.contains("has been restarted"), "{}", ran.stderr);
}

#[test]
fn a_node_that_does_not_answer_hides_no_other_instance() {
    let home = Home::new();
    let fake = Fake::start(|request| match asked(request) {
        Some("cart-abc-aaaaa") => {
            Reply::status(500, "InternalError", "dial tcp 10.0.0.7:10250: no route to host", &json!({}))
        }
        _ => two(request),
    });
    let said = "the log of instance 'cart-abc-aaaaa' cannot be read: dial tcp 10.0.0.7:10250: no route to host";
    let ran = home.run_with(&fake, &["services", "logs", "cart"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (1, "bbbbb | second\nbbbbb | fourth\n"), "{}", ran.transcript());
    assert_eq!(ran.stderr, format!("warning: {said}\n"));
    let ran = home.run_with(&fake, &["services", "logs", "cart", "-o", "json"]);
    assert_eq!(ran.stderr, format!("{}\n", json!({ "warning": said })));
}

#[test]
fn a_node_that_does_not_answer_is_said_once_while_its_log_is_followed() {
    let home = Home::new();
    let tries = AtomicUsize::new(0);
    let fake = Fake::start(move |request| match asked(request) {
        Some(_) if tries.fetch_add(1, Ordering::Relaxed) < 2 => {
            Reply::status(500, "InternalError", "no route to host", &json!({}))
        }
        Some(_) => log(&["01.1 first"]),
        None if request.path == PODS => Reply::list(&[instance("cart-abc-aaaaa", 1)]),
        None if tries.load(Ordering::Relaxed) < 3 => Reply::ok(instance("cart-abc-aaaaa", 1)),
        None => Reply::status(404, "NotFound", "not found", &json!({ "kind": "pods" })),
    });
    let ran = home.run_with(&fake, &["services", "logs", "cart", "--follow", "--instance", "aaaaa"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "aaaaa | first\n"), "{}", ran.transcript());
    assert_eq!(ran.stderr, "warning: the log of instance 'cart-abc-aaaaa' cannot be read: no route to host\n");
}
