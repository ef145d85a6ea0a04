//! Which cluster a command talks to.

use serde_json::json;

use crate::support::objects::SERVICES;
use crate::support::{Fake, Home, Ran, Reply};

const LIST: [&str; 4] = ["services", "list", "-p", "shop"];

fn empty() -> Fake {
    Fake::start(|request| match request.path.as_str() {
        SERVICES => Reply::list(&[]),
        _ => Reply::status(403, "Forbidden", "it is hidden", &json!({})),
    })
}

/// How often its services were listed.
fn asked(fake: &Fake) -> usize {
    fake.requests().iter().filter(|request| request.path == SERVICES).count()
}

fn two_contexts(first: &Fake, second: &Fake) -> String {
    let read = |fake: &Fake| serde_json::from_str::<serde_json::Value>(&fake.kubeconfig()).expect("JSON");
    let (first, second) = (read(first), read(second));
    let entry = |name: &str, of: &serde_json::Value| json!({ "name": name, "cluster": of["clusters"][0]["cluster"] });
    let context = |name: &str| json!({ "name": name, "context": { "cluster": name, "user": "u" } });
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "one",
        "clusters": [entry("one", &first), entry("two", &second)],
        "contexts": [context("one"), context("two")],
        "users": [{ "name": "u", "user": {} }],
    })
    .to_string()
}

#[test]
fn the_current_context_is_used_unless_another_is_named() {
    let (home, one, two) = (Home::new(), empty(), empty());
    home.file("both", two_contexts(&one, &two));
    let ran = home.run(&[&LIST[..], &["--kubeconfig", "both"]].concat());
    assert_eq!(ran.status, 0, "{}", ran.transcript());
    assert_eq!((asked(&one), asked(&two)), (1, 0));
    home.run(&[&LIST[..], &["--kubeconfig", "both", "--context", "two"]].concat());
    assert_eq!((asked(&one), asked(&two)), (1, 1));
    let ran = home.run(&[&LIST[..], &["--kubeconfig", "both", "--context", "three"]].concat());
    assert_eq!(
        ran.stderr,
        "error: the kubeconfig has no context 'three'\nhint: list them with: kubectl config get-contexts\n"
    );
}

#[test]
fn files_are_merged_and_those_that_are_not_there_are_skipped() {
    let (home, one, two) = (Home::new(), empty(), empty());
    home.file("one", one.kubeconfig());
    home.file("two", two_contexts(&one, &two));
    let ran = Ran::of(home.command(&[&LIST[..], &["--context", "two"]].concat()).env("KUBECONFIG", "absent:one:two"));
    assert_eq!(ran.status, 0, "{}", ran.transcript());
    assert_eq!((asked(&one), asked(&two)), (0, 1));
}

#[test]
fn the_file_in_the_home_is_used_last() {
    let (home, fake) = (Home::new(), empty());
    std::fs::create_dir(home.path().join(".kube")).expect("a folder");
    home.file(".kube/config", fake.kubeconfig());
    assert_eq!(home.run(&LIST).stdout, "no results\n");
}

#[test]
fn without_a_cluster_it_says_how_to_name_one() {
    let home = Home::new();
    let ran = home.run(&LIST);
    assert_eq!(ran.status, 1);
    assert_eq!(
        ran.stderr,
        "error: no cluster selected: there is no kubeconfig\nhint: name one with --kubeconfig or KUBECONFIG\n"
    );
    let ran = Ran::of(home.command(&LIST).env("KUBECONFIG", "/nope:/neither"));
    assert_eq!(
        ran.stderr,
        "error: no cluster selected: there is no kubeconfig '/nope', '/neither'\nhint: name one with --kubeconfig or KUBECONFIG\n"
    );
    let ran = home.run(&[&LIST[..], &["--kubeconfig", "absent"]].concat());
    assert!(ran.stderr.starts_with("error: failed to read the kubeconfig 'absent': "), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("absent").count(), 1, "said once: {}", ran.stderr);
}

#[test]
fn a_cluster_that_does_not_answer_is_named() {
    let home = Home::new();
    let gone = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let fake = empty();
    let kubeconfig = fake.kubeconfig();
    let server = kubeconfig.split("http://").nth(1).and_then(|rest| rest.split('"').next()).expect("an address");
    home.file("kubeconfig", kubeconfig.replace(server, &gone.to_string()));
    let ran = home.run(&[&LIST[..], &["--kubeconfig", "kubeconfig"]].concat());
    assert_eq!(ran.status, 1);
    assert!(
        ran.stderr.starts_with(&format!("error: could not reach the cluster at http://{gone}: ")),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("hint: is it running"), "{}", ran.stderr);
}
