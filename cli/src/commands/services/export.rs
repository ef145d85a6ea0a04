//! `ankka services export`.

use clap::ValueEnum;

use super::project_of;
use crate::args::Global;
use crate::cluster::{Attempt, Cluster, Document, Subject};
use crate::complete;
use crate::error::{Exit, Outcome};
use crate::output;

/// Prints the descriptor of a service: a `service.json` that applies to the same thing. What commands have set is not part of it.
#[derive(clap::Args)]
pub(crate) struct ExportArgs {
    /// The service
    #[arg(add = complete::services())]
    name: String,

    /// How the descriptor is printed; errors are then for programs too
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
}

/// How the descriptor is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// As JSON, which is what descriptors are written in
    Json,
}

impl ExportArgs {
    /// Whether errors are JSON too.
    pub(crate) fn json(&self) -> bool {
        self.output.is_some()
    }
}

/// Prints the descriptor.
pub(crate) async fn export(args: ExportArgs, global: &Global) -> Outcome {
    let project = project_of(&args.name, global)?;
    let cluster = Cluster::connect(global).await?;
    let attempt = Attempt { verb: "get", subject: Subject::Service(&args.name, &project) };
    let service = cluster.service(attempt, &args.name, &project).await?;
    output::json(&Document::of(&service))?;
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use ankka_crds::corpus::{Layer, cases_for};
    use ankka_crds::{Context, descriptor};

    use crate::cluster::Document;
    use crate::show::yaml;

    #[test]
    fn every_descriptor_that_keeps_the_rules_comes_back_the_same() {
        let mut seen = 0;
        for case in cases_for(Layer::File) {
            let Ok(read) = descriptor::read(&case.text, Context::default()) else { continue };
            seen += 1;
            let document = Document { name: read.name, service: read.service };
            let text = yaml::safe(serde_json::to_string_pretty(&document).expect("it can be written"));
            let again = descriptor::read(text.as_bytes(), Context::default()).expect("it keeps the rules");
            assert_eq!(Document { name: again.name, service: again.service }, document, "{}", case.name);
        }
        assert!(seen > 40, "{seen}");
    }
}
