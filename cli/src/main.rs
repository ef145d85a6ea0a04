//! The `ankka` command. `args` says what can be asked, each file of `commands` does one thing, `cluster` talks to Kubernetes,
//! `diff` compares, `wait` follows a rollout, `logs` merges what instances write, and `show` lays out what is printed.

mod args;
mod cluster;
mod commands;
mod complete;
mod diff;
mod duration;
mod error;
mod input;
mod logs;
mod output;
mod settings;
mod show;
#[cfg(test)]
mod shown_commands;
mod wait;

use std::process::ExitCode;

fn main() -> ExitCode {
    complete::answer();
    let cli = args::parse();
    output::for_programs(cli.command.json());
    match commands::run(cli) {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::error(&error);
            ExitCode::FAILURE
        }
    }
}
