//! Runs the binary in a home of its own.

mod fake;
pub(crate) mod living;
pub(crate) mod objects;
pub(crate) mod platform;
mod running;
mod schema;
mod stored;

use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;

pub(crate) use fake::{Fake, Reply, Request};
pub(crate) use running::Running;
pub(crate) use schema::assert_schema;
pub(crate) use stored::Stored;

/// A minimal descriptor that keeps every rule.
pub(crate) const CART: &str = r#"{ "name": "cart", "service": { "image": "registry.example.com/acme/cart:1.4.2" } }"#;

/// A home directory with nothing in it, where commands run.
pub(crate) struct Home {
    folder: TempDir,
}

/// What a command printed and how it ended.
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Puts a file into the home.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        std::fs::write(self.path().join(name), text).expect("the home can be written to");
        self
    }

    /// The command, in the home, with no variable set but what every process has.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ankka"));
        command.env_clear().env("HOME", self.path()).current_dir(self.path()).args(arguments);
        command
    }

    /// Runs the command.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&mut self.command(arguments))
    }

    /// Runs the command against a fake API server, in project `shop`.
    pub(crate) fn run_with(&self, fake: &Fake, arguments: &[&str]) -> Ran {
        self.file("kubeconfig", fake.kubeconfig());
        Ran::of(self.command(arguments).env("KUBECONFIG", self.path().join("kubeconfig")).env("ANKKA_PROJECT", "shop"))
    }

    /// Starts the command against a fake API server, in project `shop`, and does not wait for its end.
    pub(crate) fn start_with(&self, fake: &Fake, arguments: &[&str]) -> Running {
        self.file("kubeconfig", fake.kubeconfig());
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ankka"));
        command.env_clear().env("HOME", self.path()).current_dir(self.path()).args(arguments);
        command.env("KUBECONFIG", self.path().join("kubeconfig")).env("ANKKA_PROJECT", "shop");
        Running::start(command)
    }
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().expect("the command runs");
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        Self {
            status: output.status.code().expect("the command was not killed"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Everything, for a snapshot.
    pub(crate) fn transcript(&self) -> String {
        format!("status: {}\n----- stdout -----\n{}----- stderr -----\n{}", self.status, self.stdout, self.stderr)
    }

    /// Standard output as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|bad| panic!("{bad}: {}", self.transcript()))
    }

    /// The error on standard error, as JSON.
    pub(crate) fn error(&self) -> serde_json::Value {
        serde_json::from_str(&self.stderr).unwrap_or_else(|bad| panic!("{bad}: {}", self.transcript()))
    }
}
