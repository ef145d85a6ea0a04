//! The command under both of its names, and what it says of itself.

use std::os::unix::fs::symlink;

use assert_cmd::Command;
use insta::assert_snapshot;

use crate::support::{Home, Ran};

fn plugin(home: &Home, arguments: &[&str]) -> Ran {
    let path = home.path().join("kubectl-ankka");
    if !path.exists() {
        symlink(env!("CARGO_BIN_EXE_ankka"), &path).expect("a link can be made");
    }
    Ran::of(Command::new(path).env_clear().env("HOME", home.path()).args(arguments))
}

#[test]
fn kubectl_shows_its_plugin_under_the_name_people_type() {
    let home = Home::new();
    let ran = plugin(&home, &["services", "apply"]);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("Usage: kubectl ankka services apply --file <FILE>"), "{}", ran.stderr);
    let ran = plugin(&home, &["--help"]);
    assert!(ran.stdout.contains("Usage: kubectl ankka [OPTIONS] <COMMAND>"), "{}", ran.stdout);
}

#[test]
fn help_lists_every_command() {
    assert_snapshot!(Home::new().run(&["--help"]).stdout);
}

#[test]
fn the_version_is_that_of_the_platform_it_comes_with() {
    let ran = Home::new().run(&["--version"]);
    assert_eq!(ran.stdout, format!("ankka {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let home = Home::new();
    let ran = home.run(&["man", "pages"]);
    assert_eq!(ran.status, 0, "{}", ran.transcript());
    let page = |name: &str| std::fs::read_to_string(home.path().join("pages").join(name)).expect(name);
    assert!(page("ankka.1").contains("Runs services on Kubernetes"));
    assert!(page("ankka-services-apply.1").contains("dry\\-run"));
    assert!(page("ankka-services-database-reissue.1").contains("database login"));
    assert!(page("ankka-projects-delete.1").contains("No command deletes data"));
}
