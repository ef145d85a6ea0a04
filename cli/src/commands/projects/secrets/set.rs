//! `ankka projects secrets set`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ankka_crds::{labels, secrets};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams};
use serde::Serialize;
use serde_json::json;

use super::entries;
use super::{NAME_FIRST, running_users};
use crate::args::{Global, OutputArgs};
use crate::cluster::{Attempt, Change, Cluster, Subject};
use crate::error::{Error, Exit, Outcome};
use crate::output::{self, Format};
use crate::settings::{Project, Settings};

/// Sets entries of a Secret; those not named stay as they are. Values are not printed.
#[derive(clap::Args)]
pub(crate) struct SetArgs {
    /// The Secret; made when it is not there
    name: String,

    /// Entry to set: `KEY=-` reads its value from standard input, `KEY=@FILE` from a file, `KEY=VALUE` takes it as written
    #[arg(value_name = "KEY=VALUE")]
    entries: Vec<String>,

    /// File with a line `KEY=VALUE` for each entry, or `-` for standard input
    #[arg(long, value_name = "FILE")]
    from_env_file: Option<PathBuf>,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// What was done; no values.
#[derive(Serialize)]
struct Answer<'a> {
    name: &'a str,
    project: &'a str,
    /// `created`, `configured` or `unchanged`.
    change: &'static str,
    /// Keys that were set.
    keys: Vec<String>,
    /// Services whose instances see the change after a restart.
    restart: Vec<String>,
}

/// Sets the entries.
pub(crate) async fn set(args: SetArgs, global: &Global) -> Outcome {
    let project = Settings::load()?.selected(global.project.as_deref())?;
    secrets::validate_name(&args.name).map_err(|message| {
        let error = Error::new(message);
        if args.name.contains('=') { error.hint(NAME_FIRST) } else { error }
    })?;
    let entries = entries::read(&args.entries, args.from_env_file.as_deref())?;
    let keys: Vec<String> = entries.keys().cloned().collect();
    let cluster = Cluster::connect(global).await?;
    let change = store(&cluster, &project, &args.name, entries).await?;
    let restart = match change {
        Change::Unchanged => Vec::new(),
        Change::Created | Change::Configured => running_users(&cluster, &project, &args.name, &keys).await,
    };
    let answer = Answer { name: &args.name, project: &project.id, change: change.word(), keys, restart };
    match args.output.output {
        Format::Json => output::json(&answer)?,
        Format::Yaml => output::yaml(&answer)?,
        Format::Name => output::data(&format!("secret/{}", answer.name))?,
        Format::Table | Format::Wide => {
            output::data(&format!("secret/{} {}", answer.name, answer.change))?;
            for service in &answer.restart {
                output::note(&format!(
                    "service '{service}' sees it after: ankka services restart {service} -p {}",
                    project.id
                ));
            }
        }
    }
    Ok(Exit::Success)
}

/// Merges the entries into the Secret, or makes it. Each way may find that somebody else was faster, and then it is the other.
async fn store(
    cluster: &Cluster,
    project: &Project,
    name: &str,
    entries: BTreeMap<String, ByteString>,
) -> Result<Change, Error> {
    let secrets = super::secrets(cluster, project);
    let attempt = Attempt { verb: "set", subject: Subject::Secret(name, project) };
    let failed = |cause| cluster.explain(attempt, cause);
    // Who may change Secrets and not read them can still set: it is then not known whether anything changed.
    let before = match secrets.get_metadata_opt(name).await {
        Ok(found) => found,
        Err(kube::Error::Api(status)) if status.code == 403 => None,
        Err(cause) => return Err(failed(cause)),
    };
    let merge = json!({ "data": entries });
    let params = PatchParams { field_manager: Some(labels::CLI_MANAGER.to_owned()), ..PatchParams::default() };
    match secrets.patch(name, &params, &Patch::Merge(&merge)).await {
        Ok(after) => {
            let same = before.is_some_and(|before| before.resource_version() == after.resource_version());
            return Ok(if same { Change::Unchanged } else { Change::Configured });
        }
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(cause) => return Err(failed(cause)),
    }
    let secret = Secret {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        type_: Some("Opaque".to_owned()),
        data: Some(entries),
        ..Secret::default()
    };
    let params = PostParams { field_manager: Some(labels::CLI_MANAGER.to_owned()), ..PostParams::default() };
    match secrets.create(&params, &secret).await {
        Ok(_) => Ok(Change::Created),
        Err(kube::Error::Api(status)) if status.code == 409 && status.reason == "AlreadyExists" => {
            let params = PatchParams { field_manager: Some(labels::CLI_MANAGER.to_owned()), ..PatchParams::default() };
            secrets.patch(name, &params, &Patch::Merge(&merge)).await.map_err(failed)?;
            Ok(Change::Configured)
        }
        Err(cause) => Err(failed(cause)),
    }
}
