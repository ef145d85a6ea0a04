//! `ankka projects secrets list`.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::ListParams;
use serde::Serialize;

use super::{not_issued, secrets};
use crate::args::{Global, OutputArgs};
use crate::cluster::{Attempt, Cluster, Subject};
use crate::error::{Exit, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;
use crate::show::table;

/// Shows the project's Secrets and the keys of their entries, never a value. Credentials that the platform issued are left out.
#[derive(clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// One Secret without its values.
#[derive(Serialize)]
struct SecretView {
    name: String,
    /// Kubernetes' type; `Opaque` for what the command sets.
    #[serde(rename = "type")]
    kind: String,
    keys: Vec<String>,
}

impl SecretView {
    fn of(secret: Secret) -> Self {
        Self {
            name: secret.name_any(),
            kind: secret.type_.unwrap_or_default(),
            keys: secret.data.into_iter().flatten().map(|(key, _)| key).collect(),
        }
    }
}

/// Shows the Secrets, by name.
pub(crate) async fn list(args: ListArgs, global: &Global) -> Outcome {
    let project = Settings::load()?.selected(global.project.as_deref())?;
    let cluster = Cluster::connect(global).await?;
    let attempt = Attempt { verb: "list", subject: Subject::Secrets(&project) };
    let params = ListParams::default().fields(&not_issued());
    let found = secrets(&cluster, &project).list(&params).await.map_err(|cause| cluster.explain(attempt, cause))?;
    let found: Vec<_> = found.items.into_iter().map(SecretView::of).collect();
    if found.is_empty() {
        cluster.refuse_missing(attempt, &project).await?;
    }
    match args.output.output {
        Format::Json => output::json(&found)?,
        Format::Yaml => output::yaml(&found)?,
        Format::Name => found.iter().try_for_each(|secret| output::data(&format!("secret/{}", secret.name)))?,
        Format::Table | Format::Wide if found.is_empty() => output::data("no results")?,
        format => output::data(&listing(&found, format == Format::Wide))?,
    }
    Ok(Exit::Success)
}

fn listing(secrets: &[SecretView], wide: bool) -> String {
    let heading = if wide { vec!["NAME", "KEYS", "TYPE"] } else { vec!["NAME", "KEYS"] };
    let rows = secrets.iter().map(|secret| {
        let keys = if secret.keys.is_empty() { "-".to_owned() } else { secret.keys.join(",") };
        let mut row = vec![secret.name.clone(), keys];
        if wide {
            row.push(secret.kind.clone());
        }
        row
    });
    table::columns(&heading, rows)
}
