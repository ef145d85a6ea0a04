//! `ankka projects create`.

use std::pin::pin;

use ankka_crds::resources::AnkkaProjectSpec;
use ankka_crds::{AnkkaProject, labels, project};
use futures::TryStreamExt;
use kube::ResourceExt;
use kube::api::PostParams;
use kube::runtime::{WatchStreamExt, watcher};

use super::administrators::{self, Administrator};
use super::{ProjectView, holds};
use crate::args::{Global, OutputArgs};
use crate::cluster::{Attempt, Cluster, Subject};
use crate::duration::{self, Limit};
use crate::error::{Error, Exit, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;

/// Creates a project and waits until services can be applied to it.
#[derive(clap::Args)]
pub(crate) struct CreateArgs {
    /// The project's id
    name: String,

    /// Who administers the project: a user's name, `group:<NAME>`, or `serviceaccount:<NAMESPACE>/<NAME>`; may be repeated. You,
    /// when absent
    #[arg(long = "administrator", value_name = "WHO", value_parser = administrators::parse)]
    administrators: Vec<Administrator>,

    /// Where the project's buckets are made; the installation's location when absent
    #[arg(long, value_name = "LOCATION")]
    location: Option<String>,

    /// Secret in the project's namespace to pull images with; may be repeated
    #[arg(long = "image-pull-secret", value_name = "SECRET")]
    image_pull_secrets: Vec<String>,

    /// How long to wait for the project's namespace; `0` does not wait
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    wait: Limit,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Creates the project.
pub(crate) async fn create(args: CreateArgs, global: &Global) -> Outcome {
    let settings = Settings::load()?;
    settings.project(&args.name)?;
    let cluster = Cluster::connect(global).await?;
    let mut spec = AnkkaProjectSpec {
        location: args.location,
        image_pull_secrets: args.image_pull_secrets,
        administrators: args.administrators,
    };
    project::validate_spec(&spec).map_err(|problems| Error {
        problems: problems.into_iter().map(Into::into).collect(),
        ..Error::new(format!("project '{}' cannot be created", args.name))
    })?;
    if spec.administrators.is_empty() {
        spec.administrators = vec![administrators::myself(&cluster).await?];
    }
    let attempt = Attempt { verb: "create", subject: Subject::Project(&args.name) };
    let params = PostParams { field_manager: Some(labels::CLI_MANAGER.to_owned()), ..PostParams::default() };
    let mut project = cluster
        .projects()
        .create(&params, &AnkkaProject::new(&args.name, spec))
        .await
        .map_err(|cause| cluster.explain(attempt, cause))?;
    let format = args.output.output;
    if matches!(format, Format::Table | Format::Wide) {
        output::data(&format!("project/{} created", args.name))?;
    }
    if !args.wait.0.is_zero() {
        project = until_ready(&cluster, project, args.wait).await?;
    }
    let view = ProjectView::of(&project, &settings.prefix()?);
    match format {
        Format::Json => output::json(&view)?,
        Format::Yaml => output::yaml(&view)?,
        Format::Name => output::data(&view.reference())?,
        Format::Table | Format::Wide => {}
    }
    Ok(Exit::Success)
}

/// Watches the project until its namespace is there. What cannot come is an error at once.
async fn until_ready(cluster: &Cluster, project: AnkkaProject, limit: Limit) -> Result<AnkkaProject, Error> {
    let name = project.name_any();
    let not_ready = |why: &str| {
        Error::new(format!("project '{name}' was created and is not ready: {why}"))
            .hint(format!("look again with: ankka projects get {name}"))
    };
    let mut last = project;
    let generation = last.metadata.generation;
    let watch = async {
        let mut seen = pin!(watcher::watch_object(cluster.projects(), &name).default_backoff());
        loop {
            let project = match seen.try_next().await {
                Ok(Some(Some(project))) => project,
                Ok(Some(None)) => return Err(not_ready("it was deleted")),
                Ok(None) => return Err(not_ready("the cluster ended the watch")),
                Err(watcher::Error::InitialListFailed(cause) | watcher::Error::WatchStartFailed(cause)) if matches!(&cause, kube::Error::Api(status) if status.code == 403) =>
                {
                    return Err(cluster.explain(Attempt { verb: "watch", subject: Subject::Project(&name) }, cause));
                }
                Err(_) => continue,
            };
            last = project;
            let status = last.status.clone().unwrap_or_default();
            if status.observed_generation < generation {
                continue;
            }
            if holds(&last, "Ready") {
                return Ok(());
            }
            if holds(&last, "Stalled") {
                return Err(not_ready(status.detail.as_deref().unwrap_or("the operator gave up")));
            }
        }
    };
    if let Ok(ended) = tokio::time::timeout(limit.0, watch).await {
        return ended.map(|()| last);
    }
    let detail = ProjectView::of(&last, "").detail.unwrap_or_else(|| "its namespace is not there yet".to_owned());
    Err(not_ready(&format!("waited {}: {detail}", duration::text(limit.0))))
}
