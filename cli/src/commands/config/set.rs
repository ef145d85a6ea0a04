//! `ankka config set`.

use super::Key;
use crate::error::{Exit, Outcome};
use crate::settings::{Settings, checked_prefix};

/// What to save.
#[derive(clap::Args)]
pub(crate) struct SetArgs {
    /// The setting
    #[arg(value_enum)]
    key: Key,
    /// Its value; empty removes it
    value: String,
}

/// Saves the setting.
pub(crate) fn set(SetArgs { key, value }: SetArgs) -> Outcome {
    let mut settings = Settings::saved()?;
    let value = Some(value).filter(|value| !value.is_empty());
    match (key, &value) {
        (Key::Project, Some(id)) => {
            settings.project(id)?;
        }
        (Key::NamespacePrefix, Some(prefix)) => checked_prefix(prefix)?,
        (_, None) => {}
    }
    *key.of(&mut settings) = value;
    settings.save()?;
    Ok(Exit::Success)
}
