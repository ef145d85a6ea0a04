//! `ankka completion`.

use clap_complete::Shell;

use crate::args;
use crate::error::{Exit, Outcome};
use crate::output;

/// Prints a completion script, e.g. for `source <(ankka completion bash)`
#[derive(clap::Args)]
pub(crate) struct CompletionArgs {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(crate) fn completion(args: &CompletionArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "ankka", &mut script);
    output::data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}
