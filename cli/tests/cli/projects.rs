//! `ankka projects`.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::objects::{PROJECTS, REVIEWS, event, project};
use crate::support::{Fake, Home, Reply, assert_schema};

fn who(name: &str) -> Reply {
    Reply::created(json!({ "status": { "userInfo": { "username": name } } }))
}

#[test]
fn whoever_is_named_administers_a_new_project_and_nobody_else() {
    let home = Home::new();
    let fake = Fake::start(|_| Reply::created(project("shop", true)));
    let named = ["--administrator", "ann", "--administrator=group:team", "--administrator=serviceaccount:ci/deployer"];
    let ran = home.run_with(&fake, &[&["projects", "create", "shop", "--wait", "0"], &named[..]].concat());
    assert_eq!(ran.status, 0, "{}", ran.transcript());
    assert_eq!(fake.lines(), [format!("POST {PROJECTS}")]);
    assert_eq!(
        fake.requests()[0].body["spec"]["administrators"],
        json!([
            { "kind": "User", "name": "ann" },
            { "kind": "Group", "name": "team" },
            { "kind": "ServiceAccount", "name": "deployer", "namespace": "ci" },
        ])
    );
    let ran = home.run_with(&fake, &["projects", "create", "shop", "--administrator", "group:"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (1, "error: administrator name must not be empty\n"));
}

#[test]
fn without_a_name_it_is_the_creator_as_the_cluster_knows_it() {
    let home = Home::new();
    let fake = Fake::start(|request| match request.path.as_str() {
        REVIEWS => who("system:serviceaccount:ci:deployer"),
        _ => Reply::created(project("shop", true)),
    });
    home.run_with(&fake, &["projects", "create", "shop", "--wait", "0"]);
    assert_eq!(
        fake.requests()[1].body["spec"]["administrators"],
        json!([{ "kind": "ServiceAccount", "name": "deployer", "namespace": "ci" }])
    );
    let fake = Fake::start(|_| Reply::status(403, "Forbidden", "no role", &json!({})));
    let ran = home.run_with(&fake, &["projects", "create", "shop"]);
    assert_eq!(
        ran.stderr,
        "error: failed to ask the cluster who you are: no role\nhint: name who administers the project with --administrator\n"
    );
}

#[test]
fn a_new_project_is_waited_for() {
    let home = Home::new();
    let fake = Fake::start(|request| match (request.method.as_str(), request.watches()) {
        ("POST", _) if request.path == REVIEWS => who("ann"),
        ("POST", _) => Reply::created(project("shop", false)),
        (_, true) => Reply::events(&[event("MODIFIED", &project("shop", true))]),
        _ => Reply::list(&[project("shop", false)]),
    });
    let ran = home.run_with(&fake, &["projects", "create", "shop", "--location", "eu"]);
    assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.as_str()), (0, "project/shop created\n", ""));
    let sent = &fake.requests()[1];
    assert_eq!(sent.line(), format!("POST {PROJECTS}"));
    let ann = json!([{ "kind": "User", "name": "ann" }]);
    assert_eq!(sent.body["spec"], json!({ "location": "eu", "administrators": ann }));
}

