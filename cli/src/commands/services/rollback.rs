//! `ankka services rollback`.

use ankka_crds::{AnkkaService, history};

use super::{ending, project_of};
use crate::args::{Global, OutputArgs, WaitArgs};
use crate::cluster::{Applied, Attempt, Change, Cluster, Document, Subject, Wanted};
use crate::complete;
use crate::error::{Error, Outcome};
use crate::output::{self, Format};

/// Brings back a descriptor that the service had before, as a new generation; it is done when the service is ready.
#[derive(clap::Args)]
pub(crate) struct RollbackArgs {
    /// The service
    #[arg(add = complete::services())]
    name: String,

    /// The generation whose descriptor to bring back [default: the newest with another descriptor than the present one]
    #[arg(long, value_name = "N")]
    to: Option<i64>,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Applies the recorded descriptor, unless the service has it already.
pub(crate) async fn rollback(args: RollbackArgs, global: &Global) -> Outcome {
    let project = project_of(&args.name, global)?;
    let cluster = Cluster::connect(global).await?;
    let attempt = Attempt { verb: "roll back", subject: Subject::Service(&args.name, &project) };
    let service = cluster.lasting_service(attempt, &args.name, &project).await?;
    let generation = match args.to {
        Some(generation) => generation,
        None => the_one_before(&service).ok_or_else(|| {
            Error::new(format!("service '{}' has no other descriptor to go back to", args.name))
                .hint(format!("see what is there with: ankka services history {} -p {}", args.name, project.id))
        })?,
    };
    let wanted = cluster.recorded(attempt, &service, &project, generation).await?;
    let rolled_back = if wanted.service == service.spec.service {
        Applied { service, change: Change::Unchanged, at: jiff::Timestamp::now() }
    } else {
        let before = service.metadata.generation;
        let wanted = Wanted { name: &args.name, service: &wanted.service, rolled_back_to: Some(generation) };
        let applied = cluster.apply(&project, wanted, false).await?;
        // Somebody else may have been first.
        let change = if applied.service.metadata.generation == before { Change::Unchanged } else { Change::Configured };
        Applied { change, ..applied }
    };
    let format = args.output.output;
    let done = format!("rolled back to generation {generation}");
    match (rolled_back.change, format) {
        (Change::Unchanged, _) => {
            ending::say(&rolled_back, "", &format!("it has the descriptor of generation {generation} already"));
        }
        (_, Format::Table | Format::Wide) => output::data(&done)?,
        _ => output::note(&done),
    }
    ending::settle(&cluster, &project, rolled_back, args.wait.limit(), format).await
}

/// The newest recorded generation with another descriptor than the present one.
fn the_one_before(service: &AnkkaService) -> Option<i64> {
    let present = Document::of(service).digest();
    history::of(service).into_iter().find(|change| change.digest != present).map(|change| change.generation)
}
