//! `ankka projects delete`.

use std::fmt::Debug;

use ankka_crds::{AnkkaBucket, AnkkaDatabase, AnkkaService};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::args::{Global, OutputArgs};
use crate::cluster::{Attempt, Cluster, Subject};
use crate::complete;
use crate::error::{Error, Exit, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;

/// The page that says how an administrator removes data by hand.
const PAGE: &str = "docs/removing-data.md";

/// Types of the Secrets that hold credentials.
const CREDENTIALS: [&str; 2] = ["ankka.dev/database-credential", "ankka.dev/storage-credential"];

/// Deletes a project that holds no service, bucket, database or credential. No command deletes data.
#[derive(clap::Args)]
pub(crate) struct DeleteArgs {
    /// The project's id
    #[arg(add = complete::projects())]
    name: String,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// What was deleted and what was not.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Deletion<'a> {
    name: &'a str,
    deleted: bool,
    kept_namespace: &'a str,
}

/// Deletes the project, if nothing is in it.
pub(crate) async fn delete(args: DeleteArgs, global: &Global) -> Outcome {
    let project = Settings::load()?.project(&args.name)?;
    let cluster = Cluster::connect(global).await?;
    let attempt = Attempt { verb: "delete", subject: Subject::Project(&args.name) };
    let failed = |cause| cluster.explain(attempt, cause);
    let stored = cluster.projects().get(&args.name).await.map_err(failed)?;
    let namespace = stored.status.as_ref().and_then(|status| status.namespace.clone()).unwrap_or(project.namespace);

    let held = held(&cluster, &namespace).await.map_err(|cause| Error {
        hint: Some("nothing was deleted: what the project holds could not be seen completely".to_owned()),
        ..failed(cause)
    })?;
    if !held.is_empty() {
        return Err(Error::new(format!("project '{}' is not empty: {}", args.name, held.join(", ")))
            .hint(format!("delete its services; how an administrator removes data by hand is described in {PAGE}")));
    }
    let same = Preconditions { uid: stored.uid(), resource_version: None };
    let params = DeleteParams { preconditions: Some(same), ..DeleteParams::background() };
    cluster.projects().delete(&args.name, &params).await.map_err(failed)?;

    let deleted = Deletion { name: &args.name, deleted: true, kept_namespace: &namespace };
    match args.output.output {
        Format::Json => output::json(&deleted)?,
        Format::Yaml => output::yaml(&deleted)?,
        Format::Name => output::data(&format!("project/{}", args.name))?,
        Format::Table | Format::Wide => {
            output::data(&format!("project/{} deleted", args.name))?;
            output::note(&format!(
                "kept: namespace '{namespace}'; it holds nothing of the platform's, remove it with: kubectl delete namespace {namespace}"
            ));
        }
    }
    Ok(Exit::Success)
}

/// Everything in the namespace that holds data or makes it reachable. Secrets are listed by name only.
async fn held(cluster: &Cluster, namespace: &str) -> kube::Result<Vec<String>> {
    let all = ListParams::default();
    let credentials = CREDENTIALS.map(|kind| ListParams::default().fields(&format!("type={kind}")));
    let (services, buckets, databases, of_databases, of_buckets) = futures::try_join!(
        names::<AnkkaService>(cluster, namespace, "service", &all),
        names::<AnkkaBucket>(cluster, namespace, "bucket", &all),
        names::<AnkkaDatabase>(cluster, namespace, "database", &all),
        names::<Secret>(cluster, namespace, "credential", &credentials[0]),
        names::<Secret>(cluster, namespace, "credential", &credentials[1]),
    )?;
    Ok([services, buckets, databases, of_databases, of_buckets].concat())
}

async fn names<K>(cluster: &Cluster, namespace: &str, kind: &str, params: &ListParams) -> kube::Result<Vec<String>>
where
    K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    K::DynamicType: Default,
{
    let found = Api::<K>::namespaced(cluster.client(), namespace).list_metadata(params).await?;
    Ok(found.items.iter().map(|object| format!("{kind} '{}'", object.name_any())).collect())
}
