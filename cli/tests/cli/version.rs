//! `ankka version`.

use serde_json::json;

use crate::support::{Fake, Home, Reply, assert_schema};

const CLIENT: &str = env!("CARGO_PKG_VERSION");

fn platform(version: &'static str) -> Fake {
    Fake::start(move |request| {
        assert_eq!(request.path, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ankkaservices.ankka.dev");
        Reply::ok(
            json!({ "metadata": { "name": "ankkaservices.ankka.dev", "annotations": { "ankka.dev/platform-version": version } } }),
        )
    })
}

#[test]
fn both_versions_are_shown() {
    let (home, fake) = (Home::new(), platform(CLIENT));
    let ran = home.run_with(&fake, &["version"]);
    assert_eq!(ran.stdout, format!("client    {CLIENT}\nplatform  {CLIENT}\n"));
    assert_eq!(ran.stderr, "");
    let json = home.run_with(&fake, &["version", "-o", "json"]).json();
    assert_schema("version", &json);
}

#[test]
fn versions_that_are_apart_are_warned_about() {
    let (home, fake) = (Home::new(), platform("9.1.0"));
    let ran = home.run_with(&fake, &["version"]);
    assert_eq!(ran.status, 0);
    assert_eq!(
        ran.stderr,
        format!(
            "warning: this command is {CLIENT} and the platform is 9.1.0: use the version that comes with the platform\n"
        )
    );
}

#[test]
fn another_prefix_of_project_namespaces_is_warned_about() {
    let home = Home::new();
    let fake = Fake::start(|_| {
        let noted = json!({ "ankka.dev/platform-version": CLIENT, "ankka.dev/namespace-prefix": "acme" });
        Reply::ok(json!({ "metadata": { "name": "ankkaservices.ankka.dev", "annotations": noted } }))
    });
    let ran = home.run_with(&fake, &["version"]);
    let advice = "save it with: ankka config set namespace-prefix acme\n";
    assert!(ran.stderr.starts_with("warning: ") && ran.stderr.ends_with(advice), "{}", ran.stderr);
    home.run(&["config", "set", "namespace-prefix", "acme"]);
    assert_eq!(home.run_with(&fake, &["version"]).stderr, "");
}

#[test]
fn without_a_cluster_its_own_version_is_shown() {
    let home = Home::new();
    let ran = home.run(&["version"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, format!("client  {CLIENT}\n").as_str()));
    assert_eq!(ran.stderr, "note: the platform's version is not known: no cluster selected: there is no kubeconfig\n");
    let ran = home.run(&["version", "--client", "-o", "json"]);
    assert_eq!(ran.json(), json!({ "client": CLIENT, "platform": null }));
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_cluster_that_answers_is_not_said_to_be_out_of_reach() {
    let home = Home::new();
    let refusals = [
        (401, "Unauthorized", "Unauthorized", "the cluster rejected the login"),
        (403, "Forbidden", "no role", "no role"),
    ];
    for (code, reason, message, said) in refusals {
        let fake = Fake::start(move |_| Reply::status(code, reason, message, &json!({})));
        let ran = home.run_with(&fake, &["version"]);
        assert_eq!(ran.stderr, format!("note: the platform's version is not known: {said}\n"));
    }
}

#[test]
fn a_cluster_without_the_platform_is_said_to_be_one() {
    let home = Home::new();
    let fake =
        Fake::start(|_| Reply::status(404, "NotFound", "not found", &json!({ "kind": "customresourcedefinitions" })));
    let ran = home.run_with(&fake, &["version"]);
    assert_eq!(
        ran.stderr,
        "note: the platform's version is not known: the ankka chart is not installed in this cluster\n"
    );
}
