//! The commands that the documentation shows are commands that there are.

use std::path::{Path, PathBuf};

use crate::support::Home;

/// Every page of the documentation, and those beside it that show commands.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders = vec![root.join("docs")];
    let mut pages =
        vec![root.join("README.md"), root.join("helm/ankka/README.md"), root.join("examples/cart/README.md")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.extension() {
                None if path.is_dir() => folders.push(path),
                Some(extension) if extension == "md" => pages.push(path),
                _ => {}
            }
        }
    }
    pages
}

/// The command lines that begin with `$ ankka`, without what the shell makes of their output.
fn commands(page: &str) -> Vec<String> {
    let lines = page.lines().filter_map(|line| line.trim_start().strip_prefix("$ ankka "));
    let plain = |line: &str| {
        [" | ", " > ", "   #", " && "].iter().fold(line, |line, end| line.split(end).next().unwrap_or(line)).to_owned()
    };
    lines.map(plain).collect()
}

#[test]
fn every_command_that_is_shown_is_understood() {
    let home = Home::new();
    let mut tried = 0;
    for page in pages() {
        for command in commands(&std::fs::read_to_string(&page).expect("a page")) {
            let (ours, _) = command.split_once(" -- ").unwrap_or((&command, ""));
            // Help is printed once everything before it was understood.
            let arguments: Vec<_> = ours.split_whitespace().chain(["--help"]).collect();
            let ran = home.run(&arguments);
            assert_eq!(ran.status, 0, "{}: ankka {command}\n{}", page.display(), ran.stderr);
            tried += 1;
        }
    }
    assert!(tried > 20, "only {tried} commands");
}

#[test]
fn a_command_that_there_is_not_is_noticed() {
    let home = Home::new();
    for command in ["services frobnicate --help", "services get cart --loudly --help"] {
        assert_ne!(home.run(&command.split(' ').collect::<Vec<_>>()).status, 0, "{command}");
    }
}
