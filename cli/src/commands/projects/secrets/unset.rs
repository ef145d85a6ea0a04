//! `ankka projects secrets unset`.

use ankka_crds::{labels, names};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde::Serialize;
use serde_json::json;

use super::{NAME_FIRST, running_users};
use crate::args::{Global, OutputArgs};
use crate::cluster::{Attempt, Cluster, Subject};
use crate::error::{Error, Exit, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;

/// Takes entries out of a Secret, or the whole Secret away. Credentials that the platform issued stay.
#[derive(clap::Args)]
pub(crate) struct UnsetArgs {
    /// The Secret
    name: String,

    /// Entry to take out; may be repeated. Without any the whole Secret goes
    #[arg(value_name = "KEY")]
    keys: Vec<String>,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// What was done.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    name: &'a str,
    project: &'a str,
    /// Keys that were taken out.
    keys: Vec<String>,
    /// Whether nothing is left of it.
    deleted: bool,
    /// Services whose next instance cannot start without what was taken out.
    used_by: Vec<String>,
}

/// Takes out the entries; the Secret with the last of them.
pub(crate) async fn unset(args: UnsetArgs, global: &Global) -> Outcome {
    let project = Settings::load()?.selected(global.project.as_deref())?;
    // What has a `=` holds a value, which is not repeated.
    if args.name.contains('=') {
        return Err(Error::new("secret name must not contain '='").hint(NAME_FIRST));
    }
    if args.keys.iter().any(|key| key.contains('=')) {
        return Err(
            Error::new("an argument is no entry name: it contains '='").hint("name what to take out by its key alone")
        );
    }
    if !names::is_object_name(&args.name) {
        return Err(Error::new(format!("'{}' is not the name of a Secret", args.name)));
    }
    let cluster = Cluster::connect(global).await?;
    let attempt = Attempt { verb: "unset", subject: Subject::Secret(&args.name, &project) };
    let failed = |cause| cluster.explain(attempt, cause);
    let secrets = super::secrets(&cluster, &project);
    let stored = secrets.get(&args.name).await.map_err(failed)?;
    if stored
        .type_
        .as_deref()
        .is_some_and(|kind| [names::DATABASE_SECRET_TYPE, names::STORAGE_SECRET_TYPE].contains(&kind))
    {
        return Err(Error::new(format!("secret '{}' is a credential that the platform issued", args.name))
            .hint("no command removes data; how an administrator does is described in docs/removing-data.md"));
    }
    let present: Vec<&String> = stored.data.iter().flatten().map(|(key, _)| key).collect();
    if let Some(absent) = args.keys.iter().find(|key| !present.contains(key)) {
        return Err(Error::new(format!("secret '{}' has no entry '{absent}'", args.name))
            .hint(format!("see what is there with: ankka projects secrets list -p {}", project.id)));
    }
    let deleted = args.keys.is_empty() || present.iter().all(|key| args.keys.contains(key));
    let taken = if args.keys.is_empty() { present.into_iter().cloned().collect() } else { args.keys.clone() };
    if deleted {
        let seen = Preconditions { uid: stored.uid(), resource_version: stored.resource_version() };
        let params = DeleteParams { preconditions: Some(seen), ..DeleteParams::default() };
        secrets.delete(&args.name, &params).await.map_err(failed)?;
    } else {
        let gone: serde_json::Map<_, _> = taken.iter().map(|key| (key.clone(), json!(null))).collect();
        // Somebody may have taken the other entries out meanwhile.
        let merge = json!({ "metadata": { "resourceVersion": stored.resource_version() }, "data": gone });
        let params = PatchParams { field_manager: Some(labels::CLI_MANAGER.to_owned()), ..PatchParams::default() };
        secrets.patch(&args.name, &params, &Patch::Merge(merge)).await.map_err(failed)?;
    }
    let used_by = running_users(&cluster, &project, &args.name, &taken).await;
    let answer = Answer { name: &args.name, project: &project.id, keys: taken, deleted, used_by };
    match args.output.output {
        Format::Json => output::json(&answer)?,
        Format::Yaml => output::yaml(&answer)?,
        Format::Name => output::data(&format!("secret/{}", answer.name))?,
        Format::Table | Format::Wide => {
            output::data(&format!("secret/{} {}", answer.name, if deleted { "deleted" } else { "configured" }))?;
            for service in &answer.used_by {
                output::warning(&format!(
                    "service '{service}' names what was taken out: its instances run on, and the next one cannot start"
                ));
            }
        }
    }
    Ok(Exit::Success)
}
