//! `ankka doctor`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::objects::SERVICES;
use crate::support::platform::{forbidden, healthy, process};
use crate::support::{Fake, Home, Ran, Reply, Request, assert_schema};

/// The outcome of a check.
fn outcome<'a>(checks: &'a Value, name: &str) -> &'a Value {
    let checks = checks.as_array().expect("a list");
    &checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name} in {checks:?}"))["outcome"]
}

fn checks(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (i32, Value) {
    let (home, fake) = (Home::new(), Fake::start(answer));
    let ran = home.run_with(&fake, &["doctor", "-o", "json"]);
    assert_schema("doctor", &ran.json());
    (ran.status, ran.json())
}

#[test]
fn a_cluster_in_good_order_has_no_problem() {
    let (home, fake) = (Home::new(), Fake::start(healthy));
    assert_snapshot!(home.run_with(&fake, &["doctor"]).transcript().replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    assert_eq!(checks(healthy).0, 0);
    assert!(fake.requests().iter().all(|request| request.method == "GET"
        || request.query.contains("dryRun")
        || request.path.contains("reviews")));
}

#[test]
fn what_may_not_be_seen_is_unknown_and_no_problem() {
    let (status, found) = checks(|request| match request.path.as_str() {
        "/version" => healthy(request),
        _ => forbidden(request),
    });
    assert_eq!(status, 0, "{found}");
    for name in ["definitions", "webhook", "processes", "project", "permissions", "gateway", "nodes"] {
        assert_eq!(outcome(&found, name), "unknown", "{name}");
    }
    let home = Home::new();
    let fake = Fake::start(|request| match request.path.as_str() {
        "/version" => healthy(request),
        _ => forbidden(request),
    });
    let ran = home.run_with(&fake, &["doctor"]);
    assert!(ran.stdout.contains("nodes             unknown: forbidden\n"), "{}", ran.stdout);
}

#[test]
fn each_thing_that_is_wrong_is_a_problem_with_its_next_step() {
    type Answer = fn(&Request) -> Option<Reply>;
    let table: [(&str, Answer); 9] = [
        ("kubernetes", |request| {
            (request.path == "/version").then(|| {
                Reply::ok(json!({
                    "major": "1", "minor": "29", "gitVersion": "v1.29.0", "gitCommit": "", "gitTreeState": "",
                    "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
                }))
            })
        }),
        ("definitions", |request| {
            let missing = request.path.ends_with("/ankkabuckets.ankka.dev");
            missing
                .then(|| Reply::status(404, "NotFound", "not found", &json!({ "kind": "customresourcedefinitions" })))
        }),
        ("versions", |request| {
            let noted = json!({ "ankka.dev/platform-version": "9.1.0" });
            let definitions = request.path.contains("customresourcedefinitions");
            definitions.then(|| Reply::ok(json!({ "metadata": { "name": "x", "annotations": noted } })))
        }),
        ("namespace prefix", |request| {
            let noted = json!({ "ankka.dev/namespace-prefix": "acme" });
            let definitions = request.path.contains("customresourcedefinitions");
            definitions.then(|| Reply::ok(json!({ "metadata": { "name": "x", "annotations": noted } })))
        }),
        ("webhook", |request| {
            let said = "Internal error occurred: failed calling webhook \"services.ankka.dev\": connection refused";
            (request.path == SERVICES).then(|| Reply::status(500, "InternalError", said, &json!({})))
        }),
        ("processes", |request| {
            let down = || Reply::list(&[process("operator", 0, &json!({}))]);
            (request.path == "/apis/apps/v1/deployments").then(down)
        }),
        ("project", |request| {
            let absent = || Reply::status(404, "NotFound", "not found", &json!({ "kind": "namespaces" }));
            (request.path == "/api/v1/namespaces/ankka-shop").then(absent)
        }),
        ("permissions", |request| {
            let no = || Reply::created(json!({ "spec": {}, "status": { "allowed": false } }));
            request.path.ends_with("selfsubjectaccessreviews").then(no)
        }),
        ("gateway", |request| {
            let absent = || Reply::status(404, "NotFound", "not found", &json!({ "kind": "gateways" }));
            request.path.contains("/gateways/").then(absent)
        }),
    ];
    for (name, answer) in table {
        let (status, found) = checks(move |request| answer(request).unwrap_or_else(|| healthy(request)));
        assert_eq!((status, outcome(&found, name)), (1, &json!("problem")), "{name}: {found}");
        let steps = found.as_array().expect("a list").iter().filter(|check| check["outcome"] == "problem");
        assert!(
            steps.clone().all(|check| check["next"].as_str().is_some_and(|next| !next.is_empty())),
            "{name}: {found}"
        );
    }
}

#[test]
fn a_webhook_that_is_not_asked_is_a_problem() {
    let (status, found) = checks(|request| match request.path.as_str() {
        SERVICES => Reply::created(request.body.clone()),
        _ => healthy(request),
    });
    assert_eq!((status, outcome(&found, "webhook")), (1, &json!("problem")));
}

#[test]
fn one_check_alone_has_to_be_ok() {
    let home = Home::new();
    let only = |fake: &Fake, name: &str| home.run_with(fake, &["doctor", "--only", name]);
    let ran = only(&Fake::start(healthy), "webhook");
    assert_eq!((ran.status, ran.stdout.lines().count()), (0, 1), "{}", ran.transcript());
    let unseen = Fake::start(|request| match request.path.as_str() {
        "/version" => healthy(request),
        _ => forbidden(request),
    });
    let ran = only(&unseen, "webhook");
    assert_eq!((ran.status, ran.stdout.as_str()), (1, "unknown   webhook  unknown: forbidden\n"));
    assert_eq!(only(&unseen, "web hook").status, 2, "there is no such check");
    let all = home.run_with(&Fake::start(healthy), &["doctor", "-o", "json"]).json();
    for check in all.as_array().expect("a list") {
        let name = check["name"].as_str().expect("a name");
        assert_ne!(only(&Fake::start(healthy), name).status, 2, "{name}");
    }
}

#[test]
fn who_may_make_no_project_asks_about_a_service_in_the_own_namespace() {
    let home = Home::new();
    let fake = Fake::start(|request| match (request.method.as_str(), request.path.as_str()) {
        ("POST", SERVICES | "/apis/ankka.dev/v1alpha1/namespaces/default/ankkaservices") => {
            healthy(&Request { path: SERVICES.to_owned(), ..request.clone() })
        }
        ("POST", _) => forbidden(request),
        _ => healthy(request),
    });
    home.file("kubeconfig", fake.kubeconfig());
    let doctor = ["doctor", "--only", "webhook", "--kubeconfig", "kubeconfig"];
    let ran = Ran::of(home.command(&doctor).env_remove("ANKKA_PROJECT"));
    assert_eq!(
        ran.stdout,
        "ok        webhook  it refuses what breaks a rule, in the documented words\n",
        "{}",
        ran.transcript()
    );
    let asked = "POST /apis/ankka.dev/v1alpha1/namespaces/default/ankkaservices";
    assert!(fake.lines().iter().any(|line| line == asked), "{:?}", fake.lines());
}

#[test]
fn without_a_cluster_that_is_the_problem() {
    let home = Home::new();
    let ran = Ran::of(home.command(&["doctor"]).env("KUBECONFIG", "/nope"));
    assert_eq!(
        ran.stdout,
        "problem   cluster  no cluster selected: there is no kubeconfig '/nope'\n                   next: name one with --kubeconfig or KUBECONFIG\n"
    );
    assert_eq!(ran.status, 1);
}

#[test]
fn settings_that_cannot_be_used_are_problems_and_not_off() {
    let (home, fake) = (Home::new(), Fake::start(healthy));
    home.file("kubeconfig", fake.kubeconfig()).file("broken.json", "{").file("none.json", "{}");
    let doctor = ["doctor", "-o", "json", "--kubeconfig", "kubeconfig"];
    let table: [(&[&str], &str, &str, &[&str]); 4] = [
        (&[], "broken.json", "", &["project", "namespace prefix"]),
        (&["-p", "shop"], "broken.json", "", &["project", "namespace prefix"]),
        (&["-p", "Shop"], "none.json", "", &["project"]),
        (&["-p", "shop"], "none.json", "../x", &["project", "namespace prefix"]),
    ];
    for (arguments, settings, prefix, problems) in table {
        let mut command = home.command(&[&doctor[..], arguments].concat());
        let ran = Ran::of(command.env("ANKKA_CONFIG", settings).env("ANKKA_K8S_NAMESPACE_PREFIX", prefix));
        assert_schema("doctor", &ran.json());
        assert_eq!(ran.status, 1, "{arguments:?} {settings}: {}", ran.transcript());
        for problem in problems {
            assert_eq!(outcome(&ran.json(), problem), "problem", "{problem}: {}", ran.transcript());
        }
        let steps = ran.json();
        let steps = steps.as_array().expect("a list").iter().filter(|check| check["outcome"] == "problem");
        assert!(steps.clone().all(|check| check["next"].as_str().is_some_and(|next| !next.is_empty())), "{steps:?}");
    }
    let mut command = home.command(&doctor);
    let ran = Ran::of(command.env("ANKKA_CONFIG", "none.json"));
    assert_eq!((ran.status, outcome(&ran.json(), "project")), (0, &json!("off")), "{}", ran.transcript());
}
