//! `ankka services resume`.

use serde_json::json;

use super::{ending, project_of};
use crate::args::{Global, OutputArgs, WaitArgs};
use crate::cluster::Cluster;
use crate::complete;
use crate::error::Outcome;

/// Starts a paused service with its newest descriptor; it is done when the service is ready.
#[derive(clap::Args)]
pub(crate) struct ResumeArgs {
    /// The service
    #[arg(add = complete::services())]
    name: String,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Resumes the service.
pub(crate) async fn resume(args: ResumeArgs, global: &Global) -> Outcome {
    let project = project_of(&args.name, global)?;
    let cluster = Cluster::connect(global).await?;
    // Taken away and not set to false: nobody has to own what is no longer asked for.
    let resumed = cluster
        .command("resume", &args.name, &project, |service| Ok(service.spec.paused.then(|| json!({ "paused": null }))))
        .await?;
    ending::say(&resumed, "resumed", "not paused");
    ending::settle(&cluster, &project, resumed, args.wait.limit(), args.output.output).await
}