#[test]
fn a_project_that_does_not_become_ready_says_why() {
    let home = Home::new();
    let fake = Fake::start(|request| match (request.method.as_str(), request.watches()) {
        ("POST", _) if request.path == REVIEWS => who("ann"),
        ("POST", _) => Reply::created(project("shop", false)),
        (_, true) => Reply::Silence,
        _ => Reply::list(&[project("shop", false)]),
    });
    assert_snapshot!(home.run_with(&fake, &["projects", "create", "shop", "--wait", "1s"]).transcript(), @r"
    status: 1
    ----- stdout -----
    project/shop created
    ----- stderr -----
    error: project 'shop' was created and is not ready: waited 1s: no operator has reported on this project
    hint: look again with: ankka projects get shop
    ");
}

#[test]
fn a_project_that_is_there_already_is_an_error() {
    let home = Home::new();
    let fake = Fake::start(|request| match request.path.as_str() {
        REVIEWS => who("ann"),
        _ => Reply::status(409, "AlreadyExists", "already exists", &json!({ "kind": "ankkaprojects" })),
    });
    let ran = home.run_with(&fake, &["projects", "create", "shop"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (1, "error: project 'shop' already exists\n"));
    let ran = home.run_with(&fake, &["projects", "create", "platform"]);
    assert_eq!(ran.stderr, "error: project id 'platform' is reserved for the platform's own workloads\n");
}

#[test]
fn projects_are_listed_and_shown() {
    let home = Home::new();
    let fake = Fake::start(|request| match request.path.as_str() {
        PROJECTS => Reply::list(&[project("new", false), project("shop", true)]),
        _ => Reply::ok(project("shop", true)),
    });
    assert_snapshot!("projects-list", home.run_with(&fake, &["projects", "list"]).transcript());
    assert_snapshot!("projects-get", home.run_with(&fake, &["projects", "get", "shop"]).transcript());
    assert_schema("projects-list", &home.run_with(&fake, &["projects", "list", "-o", "json"]).json());
    assert_schema("project", &home.run_with(&fake, &["projects", "get", "shop", "-o", "json"]).json());
}

/// A cluster in which project `shop` holds these, by plural.
fn holding(held: &'static [(&'static str, &'static str)]) -> Fake {
    Fake::start(move |request| {
        let plural = request.path.rsplit('/').next().unwrap_or_default();
        match request.method.as_str() {
            "DELETE" => Reply::ok(json!({ "kind": "Status", "status": "Success" })),
            _ if request.path == format!("{PROJECTS}/shop") => Reply::ok(project("shop", true)),
            _ if plural == "secrets" && !request.query.contains("fieldSelector=type") => {
                panic!("only credentials are listed")
            }
            _ => Reply::list(
                &held
                    .iter()
                    .filter(|(kind, _)| *kind == plural)
                    .map(|(_, name)| json!({ "metadata": { "name": name, "namespace": "ankka-shop" } }))
                    .collect::<Vec<_>>(),
            ),
        }
    })
}

#[test]
fn a_project_that_holds_anything_is_not_deleted() {
    for held in [
        &[("ankkaservices", "cart"), ("ankkabuckets", "old")][..],
        &[("ankkadatabases", "cart")],
        &[("secrets", "cart-db")],
    ] {
        let (home, fake) = (Home::new(), holding(held));
        let ran = home.run_with(&fake, &["projects", "delete", "shop"]);
        assert_eq!(ran.status, 1);
        for (_, name) in held {
            assert!(ran.stderr.contains(&format!("'{name}'")), "{}", ran.stderr);
        }
        assert!(ran.stderr.contains("docs/removing-data.md"), "{}", ran.stderr);
        assert!(fake.requests().iter().all(|request| request.method == "GET"));
    }
}

#[test]
fn an_empty_project_is_deleted_and_its_namespace_stays() {
    let (home, fake) = (Home::new(), holding(&[]));
    assert_snapshot!(home.run_with(&fake, &["projects", "delete", "shop"]).transcript(), @r"
    status: 0
    ----- stdout -----
    project/shop deleted
    ----- stderr -----
    kept: namespace 'ankka-shop'; it holds nothing of the platform's, remove it with: kubectl delete namespace ankka-shop
    ");
    let deleted = fake.requests().into_iter().find(|request| request.method == "DELETE").expect("it was deleted");
    assert_eq!(deleted.body["preconditions"]["uid"], "u-1");
    assert_schema("project-deleted", &home.run_with(&fake, &["projects", "delete", "shop", "-o", "json"]).json());
}

#[test]
fn what_cannot_be_seen_is_not_taken_for_absent() {
    let home = Home::new();
    let fake = Fake::start(|request| match request.path.as_str() {
        path if path.ends_with("/secrets") => Reply::status(
            403,
            "Forbidden",
            "secrets is forbidden: User \"ann\" cannot list resource \"secrets\"",
            &json!({ "kind": "secrets" }),
        ),
        path if path.ends_with("/shop") => Reply::ok(project("shop", true)),
        _ => Reply::list(&[]),
    });
    let ran = home.run_with(&fake, &["projects", "delete", "shop"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("User \"ann\" cannot list resource \"secrets\""), "{}", ran.stderr);
    assert!(fake.requests().iter().all(|request| request.method == "GET"));
}
