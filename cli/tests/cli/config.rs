//! `ankka config`.

use insta::assert_snapshot;

use crate::support::{CART, Fake, Home, Ran, Reply, assert_schema};

#[test]
fn a_saved_project_is_used_by_later_commands() {
    let home = Home::new();
    home.file("service.json", CART);
    assert_eq!(
        home.run(&["config", "set", "project", "shop"]).transcript(),
        "status: 0\n----- stdout -----\n----- stderr -----\n"
    );
    assert_eq!(home.run(&["config", "get", "project"]).stdout, "shop\n");
    assert!(home.path().join(".ankka/config.json").is_file());
    home.run(&["config", "set", "namespace-prefix", "acme"]);
    let ran = home.run(&["services", "render", "-f", "service.json"]);
    assert!(ran.stdout.contains("namespace: acme-shop"), "{}", ran.transcript());
    assert_eq!(home.run(&["config", "list"]).stdout, "project           shop\nnamespace-prefix  acme\n");
    let list = home.run(&["config", "list", "-o", "json"]);
    assert_eq!(list.json(), serde_json::json!({ "project": "shop", "namespacePrefix": "acme" }));
    assert_schema("config-list", &list.json());
}

#[test]
fn an_empty_value_removes_a_setting() {
    let home = Home::new();
    home.run(&["config", "set", "project", "shop"]);
    home.run(&["config", "set", "project", ""]);
    assert_snapshot!(home.run(&["config", "get", "project"]).transcript(), @r"
    status: 1
    ----- stdout -----
    ----- stderr -----
    error: the setting 'project' is not saved
    hint: save it with: ankka config set project <value>
    ");
    assert_eq!(home.run(&["config", "list"]).stdout, "project           (unset)\nnamespace-prefix  (unset)\n");
}

#[test]
fn settings_that_cannot_be_used_are_not_saved() {
    let home = Home::new();
    let ran = home.run(&["config", "set", "project", "Shop"]);
    assert_eq!(ran.status, 1);
    assert_eq!(
        ran.stderr,
        "error: project id 'Shop' is invalid: lowercase letters, digits and '-', starting with a letter\n"
    );
    let ran = home.run(&["config", "set", "namespace-prefix", "a-prefix-too-long"]);
    assert_eq!(ran.status, 1);
    assert!(!home.path().join(".ankka/config.json").exists());
}

#[test]
fn a_prefix_that_cannot_be_one_is_refused_wherever_it_comes_from() {
    let home = Home::new();
    let ran = Ran::of(
        home.command(&["services", "get", "cart", "-p", "shop"]).env("ANKKA_K8S_NAMESPACE_PREFIX", "../../other"),
    );
    assert_eq!(
        ran.stderr,
        "error: namespace prefix '../../other' is invalid: at most 16 lowercase letters, digits and '-', starting with a letter\n"
    );
}

#[test]
fn another_file_can_be_named_and_what_others_saved_in_it_stays() {
    let home = Home::new();
    home.file("settings.json", r#"{"later":{"a":1}}"#);
    let ran = Ran::of(home.command(&["config", "set", "project", "shop"]).env("ANKKA_CONFIG", "settings.json"));
    assert_eq!(ran.status, 0, "{}", ran.transcript());
    let text = std::fs::read_to_string(home.path().join("settings.json")).expect("it is there");
    let saved: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(saved, serde_json::json!({ "project": "shop", "later": { "a": 1 } }));
}

#[test]
fn a_broken_file_is_named() {
    let home = Home::new();
    home.file("settings.json", "{");
    let ran = Ran::of(home.command(&["config", "list"]).env("ANKKA_CONFIG", "settings.json"));
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.starts_with("error: failed to read the settings in 'settings.json': "), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("hint: correct the file or delete it\n"), "{}", ran.stderr);
}

#[test]
fn a_broken_file_sends_no_command_to_a_namespace_that_it_may_not_name() {
    let (home, fake) = (Home::new(), Fake::start(|_| Reply::list(&[])));
    std::fs::create_dir(home.path().join(".ankka")).expect("a folder");
    home.file(".ankka/config.json", r#"{ "namespacePrefix": "acme", "#).file("kubeconfig", fake.kubeconfig());
    let commands: [&[&str]; 4] = [
        &["services", "delete", "cart", "-p", "shop"],
        &["services", "list"],
        &["projects", "get", "shop"],
        &["projects", "list"],
    ];
    for command in commands {
        let ran = home.run(&[command, &["--kubeconfig", "kubeconfig"]].concat());
        assert_eq!((ran.status, ran.stdout.as_str()), (1, ""), "{command:?}: {}", ran.transcript());
        assert!(ran.stderr.starts_with("error: failed to read the settings in '"), "{}", ran.stderr);
        assert!(ran.stderr.contains("hint: correct the file or delete it"), "{}", ran.stderr);
    }
    assert_eq!(fake.lines(), [] as [String; 0]);
}

#[test]
fn a_broken_file_stops_no_command_that_needs_nothing_of_it() {
    let (home, fake) = (Home::new(), Fake::start(|_| Reply::list(&[])));
    std::fs::create_dir(home.path().join(".ankka")).expect("a folder");
    home.file(".ankka/config.json", "{").file("kubeconfig", fake.kubeconfig());
    let list = ["services", "list", "--kubeconfig", "kubeconfig", "-p", "shop"];
    let ran = Ran::of(home.command(&list).env("ANKKA_K8S_NAMESPACE_PREFIX", "acme"));
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "no results\n"), "{}", ran.transcript());
    assert!(ran.stderr.starts_with("warning: failed to read the settings in '"), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("; going on without them\n"), "{}", ran.stderr);
    assert!(fake.requests()[0].path.contains("/namespaces/acme-shop/"), "{}", fake.requests()[0].path);
}
