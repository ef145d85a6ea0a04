//! `ankka services history`.

use ankka_crds::history::{self, Change};

use super::project_of;
use crate::args::{Global, OutputArgs};
use crate::cluster::{Attempt, Cluster, Subject};
use crate::complete;
use crate::error::{Exit, Outcome};
use crate::output::{self, Format};
use crate::show::table;

/// How much of a digest people read.
const DIGEST: usize = 12;

/// Shows the last 50 changes of a service, newest first: what was changed, when and by whom.
#[derive(clap::Args)]
pub(crate) struct HistoryArgs {
    /// The service
    #[arg(add = complete::services())]
    name: String,

    /// Print the descriptor the service had at this generation instead
    #[arg(long, value_name = "N")]
    generation: Option<i64>,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Shows the changes, or one descriptor.
pub(crate) async fn history(args: HistoryArgs, global: &Global) -> Outcome {
    let project = project_of(&args.name, global)?;
    let cluster = Cluster::connect(global).await?;
    let attempt = Attempt { verb: "get", subject: Subject::Service(&args.name, &project) };
    let service = cluster.service(attempt, &args.name, &project).await?;
    let format = args.output.output;
    if let Some(generation) = args.generation {
        let document = cluster.recorded(attempt, &service, &project, generation).await?;
        match format {
            Format::Yaml => output::yaml(&document)?,
            Format::Table | Format::Wide | Format::Json | Format::Name => output::json(&document)?,
        }
        return Ok(Exit::Success);
    }
    let changes = history::of(&service);
    match format {
        Format::Json => output::json(&changes)?,
        Format::Yaml => output::yaml(&changes)?,
        Format::Name => changes.iter().try_for_each(|change| output::data(&change.generation.to_string()))?,
        Format::Table | Format::Wide if changes.is_empty() => output::data("no results")?,
        Format::Table => output::data(&listing(&changes, DIGEST))?,
        Format::Wide => output::data(&listing(&changes, usize::MAX))?,
    }
    Ok(Exit::Success)
}

/// The table, with so many digits of each digest.
fn listing(changes: &[Change], digits: usize) -> String {
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let rows = changes.iter().map(|change| {
        let kind = match change.rolled_back_to {
            Some(generation) => format!("rolled-back to {generation}"),
            None => change.kind.word().to_owned(),
        };
        let digest = change.digest.get(..digits).unwrap_or(&change.digest);
        vec![
            or_dash(&change.at),
            kind,
            change.generation.to_string(),
            or_dash(change.image.as_deref().unwrap_or_default()),
            or_dash(digest),
            or_dash(&change.who),
        ]
    });
    table::columns(&["WHEN", "KIND", "GEN", "IMAGE", "DIGEST", "BY"], rows)
}
