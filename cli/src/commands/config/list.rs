//! `ankka config list`.

use clap::ValueEnum;

use super::Key;
use crate::args::OutputArgs;
use crate::error::{Exit, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;
use crate::show::lines;

/// How to print them.
#[derive(clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Prints all settings.
pub(crate) fn list(args: &ListArgs) -> Outcome {
    let mut settings = Settings::saved()?;
    match args.output.output {
        Format::Json => output::json(&settings)?,
        Format::Yaml => output::yaml(&settings)?,
        Format::Name => Key::value_variants().iter().try_for_each(|key| output::data(key.name()))?,
        Format::Table | Format::Wide => {
            let pairs: Vec<_> = Key::value_variants()
                .iter()
                .map(|key| (key.name(), key.of(&mut settings).take().unwrap_or_else(|| "(unset)".to_owned())))
                .collect();
            output::data(&lines::aligned(&pairs))?;
        }
    }
    Ok(Exit::Success)
}
