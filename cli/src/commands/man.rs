//! `ankka man`.

use std::path::PathBuf;

use crate::args;
use crate::error::{Error, Exit, Outcome};
use crate::input::reason;

/// Writes one manual page a command, e.g. into `/usr/local/share/man/man1`
#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// The directory; made when it is not there
    directory: PathBuf,
}

/// Writes the pages.
pub(crate) fn man(args: &ManArgs) -> Outcome {
    std::fs::create_dir_all(&args.directory)
        .and_then(|()| clap_mangen::generate_to(args::command(), &args.directory))
        .map_err(|cause| {
            Error::new(format!("failed to write manual pages into '{}': {}", args.directory.display(), reason(&cause)))
        })?;
    Ok(Exit::Success)
}
