//! The environment of the containers: the descriptor's variables in their order, then the platform's.

use ankka_crds::validated;
use k8s_openapi::api::core::v1::{ConfigMapKeySelector, EnvVar, EnvVarSource, ObjectFieldSelector, SecretKeySelector};

use super::{Blueprint, config_map, labels};
use crate::ChildKind;

/// Prefixes of the variables that go to the sidecar: it calls the model and owns the journal.
const SIDECAR_PREFIXES: [&str; 3] = ["ANTHROPIC_", "ANKKA_MODEL_", "ANKKA_DB_"];

/// The variables with the login of a database that the platform makes: each is a key of its Secret. They are named one by
/// one, so that a node says which one is missing, and nothing else in the Secret becomes a variable.
const DATABASE: [&str; 5] = ["ANKKA_DB_HOST", "ANKKA_DB_PORT", "ANKKA_DB_NAME", DATABASE_USER, "ANKKA_DB_PASSWORD"];

/// The one that names the login.
pub(crate) const DATABASE_USER: &str = "ANKKA_DB_USER";

const PROCESS_PORT: &str = "9010";
const SIDECAR_PORT: &str = "9011";
const LOOPBACK: &str = "127.0.0.1";

/// The variables of an embedded service's only container.
pub(super) fn of_embedded(blueprint: &Blueprint<'_>) -> Vec<EnvVar> {
    let mut env = declared(blueprint, |_| true);
    env.extend(of_node(blueprint));
    env
}

/// The variables of the sidecar, which is the cluster node of a process-hosted service.
pub(super) fn of_sidecar(blueprint: &Blueprint<'_>) -> Vec<EnvVar> {
    let mut env = declared(blueprint, is_for_sidecar);
    env.extend(of_node(blueprint));
    env.extend([
        literal("ANKKA_PROCESS_ADDRESS", &format!("{LOOPBACK}:{PROCESS_PORT}")),
        literal("ANKKA_SIDECAR_PORT", SIDECAR_PORT),
        literal("ANKKA_SIDECAR_BIND", LOOPBACK),
    ]);
    env
}

/// The variables of the user's own process beside the sidecar.
pub(super) fn of_process(blueprint: &Blueprint<'_>) -> Vec<EnvVar> {
    let mut env = declared(blueprint, |name| !is_for_sidecar(name));
    env.extend([
        literal("ANKKA_PROCESS_PORT", PROCESS_PORT),
        literal("ANKKA_SIDECAR_ADDRESS", &format!("{LOOPBACK}:{SIDECAR_PORT}")),
    ]);
    env
}

fn of_node(blueprint: &Blueprint<'_>) -> Vec<EnvVar> {
    let name = &blueprint.service.name;
    let mut env = Vec::new();
    if let Some(port) = blueprint.service.port {
        env.push(literal("ANKKA_HTTP_PORT", &port.to_string()));
    }
    env.extend([
        literal("ANKKA_CLUSTER_MODE", "kubernetes"),
        sourced(
            "POD_IP",
            EnvVarSource {
                field_ref: Some(ObjectFieldSelector {
                    api_version: Some("v1".to_owned()),
                    field_path: "status.podIP".to_owned(),
                }),
                ..Default::default()
            },
        ),
        literal("ANKKA_CLUSTER_SERVICE", name),
        literal("ANKKA_CLUSTER_POD_SELECTOR", &labels::peer_selector(blueprint)),
        sourced(
            "ANKKA_CLUSTER_CONTACT_POINTS",
            EnvVarSource {
                config_map_key_ref: Some(ConfigMapKeySelector {
                    name: ChildKind::ConfigMap.name_for(name),
                    key: config_map::CONTACT_POINTS.to_owned(),
                    optional: None,
                }),
                ..Default::default()
            },
        ),
    ]);
    if let Some(database) = &blueprint.database {
        env.extend(DATABASE.map(|key| of_secret(key, &database.secret, key)));
    }
    env
}

fn is_for_sidecar(name: &str) -> bool {
    SIDECAR_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn declared(blueprint: &Blueprint<'_>, wanted: impl Fn(&str) -> bool) -> Vec<EnvVar> {
    let variables = blueprint.service.env.iter().filter(|variable| wanted(&variable.name));
    variables.map(variable).collect()
}

fn variable(declared: &validated::EnvVar) -> EnvVar {
    match &declared.source {
        validated::EnvSource::Value(value) => literal(&declared.name, value),
        validated::EnvSource::Secret { name, key } => of_secret(&declared.name, name, key),
    }
}

fn of_secret(variable: &str, secret: &str, key: &str) -> EnvVar {
    let key = SecretKeySelector { name: secret.to_owned(), key: key.to_owned(), optional: None };
    sourced(variable, EnvVarSource { secret_key_ref: Some(key), ..Default::default() })
}

/// A value that arrives byte for byte: Kubernetes reads `$(NAME)` as a reference and `$$` as one dollar, so every dollar is
/// doubled. An empty value is left out, as the API server stores it.
fn literal(name: &str, value: &str) -> EnvVar {
    let value = (!value.is_empty()).then(|| value.replace('$', "$$"));
    EnvVar { name: name.to_owned(), value, value_from: None }
}

fn sourced(name: &str, source: EnvVarSource) -> EnvVar {
    EnvVar { name: name.to_owned(), value: None, value_from: Some(source) }
}
