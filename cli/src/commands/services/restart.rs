//! `ankka services restart`.

use ankka_crds::AnkkaService;
use serde_json::json;

use super::{ending, project_of};
use crate::args::{Global, OutputArgs, WaitArgs};
use crate::cluster::Cluster;
use crate::complete;
use crate::error::{Error, Outcome};
use crate::output;

/// Replaces every instance of a service, one at a time and without refusing requests; it is done when the service is ready.
#[derive(clap::Args)]
pub(crate) struct RestartArgs {
    /// The service
    #[arg(add = complete::services())]
    name: String,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Asks for one more restart. Two at once are two.
pub(crate) async fn restart(args: RestartArgs, global: &Global) -> Outcome {
    let project = project_of(&args.name, global)?;
    let cluster = Cluster::connect(global).await?;
    let restarted = cluster
        .command("restart", &args.name, &project, |service| {
            let restarts =
                service.spec.restarts.checked_add(1).ok_or_else(|| Error::new("it was restarted too often"))?;
            Ok(Some(json!({ "restarts": restarts })))
        })
        .await?;
    ending::say(&restarted, "restarted", "");
    output::note(&image(&restarted.service));
    if restarted.service.spec.paused {
        output::note("it is paused: the restart takes effect when it is resumed");
    }
    ending::settle(&cluster, &project, restarted, args.wait.limit(), args.output.output).await
}

/// Which image the instances ran until now. That a node keeps the one it has under a tag is a warning of the webhook's, so
/// that users of kubectl read it too.
fn image(service: &AnkkaService) -> String {
    let image = service.spec.service.image.as_deref().unwrap_or_default();
    match service.status.as_ref().and_then(|status| status.image_digest.as_deref()) {
        Some(digest) => format!("image {image} runs as {digest}"),
        None => format!("image {image}: no instance has reported which digest it runs"),
    }
}
