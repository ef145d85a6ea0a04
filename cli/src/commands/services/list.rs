//! `ankka services list`.

use kube::api::ListParams;

use crate::args::{Global, OutputArgs};
use crate::cluster::{Attempt, Cluster, Subject};
use crate::error::{Exit, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;
use crate::show::service::{ServiceView, listing};

/// Shows all services of the project.
#[derive(clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Shows the services, by name.
pub(crate) async fn list(args: ListArgs, global: &Global) -> Outcome {
    let project = Settings::load()?.selected(global.project.as_deref())?;
    let cluster = Cluster::connect(global).await?;
    let attempt = Attempt { verb: "list", subject: Subject::Services(&project) };
    let found = cluster
        .services(&project)
        .list(&ListParams::default())
        .await
        .map_err(|cause| cluster.explain(attempt, cause))?;
    let services: Vec<_> = found.items.iter().map(|service| ServiceView::of(service, &project.id)).collect();
    if services.is_empty() {
        cluster.refuse_missing(attempt, &project).await?;
    }
    match args.output.output {
        Format::Json => output::json(&services)?,
        Format::Yaml => output::yaml(&services)?,
        Format::Name => services.iter().try_for_each(|service| output::data(&service.reference()))?,
        Format::Table | Format::Wide if services.is_empty() => output::data("no results")?,
        format => output::data(&listing(&services, format == Format::Wide))?,
    }
    Ok(Exit::Success)
}
