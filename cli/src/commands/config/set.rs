//! `ankka config set`.

use ankka_crds::project;

use super::Key;
use crate::error::{Error, Exit, Outcome};
use crate::settings::Settings;

/// Longest prefix: with it and the longest project id, a namespace's name still fits.
const LONGEST_PREFIX: usize = 16;

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
    let mut settings = Settings::load()?;
    let value = Some(value).filter(|value| !value.is_empty());
    match (key, &value) {
        (Key::Project, Some(id)) => {
            settings.project(id)?;
        }
        (Key::NamespacePrefix, Some(prefix)) if !fits(prefix) => {
            return Err(Error::new(format!(
                "namespace prefix '{prefix}' is invalid: at most {LONGEST_PREFIX} lowercase letters, digits and '-', starting with a letter"
            )));
        }
        _ => {}
    }
    *key.of(&mut settings) = value;
    settings.save()?;
    Ok(Exit::Success)
}

/// A prefix follows the rule of project ids, reserved words aside, and is shorter.
fn fits(prefix: &str) -> bool {
    prefix.len() <= LONGEST_PREFIX && project::validate(&format!("{prefix}-x"), "", None).is_ok()
}
