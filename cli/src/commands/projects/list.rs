//! `ankka projects list`.

use kube::api::ListParams;

use super::ProjectView;
use crate::args::{Global, OutputArgs};
use crate::cluster::{Attempt, Cluster, Subject};
use crate::error::{Exit, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;
use crate::show::table;

/// Shows all projects.
#[derive(clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Shows the projects, by name.
pub(crate) async fn list(args: ListArgs, global: &Global) -> Outcome {
    let prefix = Settings::load()?.prefix()?;
    let cluster = Cluster::connect(global).await?;
    let attempt = Attempt { verb: "list", subject: Subject::Projects };
    let found =
        cluster.projects().list(&ListParams::default()).await.map_err(|cause| cluster.explain(attempt, cause))?;
    let projects: Vec<_> = found.items.iter().map(|project| ProjectView::of(project, &prefix)).collect();
    match args.output.output {
        Format::Json => output::json(&projects)?,
        Format::Yaml => output::yaml(&projects)?,
        Format::Name => projects.iter().try_for_each(|project| output::data(&project.reference()))?,
        Format::Table | Format::Wide if projects.is_empty() => output::data("no results")?,
        format => output::data(&listing(&projects, format == Format::Wide))?,
    }
    Ok(Exit::Success)
}

fn listing(projects: &[ProjectView], wide: bool) -> String {
    let or_dash = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let mut heading = vec!["NAME", "NAMESPACE", "READY"];
    if wide {
        heading.extend(["ADMINISTRATORS", "LOCATION", "DETAIL"]);
    }
    let rows = projects.iter().map(|project| {
        let mut row = vec![project.name.clone(), project.namespace.clone(), project.ready().to_owned()];
        if wide {
            let none = project.administrators.is_empty();
            row.push(if none { "-".to_owned() } else { project.administrators.join(",") });
            row.extend([&project.location, &project.detail].map(or_dash));
        }
        row
    });
    table::columns(&heading, rows)
}
