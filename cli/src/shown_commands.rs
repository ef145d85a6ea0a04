//! The commands that the documentation shows and that messages advise are commands that there are: each is read as the command
//! line is, required arguments included.

use std::path::{Path, PathBuf};

use ankka_desired::Cause;
use clap::error::ErrorKind;

use crate::args;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every file below the folders whose name ends so.
fn files(folders: &[&str], extension: &str) -> Vec<PathBuf> {
    let mut folders: Vec<_> = folders.iter().map(|folder| root().join(folder)).collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                files.push(path);
            }
        }
    }
    files
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file that can be read")
}

/// What is wrong with a command, without `ankka` before it; what follows `--` is not ours.
fn refusal(command: &str) -> Option<String> {
    let words = std::iter::once("ankka").chain(command.split_whitespace());
    match args::command().try_get_matches_from(words) {
        Err(refused) if refused.kind() != ErrorKind::DisplayHelp => Some(refused.to_string()),
        _ => None,
    }
}

/// The command lines of a page that begin with `$ ankka`, without what the shell makes of their output.
fn shown(page: &str) -> Vec<String> {
    let lines = page.lines().filter_map(|line| line.trim_start().strip_prefix("$ ankka "));
    let plain = |line: &str| {
        let ends = [" | ", " > ", " < ", "   #", " && "];
        ends.iter().fold(line, |line, end| line.split(end).next().unwrap_or(line)).to_owned()
    };
    lines.map(plain).collect()
}

/// The commands that a source file's texts advise, with `1` for each name that is filled in.
fn advised(source: &str) -> Vec<String> {
    let code: Vec<_> = source.lines().map(str::trim_start).filter(|line| !line.starts_with("//")).collect();
    // A setting's name cannot be any word.
    let code = code.join("\n").replace("\\\n", "").replace("config set {name}", "config set project");
    let begun = [": ankka ", "\"ankka "].into_iter().flat_map(|begin| code.split(begin).skip(1));
    let commands = begun.map(|rest| rest.split(['"', '\'', '`', ';', ',', '\n']).next().unwrap_or_default());
    commands.filter(|command| args::command().find_subcommand(first(command)).is_some()).map(filled_in).collect()
}

fn first(command: &str) -> &str {
    command.split(' ').next().unwrap_or_default()
}

fn filled_in(command: &str) -> String {
    let mut parts = command.split('{');
    let before = parts.next().unwrap_or_default().to_owned();
    parts.fold(before, |text, part| text + "1" + part.split_once('}').map_or("", |(_, rest)| rest))
}

#[test]
fn every_command_of_the_documentation_is_understood() {
    let mut pages = files(&["docs"], "md");
    pages.extend(["README.md", "helm/ankka/README.md", "examples/cart/README.md"].map(|page| root().join(page)));
    let mut tried = 0;
    for page in pages {
        for command in shown(&read(&page)) {
            assert_eq!(refusal(&command), None, "{}: ankka {command}", page.display());
            tried += 1;
        }
    }
    assert!(tried > 40, "only {tried} commands");
}

#[test]
fn every_command_that_a_message_advises_is_understood() {
    let folders =
        ["cli/src", "crds/src", "operator/src", "operator/desired/src", "operator/database/src", "webhook/src"];
    let (mut tried, mut refused) = (0, Vec::new());
    for file in files(&folders, "rs") {
        for command in advised(&read(&file)) {
            refused.extend(refusal(&command).map(|why| format!("{}: ankka {command}: {why}", file.display())));
            tried += 1;
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(tried > 20, "only {tried} commands");
}

#[test]
fn every_next_step_of_a_cause_is_understood() {
    let steps = Cause::ALL.map(|cause| cause.row().next);
    let commands: Vec<_> = steps.iter().flat_map(|step| advised(step)).collect();
    for command in &commands {
        assert_eq!(refusal(command), None, "ankka {command}");
    }
    assert!(commands.contains(&"projects secrets set 1 1=- -p 1".to_owned()), "{commands:?}");
    let mentioned: usize = steps.iter().map(|step| step.matches("ankka ").count()).sum();
    assert_eq!(commands.len(), mentioned, "a command was overlooked: {commands:?}");
}

#[test]
fn a_command_that_there_is_not_or_that_lacks_something_is_noticed() {
    for command in ["services frobnicate", "services get cart --loudly", "services get", "projects secrets set -p shop"]
    {
        assert!(refusal(command).is_some(), "{command}");
    }
    // In two parts, so that it is no message of this file's.
    let message = ["\"see: ankka", " services \\\n   get {name} -p {}, or\""].concat();
    assert_eq!(advised(&message), ["services get 1 -p 1"]);
}
