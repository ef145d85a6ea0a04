//! `ankka services pause`.

use serde_json::json;

use super::{ending, project_of};
use crate::args::{Global, OutputArgs};
use crate::cluster::Cluster;
use crate::complete;
use crate::error::{Exit, Outcome};

/// Stops all instances of a service. The descriptor and the data are kept, and applying a descriptor does not resume it.
#[derive(clap::Args)]
pub(crate) struct PauseArgs {
    /// The service
    #[arg(add = complete::services())]
    name: String,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Pauses the service.
pub(crate) async fn pause(args: PauseArgs, global: &Global) -> Outcome {
    let project = project_of(&args.name, global)?;
    let cluster = Cluster::connect(global).await?;
    let paused = cluster
        .command("pause", &args.name, &project, |service| Ok((!service.spec.paused).then(|| json!({ "paused": true }))))
        .await?;
    ending::say(&paused, "paused", "already paused");
    ending::show(&paused, &project, args.output.output)?;
    Ok(Exit::Success)
}
