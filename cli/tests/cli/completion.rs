//! `ankka completion`, and what the scripts ask for.

use std::time::Instant;

use serde_json::json;

use crate::support::objects::{PROJECTS, SERVICES, service, status};
use crate::support::{Fake, Home, Ran, Reply};

/// What the shell is offered for the last of these words.
fn offered(home: &Home, words: &[&str]) -> Ran {
    let index = (words.len() - 1).to_string();
    let arguments = [&["--"], words].concat();
    let mut command = home.command(&arguments);
    command.env("ANKKA_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", index).env("_CLAP_IFS", "\n");
    Ran::of(&mut command)
}

fn cluster() -> Fake {
    Fake::start(|request| match request.path.as_str() {
        SERVICES => Reply::list(&["cart", "catalog", "mail"].map(|name| service(name, 1, &status(1, "Ready", 1, 1)))),
        PROJECTS => Reply::list(&["shop", "shipping"].map(|name| json!({ "metadata": { "name": name } }))),
        other => panic!("{other}"),
    })
}

#[test]
fn there_is_a_script_for_every_shell() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = home.run(&["completion", shell]);
        assert_eq!(ran.status, 0, "{}", ran.transcript());
        assert!(ran.stdout.contains("ANKKA_COMPLETE") && ran.stdout.contains("ankka"), "{shell}: {}", ran.stdout);
    }
}

#[test]
fn commands_and_options_are_completed_without_a_cluster() {
    let home = Home::new();
    assert_eq!(offered(&home, &["ankka", "services", "val"]).stdout, "validate");
    assert!(offered(&home, &["ankka", "services", "logs", "--fol"]).stdout.contains("--follow"));
}

#[test]
fn names_of_services_and_projects_are_completed_with_one_request() {
    let (home, fake) = (Home::new(), cluster());
    home.file("kubeconfig", fake.kubeconfig());
    let named = ["-p", "shop", "--kubeconfig", "kubeconfig"];
    for command in ["get", "logs", "restart", "exec"] {
        let ran = offered(&home, &[&["ankka", "services", command], &named[..], &["ca"]].concat());
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("cart\ncatalog", ""), "{command}");
    }
    assert_eq!(fake.lines().len(), 4, "one request each: {:?}", fake.lines());
    let ran = offered(&home, &["ankka", "--kubeconfig", "kubeconfig", "projects", "get", "sh"]);
    assert_eq!(ran.stdout, "shop\nshipping");
    let ran = offered(&home, &["ankka", "--kubeconfig", "kubeconfig", "services", "list", "-p", "ship"]);
    assert_eq!(ran.stdout, "shipping");
}

#[test]
fn whatever_fails_is_silent_and_quick() {
    let home = Home::new();
    home.file("broken", "{");
    let fake = Fake::start(|_| Reply::Silence);
    home.file("slow", fake.kubeconfig());
    let begun = Instant::now();
    for kubeconfig in ["absent", "broken", "slow"] {
        let ran = offered(&home, &["ankka", "services", "get", "-p", "shop", "--kubeconfig", kubeconfig, "ca"]);
        assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""), "{kubeconfig}");
    }
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    let ran = offered(&home, &["ankka", "services", "get", "ca"]);
    assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""), "no project is selected");
}
