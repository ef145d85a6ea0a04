//! `ankka projects secrets`: a project's Secrets, which services name in `env`. No command prints a value, and each uses the
//! caller's own rights on Secrets: the platform has none.

mod entries;
mod list;
mod set;
mod unset;

use ankka_crds::{AnkkaService, names};
use clap::Subcommand;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::super::online;
use crate::args::Global;
use crate::cluster::Cluster;
use crate::error::Outcome;
use crate::output;
use crate::settings::Project;

/// What to say to whoever began with an entry.
const NAME_FIRST: &str = "the first argument is the Secret's name, and its entries follow";

/// The commands; each is described where its arguments are.
#[derive(Subcommand)]
pub(crate) enum Command {
    Set(set::SetArgs),
    Unset(unset::UnsetArgs),
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
}

impl Command {
    /// Whether errors are JSON too.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Set(args) => args.output.json(),
            Self::Unset(args) => args.output.json(),
            Self::List(args) => args.output.json(),
        }
    }
}

/// Does what was asked.
pub(crate) fn run(command: Command, global: &Global) -> Outcome {
    match command {
        Command::Set(args) => online(set::set(args, global)),
        Command::Unset(args) => online(unset::unset(args, global)),
        Command::List(args) => online(list::list(args, global)),
    }
}

fn secrets(cluster: &Cluster, project: &Project) -> Api<Secret> {
    Api::namespaced(cluster.client(), &project.namespace)
}

/// Selects by type what the platform did not issue.
fn not_issued() -> String {
    format!("type!={},type!={}", names::DATABASE_SECRET_TYPE, names::STORAGE_SECRET_TYPE)
}

/// The services whose environment names one of these keys of a Secret, or any when none is given.
fn users<'a>(services: impl IntoIterator<Item = &'a AnkkaService>, secret: &str, keys: &[String]) -> Vec<String> {
    let named = |service: &&AnkkaService| {
        let references = service.spec.service.env.iter().flatten().filter_map(|entry| entry.secret_key_ref.as_ref());
        references
            .filter(|reference| reference.name.as_deref() == Some(secret))
            .any(|reference| keys.is_empty() || reference.key.as_ref().is_some_and(|key| keys.contains(key)))
    };
    services.into_iter().filter(named).map(ResourceExt::name_any).collect()
}

/// The services of the project that use these keys and have instances. That they cannot be seen is said, and no failure: what
/// was asked for is done.
async fn running_users(cluster: &Cluster, project: &Project, secret: &str, keys: &[String]) -> Vec<String> {
    match cluster.services(project).list(&ListParams::default()).await {
        Ok(found) => users(found.items.iter().filter(|service| !service.spec.paused), secret, keys),
        Err(cause) => {
            output::note(&format!(
                "which services use it is not known: {}",
                match cause {
                    kube::Error::Api(status) => status.message,
                    other => other.to_string(),
                }
            ));
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_uses_the_keys_that_its_environment_names() {
        let service = |name: &str, key: &str| -> AnkkaService {
            let reference = json!({ "name": "api-keys", "key": key });
            let env = json!([{ "name": "PLAIN", "value": "api-keys" }, { "name": "KEY", "secretKeyRef": reference }]);
            serde_json::from_value(
                json!({ "metadata": { "name": name }, "spec": { "service": { "image": "i:1", "env": env } } }),
            )
            .expect("is a service")
        };
        let services = [service("cart", "A"), service("mail", "B")];
        let keys = |keys: &[&str]| keys.iter().map(|&key| key.to_owned()).collect::<Vec<_>>();
        assert_eq!(users(&services, "api-keys", &keys(&["A", "C"])), ["cart"]);
        assert_eq!(users(&services, "api-keys", &[]), ["cart", "mail"]);
        assert_eq!(users(&services, "other", &[]), [] as [&str; 0]);
    }
}
