//! `ankka services apply`.

use ankka_crds::{Context, Located, descriptor};

use super::diff::differences;
use crate::args::{Global, OutputArgs, WaitArgs};
use crate::cluster::{Applied, Cluster, Wanted};
use crate::error::{Error, Exit, Outcome};
use crate::input::Input;
use crate::output::{self, Format};
use crate::settings::Settings;
use crate::show::{problems, service::ServiceView};
use crate::wait;

/// Creates or changes a service from a descriptor. The file is checked completely before anything is sent.
#[derive(clap::Args)]
pub(crate) struct ApplyArgs {
    /// Descriptor to apply, or `-` for standard input
    #[arg(short, long, value_name = "FILE")]
    file: Input,

    /// Let the cluster check the descriptor without storing it
    #[arg(long)]
    dry_run: bool,

    /// Show what would change and change nothing, as `ankka services diff` does
    #[arg(long, conflicts_with_all = ["dry_run", "wait", "no_wait"])]
    diff: bool,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Applies the descriptor.
pub(crate) async fn apply(args: ApplyArgs, global: &Global) -> Outcome {
    if args.diff {
        return differences(&args.file, args.output.output, global).await;
    }
    let text = args.file.read()?;
    let project = Settings::load()?.selected(global.project.as_deref())?;
    let context = Context { project: Some(&project.id), installation: None };
    let descriptor = match descriptor::read(&text, context) {
        Ok(descriptor) => descriptor,
        Err(problems) => return refused(&args.file, &text, &problems, args.output.json()),
    };
    let cluster = Cluster::connect(global).await?;
    let wanted = Wanted { name: &descriptor.name, service: &descriptor.service, rolled_back_to: None };
    let applied = match cluster.apply(&project, wanted, args.dry_run).await {
        Ok(applied) => applied,
        Err(error) => return denied(&args.file, &text, error, args.output.json()),
    };
    if applied.service.metadata.deletion_timestamp.is_some() {
        let advice = format!(
            "apply it again once it is gone; what holds it: kubectl get ankkaservice {} -n {} -o jsonpath={{.metadata.finalizers}}",
            descriptor.name, project.namespace
        );
        let why = format!("service '{}' is being deleted, so nothing comes of what was applied", descriptor.name);
        return Err(Error::new(why).hint(advice));
    }
    let format = args.output.output;
    if args.dry_run {
        print(format, &applied, &project.id, "validated (server dry run)")?;
        return Ok(Exit::Success);
    }
    let Some(limit) = args.wait.limit() else {
        print(format, &applied, &project.id, applied.change.word())?;
        return Ok(Exit::Success);
    };
    let people = matches!(format, Format::Table | Format::Wide | Format::Name);
    if people {
        print(format, &applied, &project.id, applied.change.word())?;
    }
    let ended = wait::until_ready(&cluster, &project, applied, limit).await?;
    if let (false, Some(service)) = (people, &ended.service) {
        structured(format, &ServiceView::of(service, &project.id))?;
    }
    match ended.error {
        Some(error) => Err(error),
        None => Ok(ended.exit),
    }
}

fn print(format: Format, applied: &Applied, project: &str, done: &str) -> Result<(), Error> {
    let view = ServiceView::of(&applied.service, project);
    match format {
        Format::Table | Format::Wide => Ok(output::data(&format!("{} {done}", view.reference()))?),
        _ => structured(format, &view),
    }
}

fn structured(format: Format, view: &ServiceView) -> Result<(), Error> {
    match format {
        Format::Json => output::json(view),
        Format::Yaml => output::yaml(view),
        Format::Table | Format::Wide | Format::Name => Ok(output::data(&view.reference())?),
    }
}

/// Reports the problems of a descriptor of which nothing was sent.
pub(crate) fn refused(file: &Input, text: &[u8], found: &[Located], as_json: bool) -> Outcome {
    if as_json {
        return Err(Error {
            problems: problems::placed(found),
            ..Error::new(messages(found.iter().map(|located| located.problem.message.as_str())))
        });
    }
    output::say(&problems::report(&file.to_string(), text, found));
    Ok(Exit::Failure)
}

/// Reports a denial by the cluster, each problem at its place in the file where it has one.
pub(super) fn denied(file: &Input, text: &[u8], error: Error, as_json: bool) -> Outcome {
    if error.problems.is_empty() {
        return Err(error);
    }
    let Error { message, hint, problems: found } = error;
    let (located, rest) = descriptor::place(text, found.into_iter().map(|placed| placed.problem).collect());
    let rest: Vec<_> = rest.into_iter().map(Into::into).collect();
    if as_json {
        let problems = problems::placed(&located).into_iter().chain(rest).collect();
        return Err(Error { message, hint, problems });
    }
    output::say(&problems::report(&file.to_string(), text, &located));
    if rest.is_empty() { Ok(Exit::Failure) } else { Err(Error { message, hint, problems: rest }) }
}

fn messages<'a>(messages: impl Iterator<Item = &'a str>) -> String {
    messages.collect::<Vec<_>>().join("; ")
}
