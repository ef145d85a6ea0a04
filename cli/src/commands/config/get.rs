//! `ankka config get`.

use super::Key;
use crate::error::{Error, Exit, Outcome};
use crate::output;
use crate::settings::Settings;

/// What to print.
#[derive(clap::Args)]
pub(crate) struct GetArgs {
    /// The setting
    #[arg(value_enum)]
    key: Key,
}

/// Prints the setting's value.
pub(crate) fn get(args: &GetArgs) -> Outcome {
    let name = args.key.name();
    let value = args.key.of(&mut Settings::saved()?).take().ok_or_else(|| {
        Error::new(format!("the setting '{name}' is not saved"))
            .hint(format!("save it with: ankka config set {name} <value>"))
    })?;
    output::data(&value)?;
    Ok(Exit::Success)
}
