//! `ankka services unexpose`.

use serde_json::json;

use super::{ending, project_of};
use crate::args::{Global, OutputArgs};
use crate::cluster::Cluster;
use crate::complete;
use crate::error::{Exit, Outcome};

/// Takes away a service's address outside the cluster. Its instances run on.
#[derive(clap::Args)]
pub(crate) struct UnexposeArgs {
    /// The service
    #[arg(add = complete::services())]
    name: String,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Takes the address away.
pub(crate) async fn unexpose(args: UnexposeArgs, global: &Global) -> Outcome {
    let project = project_of(&args.name, global)?;
    let cluster = Cluster::connect(global).await?;
    // Taken away and not set to false: nobody has to own what is no longer asked for.
    let hidden = cluster
        .command("unexpose", &args.name, &project, |service| {
            Ok(service.spec.exposed.then(|| json!({ "exposed": null })))
        })
        .await?;
    ending::say(&hidden, "unexposed", "not exposed");
    ending::show(&hidden, &project, args.output.output)?;
    Ok(Exit::Success)
}
