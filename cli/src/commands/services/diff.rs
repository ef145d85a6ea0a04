//! `ankka services diff`.

use ankka_crds::{Context, descriptor};

use super::apply::{denied, refused};
use crate::args::{Global, OutputArgs};
use crate::cluster::{Attempt, Cluster, Subject, Wanted};
use crate::diff::Difference;
use crate::error::{Error, Exit, Outcome};
use crate::input::Input;
use crate::output::{self, Format};
use crate::settings::Settings;

/// Shows what applying a descriptor would change, and whether instances would be replaced. Changes nothing; exit status 0: no difference, 1: differences, 2: trouble.
#[derive(clap::Args)]
pub(crate) struct DiffArgs {
    /// Descriptor to compare with what is stored, or `-` for standard input
    #[arg(short, long, value_name = "FILE")]
    file: Input,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Compares as `diff` does: whatever keeps it from comparing is trouble.
pub(crate) async fn diff(args: DiffArgs, global: &Global) -> Outcome {
    differences(&args.file, args.output.output, global).await
}

/// The same, for other commands that offer it.
pub(super) async fn differences(file: &Input, format: Format, global: &Global) -> Outcome {
    match compare(file, format, global).await {
        Ok(Some(differs)) => Ok(if differs { Exit::Failure } else { Exit::Success }),
        Ok(None) => Ok(Exit::Trouble),
        Err(error) => {
            output::error(&error);
            Ok(Exit::Trouble)
        }
    }
}

/// Whether there are differences; none when the descriptor's problems were printed instead.
async fn compare(file: &Input, format: Format, global: &Global) -> Result<Option<bool>, Error> {
    let text = file.read()?;
    let project = Settings::load()?.selected(global.project.as_deref())?;
    let json = format == Format::Json;
    let context = Context { project: Some(&project.id), installation: None };
    let descriptor = match descriptor::read(&text, context) {
        Ok(descriptor) => descriptor,
        Err(problems) => return refused(file, &text, &problems, json).map(|_| None),
    };
    let cluster = Cluster::connect(global).await?;
    let attempt = Attempt { verb: "get", subject: Subject::Service(&descriptor.name, &project) };
    let stored = cluster.services(&project).get_opt(&descriptor.name).await;
    let stored = stored.map_err(|cause| cluster.explain(attempt, cause))?;
    // What admission makes of it, or has against it, only the cluster knows.
    let wanted = Wanted { name: &descriptor.name, service: &descriptor.service, rolled_back_to: None };
    let wanted = match cluster.apply(&project, wanted, true).await {
        Ok(applied) => applied.service,
        Err(error) => return denied(file, &text, error, json).map(|_| None),
    };
    let difference = Difference::between(stored.as_ref(), &wanted, &project);
    match format {
        Format::Json => output::json(&difference)?,
        Format::Yaml => output::yaml(&difference)?,
        Format::Name if difference.changed => output::data(&format!("service/{}", descriptor.name))?,
        Format::Table | Format::Wide if difference.changed => output::data(&difference.text(&file.to_string())?)?,
        Format::Name | Format::Table | Format::Wide => {}
    }
    Ok(Some(difference.changed))
}
