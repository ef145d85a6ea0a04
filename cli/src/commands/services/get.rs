//! `ankka services get`.

use super::project_of;
use crate::args::{Global, OutputArgs};
use crate::cluster::{Attempt, Cluster, Subject};
use crate::complete;
use crate::error::{Exit, Outcome};
use crate::show::service::ServiceView;

/// Shows one service.
#[derive(clap::Args)]
pub(crate) struct GetArgs {
    /// The service
    #[arg(add = complete::services())]
    name: String,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Shows the service.
pub(crate) async fn get(args: GetArgs, global: &Global) -> Outcome {
    let project = project_of(&args.name, global)?;
    let cluster = Cluster::connect(global).await?;
    let attempt = Attempt { verb: "get", subject: Subject::Service(&args.name, &project) };
    let service = cluster.service(attempt, &args.name, &project).await?;
    ServiceView::of(&service, &project.id).print(args.output.output)?;
    Ok(Exit::Success)
}
