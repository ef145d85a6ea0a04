//! `ankka completion`.

use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::complete;
use crate::error::{Error, Exit, Outcome};
use crate::output;

/// Prints a completion script, e.g. for `source <(ankka completion bash)`. It completes names in the cluster too
#[derive(clap::Args)]
pub(crate) struct CompletionArgs {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(crate) fn completion(args: &CompletionArgs) -> Outcome {
    let shell = args.shell.to_string();
    let failed = |why: &str| Error::new(format!("failed to write a completion script for {shell}: {why}"));
    let shells = Shells::builtins();
    let completer = shells.completer(&shell).ok_or_else(|| failed("the shell is not known"))?;
    let mut script = Vec::new();
    completer
        .write_registration(complete::VARIABLE, "ankka", "ankka", "ankka", &mut script)
        .map_err(|cause| failed(&cause.to_string()))?;
    output::data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}
