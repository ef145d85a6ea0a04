//! `ankka projects get`.

use super::ProjectView;
use crate::args::{Global, OutputArgs};
use crate::cluster::{Attempt, Cluster, Subject};
use crate::complete;
use crate::error::{Exit, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;
use crate::show::lines;

/// Shows one project.
#[derive(clap::Args)]
pub(crate) struct GetArgs {
    /// The project's id
    #[arg(add = complete::projects())]
    name: String,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Shows the project.
pub(crate) async fn get(args: GetArgs, global: &Global) -> Outcome {
    let settings = Settings::load()?;
    settings.project(&args.name)?;
    let cluster = Cluster::connect(global).await?;
    let attempt = Attempt { verb: "get", subject: Subject::Project(&args.name) };
    let project = cluster.projects().get(&args.name).await.map_err(|cause| cluster.explain(attempt, cause))?;
    let view = ProjectView::of(&project, &settings.prefix()?);
    match args.output.output {
        Format::Table | Format::Wide => output::data(&lines(&view))?,
        Format::Name => output::data(&view.reference())?,
        Format::Json => output::json(&view)?,
        Format::Yaml => output::yaml(&view)?,
    }
    Ok(Exit::Success)
}

fn lines(project: &ProjectView) -> String {
    let mut pairs = vec![
        ("name", project.name.clone()),
        ("namespace", project.namespace.clone()),
        ("ready", project.ready().to_owned()),
        (
            "administrators",
            if project.administrators.is_empty() { "none".to_owned() } else { project.administrators.join(", ") },
        ),
    ];
    pairs.extend(project.location.clone().map(|location| ("location", location)));
    if !project.image_pull_secrets.is_empty() {
        pairs.push(("image pull secrets", project.image_pull_secrets.join(", ")));
    }
    pairs.extend(project.detail.clone().map(|detail| ("detail", detail)));
    lines::aligned(&pairs)
}
