//! How commands that change a service end: what was done on standard error, the service as `get` shows it on standard output.

use kube::ResourceExt;

use crate::cluster::{Applied, Change, Cluster};
use crate::duration::Limit;
use crate::error::{Error, Exit, Outcome};
use crate::output::{self, Format};
use crate::settings::Project;
use crate::show::service::ServiceView;
use crate::wait::{self, Ended};

/// Says what was done, or that it was so already.
pub(super) fn say(applied: &Applied, done: &str, already: &str) {
    let name = applied.service.name_any();
    match applied.change {
        Change::Unchanged => output::note(&format!("service/{name} unchanged ({already})")),
        Change::Created | Change::Configured => output::note(&format!("service/{name} {done}")),
    }
}

/// Prints the service.
pub(super) fn show(applied: &Applied, project: &Project, format: Format) -> Result<(), Error> {
    ServiceView::of(&applied.service, &project.id).print(format)
}

/// Prints the service once it is ready or can no longer become so; at once when nobody waits.
pub(super) async fn settle(
    cluster: &Cluster,
    project: &Project,
    applied: Applied,
    limit: Option<Limit>,
    format: Format,
) -> Outcome {
    let Some(limit) = limit else {
        show(&applied, project, format)?;
        return Ok(Exit::Success);
    };
    ended(wait::until_ready(cluster, project, applied, limit).await?, project, format)
}

/// Prints the service as it was when the waiting ended.
pub(super) fn ended(ended: Ended, project: &Project, format: Format) -> Outcome {
    if let Some(service) = &ended.service {
        ServiceView::of(service, &project.id).print(format)?;
    }
    ended.error.map_or(Ok(ended.exit), Err)
}
