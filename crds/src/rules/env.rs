//! `env`: each entry, the variables the platform sets, and the Secrets it issues.

use std::collections::HashMap;

use super::{Findings, grammar};
use crate::ServiceSpec;
use crate::names;
use crate::resources::{EnvEntry, SecretKeyRef};
use crate::validated::{Database, EnvSource, EnvVar};

/// The variable that carries the port.
const HTTP_PORT: &str = "ANKKA_HTTP_PORT";

/// The variables the platform sets, beside the port's (descriptor document, "Reserved variables").
const PLATFORM: [&str; 10] = [
    "ANKKA_CLUSTER_MODE",
    "POD_IP",
    "ANKKA_CLUSTER_SERVICE",
    "ANKKA_CLUSTER_POD_SELECTOR",
    "ANKKA_CLUSTER_CONTACT_POINTS",
    "ANKKA_PROCESS_PORT",
    "ANKKA_PROCESS_ADDRESS",
    "ANKKA_SIDECAR_PORT",
    "ANKKA_SIDECAR_ADDRESS",
    "ANKKA_SIDECAR_BIND",
];

/// A service that declares a variable whose name starts so brings its own database.
const DATABASE_PREFIX: &str = "ANKKA_DB_";

/// Checks each entry on its own, and that no name is declared twice.
pub(super) fn entries(service: &ServiceSpec, found: &mut Findings<'_>) -> Vec<EnvVar> {
    let entries = declared(service);
    let mut first: HashMap<&str, usize> = HashMap::with_capacity(entries.len());
    let mut vars = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let name = name_of(entry);
        let shown = grammar::shown(name);
        let path = format_args!("service.env[{index}].name");
        if name.is_empty() {
            found.add(path, "env var name must not be empty");
        } else if !is_name(name) {
            found.add(
                path,
                format!(
                    "env var name '{shown}' is invalid: letters, digits, '-', '_' and '.', not starting with a digit"
                ),
            );
        }
        let source = source(index, entry, &shown, found);
        if !name.is_empty() {
            if let Some(earlier) = first.get(name) {
                found.add(path, format!("env var '{shown}' is declared twice: env[{earlier}] has the same name"));
            } else {
                first.insert(name, index);
            }
        }
        vars.push(EnvVar { name: name.to_owned(), source });
    }
    vars
}

/// Checks that no variable is one the platform sets: first the port's, then the others.
pub(super) fn reserved(service: &ServiceSpec, found: &mut Findings<'_>) {
    for (index, _) in declared(service).iter().enumerate().filter(|(_, entry)| name_of(entry) == HTTP_PORT) {
        found.add(
            format_args!("service.env[{index}].name"),
            "env var 'ANKKA_HTTP_PORT' conflicts with the service port; declare the port instead",
        );
    }
    for (index, entry) in declared(service).iter().enumerate() {
        let name = name_of(entry);
        if PLATFORM.contains(&name) {
            found.add(
                format_args!("service.env[{index}].name"),
                format!("env var '{name}' is set by the platform and cannot be declared"),
            );
        }
    }
}

/// Checks that no variable is read from a Secret that the platform issues to one service: its own or another's.
pub(super) fn issued_secrets(service: &ServiceSpec, found: &mut Findings<'_>) {
    for (index, entry) in declared(service).iter().enumerate() {
        let secret = entry.secret_key_ref.as_ref().and_then(|reference| reference.name.as_deref()).unwrap_or_default();
        if names::is_issued_secret(secret) && found.readable(format_args!("service.env[{index}].name")) {
            let (name, secret) = (grammar::shown(name_of(entry)), grammar::shown(secret));
            found.add(
                format_args!("service.env[{index}].secretKeyRef.name"),
                format!(
                    "env var '{name}': secret '{secret}' is issued by the platform and cannot be read by a service"
                ),
            );
        }
    }
}

/// Who supplies the database: by the variables' names, whatever their values come from.
pub(super) fn database(env: &[EnvVar]) -> Database {
    if env.iter().any(|var| var.name.starts_with(DATABASE_PREFIX)) { Database::Supplied } else { Database::Provisioned }
}

/// Whether a service brings its own database, as far as its variables say. For descriptors that need not keep the rules.
pub fn supplies_database(service: &ServiceSpec) -> bool {
    declared(service).iter().any(|entry| name_of(entry).starts_with(DATABASE_PREFIX))
}

/// The declared entries.
pub(super) fn declared(service: &ServiceSpec) -> &[EnvEntry] {
    service.env.as_deref().unwrap_or_default()
}

/// An entry's name; empty when it has none.
pub(super) fn name_of(entry: &EnvEntry) -> &str {
    entry.name.as_deref().unwrap_or_default()
}

fn source(index: usize, entry: &EnvEntry, name: &str, found: &mut Findings<'_>) -> EnvSource {
    let readable = found.readable(format_args!("service.env[{index}].name"))
        && found.readable(format_args!("service.env[{index}].value"))
        && found.readable(format_args!("service.env[{index}].secretKeyRef"));
    match (&entry.value, &entry.secret_key_ref) {
        (Some(_), Some(_)) if readable => {
            found.add(
                format_args!("service.env[{index}]"),
                format!("env var '{name}' sets both value and secretKeyRef"),
            );
        }
        (None, None) if readable => {
            found.add(
                format_args!("service.env[{index}]"),
                format!("env var '{name}' sets neither value nor secretKeyRef"),
            );
        }
        _ => {}
    }
    let value = entry.value.clone().unwrap_or_default();
    if value.contains('\0') {
        found.add(
            format_args!("service.env[{index}].value"),
            format!("env var '{name}': value must not contain the character NUL, which ends it for every program"),
        );
    }
    match &entry.secret_key_ref {
        Some(reference) => secret(index, reference, name, found),
        None => EnvSource::Value(value),
    }
}

fn secret(index: usize, reference: &SecretKeyRef, name: &str, found: &mut Findings<'_>) -> EnvSource {
    let secret = reference.name.as_deref().unwrap_or_default();
    let key = reference.key.as_deref().unwrap_or_default();
    let path = format_args!("service.env[{index}].secretKeyRef.name");
    if secret.is_empty() {
        found.add(path, format!("env var '{name}': secretKeyRef name must not be empty"));
    } else if !grammar::is_subdomain(secret) {
        let secret = grammar::shown(secret);
        found.add(
            path,
            format!(
                "env var '{name}': secretKeyRef name '{secret}' is invalid: lowercase letters, digits, '-' and '.', at most 253 characters"
            ),
        );
    }
    let path = format_args!("service.env[{index}].secretKeyRef.key");
    if key.is_empty() {
        found.add(path, format!("env var '{name}': secretKeyRef key must not be empty"));
    } else if !grammar::is_secret_key(key) {
        let key = grammar::shown(key);
        found.add(
            path,
            format!(
                "env var '{name}': secretKeyRef key '{key}' is invalid: letters, digits, '-', '_' and '.', at most 253 characters"
            ),
        );
    }
    EnvSource::Secret { name: secret.to_owned(), key: key.to_owned() }
}

/// The names every supported Kubernetes takes.
fn is_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit()) && name.bytes().all(grammar::is_name_byte)
}
