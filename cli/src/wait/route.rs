//! Waiting until the gateway has accepted a service's route, or refused it.

use std::pin::pin;

use ankka_crds::AnkkaService;
use futures::StreamExt;
use kube::ResourceExt;
use kube::runtime::{WatchStreamExt, watcher};

use super::{Ended, refused};
use crate::cluster::{Applied, Cluster};
use crate::duration::{self, Limit};
use crate::error::{Error, Exit};
use crate::output;
use crate::settings::Project;
use crate::show::address::Exposure;

/// What is known of the route.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Accepted,
    Never(String),
    Waiting(String),
}

/// Waits until the route is accepted or refused, at most `limit`.
pub(crate) async fn until_routed(
    cluster: &Cluster,
    project: &Project,
    exposed: Applied,
    limit: Limit,
) -> Result<Ended, Error> {
    let name = exposed.service.name_any();
    let generation = exposed.service.metadata.generation;
    let mut service = Some(exposed.service);
    let verdict = tokio::select! {
        verdict = follow(cluster, project, &name, generation, &mut service) => Some(verdict),
        () = tokio::time::sleep(limit.0) => Some(Verdict::Waiting(String::new())),
        _ = tokio::signal::ctrl_c() => None,
    };
    let look = format!("ankka services get {name} -p {}", project.id);
    let (exit, error) = match verdict {
        None => {
            output::note(&format!("stopped waiting; '{name}' stays exposed, look with: {look}"));
            (Exit::Interrupted, None)
        }
        Some(Verdict::Accepted) => {
            output::note("route accepted");
            (Exit::Success, None)
        }
        Some(Verdict::Never(why)) => {
            let hint = format!(
                "it stays exposed, and goes on by itself once that is put right; or take it back with: ankka services unexpose {name} -p {}",
                project.id
            );
            (Exit::Failure, Some(Error::new(format!("service '{name}' has no address outside: {why}")).hint(hint)))
        }
        Some(Verdict::Waiting(_)) => {
            let waited = duration::text(limit.0);
            let error = match judge(service.as_ref(), generation) {
                Verdict::Accepted => return Ok(Ended { service, exit: Exit::Success, error: None }),
                Verdict::Never(why) | Verdict::Waiting(why) => {
                    Error::new(format!("service '{name}' has no address outside yet: waited {waited}: {why}"))
                }
            };
            (Exit::Failure, Some(error.hint(format!("it stays exposed; look with: {look}"))))
        }
    };
    Ok(Ended { service, exit, error })
}

/// Watches the service until the answer is known.
async fn follow(
    cluster: &Cluster,
    project: &Project,
    name: &str,
    generation: Option<i64>,
    service: &mut Option<AnkkaService>,
) -> Verdict {
    let mut services = pin!(watcher::watch_object(cluster.services(project), name).default_backoff());
    loop {
        match judge(service.as_ref(), generation) {
            Verdict::Waiting(_) => {}
            known => return known,
        }
        match services.next().await {
            Some(Ok(seen)) => *service = seen,
            Some(Err(cause)) if refused(&cause) => return Verdict::Never(format!("it cannot be watched: {cause}")),
            // The stream begins anew by itself.
            _ => {}
        }
    }
}

/// What the operator says of the route of this generation.
fn judge(service: Option<&AnkkaService>, generation: Option<i64>) -> Verdict {
    let Some(service) = service else {
        return Verdict::Never("it was deleted".to_owned());
    };
    let reported = service.status.as_ref().filter(|status| status.observed_generation >= generation);
    let Some(status) = reported else {
        return Verdict::Waiting(format!("no operator has reported on generation {}", generation.unwrap_or_default()));
    };
    match Exposure::of(service) {
        Exposure::Not => Verdict::Never("it was unexposed".to_owned()),
        Exposure::Rejected(reason) => Verdict::Never(format!("route rejected: {reason}")),
        Exposure::At(_) | Exposure::Unreported => match status.route.as_deref() {
            Some("accepted") => Verdict::Accepted,
            route => Verdict::Waiting(format!("its route is {}", route.unwrap_or("pending"))),
        },
    }
}
