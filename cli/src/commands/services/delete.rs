//! `ankka services delete`.

use std::time::{Duration, Instant};

use ankka_crds::{AnkkaBucket, AnkkaDatabase, names};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde::Serialize;

use super::project_of;
use crate::args::{Global, OutputArgs, WaitArgs};
use crate::cluster::{Attempt, Cluster, Subject};
use crate::complete;
use crate::duration::{self, Limit};
use crate::error::{Error, Exit, Outcome};
use crate::output::{self, Format};
use crate::settings::Project;
use crate::show::service::selector;

/// Deletes a service; it is done when its instances are gone. Its bucket, its database and their credentials stay, and applying it again finds them.
#[derive(clap::Args)]
pub(crate) struct DeleteArgs {
    /// The service
    #[arg(add = complete::services())]
    name: String,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// What was deleted and what was not.
#[derive(Serialize)]
struct Deletion<'a> {
    name: &'a str,
    project: &'a str,
    deleted: bool,
    kept: Vec<Kept>,
}

/// Something that outlives the service.
#[derive(Serialize)]
struct Kept {
    kind: &'static str,
    name: String,
}

/// Deletes the service and says what stays.
pub(crate) async fn delete(args: DeleteArgs, global: &Global) -> Outcome {
    let project = project_of(&args.name, global)?;
    let cluster = Cluster::connect(global).await?;
    let attempt = Attempt { verb: "delete", subject: Subject::Service(&args.name, &project) };
    cluster
        .services(&project)
        .delete(&args.name, &DeleteParams::background())
        .await
        .map_err(|cause| cluster.explain(attempt, cause))?;
    let kept = kept(&cluster, &project, &args.name).await;
    match args.output.output {
        Format::Json => output::json(&Deletion { name: &args.name, project: &project.id, deleted: true, kept })?,
        Format::Yaml => output::yaml(&Deletion { name: &args.name, project: &project.id, deleted: true, kept })?,
        Format::Name => output::data(&format!("service/{}", args.name))?,
        Format::Table | Format::Wide => {
            output::data(&format!("service/{} deleted", args.name))?;
            for Kept { kind, name } in &kept {
                output::note(&format!("kept: {kind} '{name}'"));
            }
            if !kept.is_empty() {
                output::note("applying the service again finds them");
            }
        }
    }
    match args.wait.limit() {
        Some(limit) => until_gone(&cluster, &project, &args.name, limit).await,
        None => Ok(Exit::Success),
    }
}

/// What of the service stays. Secrets are never read: their names follow from what they belong to.
async fn kept(cluster: &Cluster, project: &Project, service: &str) -> Vec<Kept> {
    let databases: Api<AnkkaDatabase> = Api::namespaced(cluster.client(), &project.namespace);
    let buckets: Api<AnkkaBucket> = Api::namespaced(cluster.client(), &project.namespace);
    let (database, bucket) = futures::join!(databases.get_opt(service), buckets.get_opt(service));
    let mut kept = Vec::new();
    if let Ok(Some(database)) = database {
        let name =
            database.status.and_then(|status| status.database).unwrap_or_else(|| format!("{}.{service}", project.id));
        kept.push(Kept { kind: "database", name });
        kept.push(Kept { kind: "credential", name: names::database_secret(service) });
    }
    if let Ok(Some(bucket)) = bucket {
        let garage = bucket.spec.store != "gcs";
        let name =
            bucket.status.and_then(|status| status.bucket).unwrap_or_else(|| names::bucket(&project.id, service));
        kept.push(Kept { kind: "bucket", name });
        if bucket.spec.credential {
            let name = if garage { names::storage_secret(service) } else { names::cloud_storage_secret(service) };
            kept.push(Kept { kind: "credential", name });
        }
    }
    kept
}

/// Looks once a second whether the service and its instances are gone.
async fn until_gone(cluster: &Cluster, project: &Project, service: &str, limit: Limit) -> Outcome {
    let started = Instant::now();
    let services = cluster.services(project);
    let pods: Api<Pod> = Api::namespaced(cluster.client(), &project.namespace);
    let instances = ListParams::default().labels(&selector(&project.id, service));
    let attempt = Attempt { verb: "watch", subject: Subject::Service(service, project) };
    let look = async {
        loop {
            let present = services.get_opt(service).await.map_err(|cause| cluster.explain(attempt, cause))?.is_some();
            let left =
                pods.list_metadata(&instances).await.map_err(|cause| cluster.explain(attempt, cause))?.items.len();
            if !present && left == 0 {
                return Ok(Exit::Success);
            }
            if started.elapsed() >= limit.0 {
                return Err(Error::new(format!(
                    "service '{service}' is still being deleted after {}: {left} instances are left",
                    duration::text(limit.0)
                )));
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        ended = look => ended,
        _ = tokio::signal::ctrl_c() => {
            output::note("stopped waiting; the deletion goes on");
            Ok(Exit::Interrupted)
        }
    }
}
