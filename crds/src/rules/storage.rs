//! The object-storage fields (storage document; reference, section A5), in the reference's order.

use super::{Context, Findings, Store, env, grammar};
use crate::validated::Storage;
use crate::{ServiceSpec, names};

const ASK: &str = "service.provisionObjectStorage";
const EXPOSE: &str = "service.exposeObjectStorage";
const ORIGINS: &str = "service.objectStorageOrigins";
const CREDENTIAL: &str = "service.objectStorageCredential";
const AGE: &str = "service.objectStorageVersionAgeDays";

/// A service that declares a variable whose name starts so brings its own object store.
const SUPPLIED_PREFIX: &str = "ANKKA_S3_";

/// Checks the fields against each other, and against the project and the installation where they are known.
pub(super) fn check(name: &str, service: &ServiceSpec, context: Context<'_>, found: &mut Findings<'_>) -> Storage {
    let asked = service.provision_object_storage.unwrap_or(false);
    let supplied = own_store(service, asked, found);
    if !asked && found.readable(ASK) {
        needs(service, found);
    }
    for (index, origin) in service.object_storage_origins.iter().flatten().enumerate() {
        if !is_origin(origin) {
            let origin = grammar::shown(origin);
            found.add(format_args!("{ORIGINS}[{index}]"), format!("objectStorageOrigins: '{origin}' is not an origin"));
        }
    }
    if let Some(days) = service.object_storage_version_age_days
        && days < 1
    {
        found.add(AGE, format!("objectStorageVersionAgeDays is {days}; it must be one or more"));
    }
    if asked {
        fits(name, service, context, found);
        return Storage::Provisioned {
            exposed: service.expose_object_storage.unwrap_or(false),
            origins: service.object_storage_origins.clone().unwrap_or_default(),
            credential: service.object_storage_credential.unwrap_or(true),
            version_age_days: service.object_storage_version_age_days,
        };
    }
    if supplied { Storage::Supplied } else { Storage::None }
}

/// Whether the service brings a store of its own, which it may not when it asks for a bucket.
fn own_store(service: &ServiceSpec, asked: bool, found: &mut Findings<'_>) -> bool {
    let mut supplied = false;
    for (index, entry) in env::declared(service).iter().enumerate() {
        let variable = env::name_of(entry);
        if !variable.starts_with(SUPPLIED_PREFIX) {
            continue;
        }
        supplied = true;
        if asked {
            let variable = grammar::shown(variable);
            found.add(
                format_args!("service.env[{index}].name"),
                format!(
                    "provisionObjectStorage cannot be combined with env var '{variable}', which supplies an object store of the service's own"
                ),
            );
        }
    }
    supplied
}

/// Fields that mean something only beside a bucket the platform makes.
fn needs(service: &ServiceSpec, found: &mut Findings<'_>) {
    if service.expose_object_storage == Some(true) {
        found.add(
            EXPOSE,
            "exposeObjectStorage needs provisionObjectStorage: only a bucket the platform made can be reached from outside the cluster",
        );
    }
    let origins = service.object_storage_origins.as_ref().is_some_and(|origins| !origins.is_empty());
    let declared = [
        (ORIGINS, "objectStorageOrigins", origins),
        (CREDENTIAL, "objectStorageCredential", service.object_storage_credential == Some(false)),
        (AGE, "objectStorageVersionAgeDays", service.object_storage_version_age_days.is_some()),
    ];
    for (path, field, _) in declared.into_iter().filter(|(_, _, declared)| *declared) {
        found.add(path, format!("{field} needs provisionObjectStorage: it describes a bucket the platform makes"));
    }
}

/// Whether the installation's store can hold this service's bucket; silent where the installation is not known.
fn fits(name: &str, service: &ServiceSpec, context: Context<'_>, found: &mut Findings<'_>) {
    let Some(installation) = context.installation else {
        return;
    };
    match installation.store {
        Some(Store::Garage) => {
            if let Some(project) = context.project {
                garage_bucket(&names::bucket(project, name), found);
            }
            if service.object_storage_credential == Some(false) {
                found.add(
                    CREDENTIAL,
                    "objectStorageCredential: a bucket in Garage is reached only with a storage credential",
                );
            }
        }
        Some(Store::Gcs) if installation.cloud_provider.is_none() => {
            found.add(ASK, "object storage 'gcs' needs a cloud provider, and the installation names none");
        }
        Some(Store::Gcs) | None => {}
    }
}

fn garage_bucket(bucket: &str, found: &mut Findings<'_>) {
    for problem in refused_by_garage(bucket) {
        found.add("name", problem);
    }
}

/// Why Garage can have no bucket of this name.
pub fn refused_by_garage(bucket: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let length = bucket.chars().count();
    let shown = grammar::shown(bucket);
    if length > names::BUCKET_LIMIT {
        problems.push(format!(
            "bucket name '{shown}' is {length} characters, over the 63 character limit for a bucket's name; a shorter service name or project id is the only fix"
        ));
    }
    if bucket.split('.').any(|part| part.starts_with("xn--")) || bucket.ends_with("-s3alias") {
        problems.push(format!(
            "bucket name '{shown}' is one Garage refuses: no part of it may start with 'xn--', and it may not end with '-s3alias'; another service name or project id is the only fix"
        ));
    }
    problems
}

/// `*`, `https://host` or `https://host:port`.
fn is_origin(origin: &str) -> bool {
    if origin == "*" {
        return true;
    }
    let Some(authority) = origin.strip_prefix("https://") else {
        return false;
    };
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    host.starts_with(|first: char| first.is_ascii_alphanumeric())
        && host.ends_with(|last: char| last.is_ascii_alphanumeric())
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
        && port.is_none_or(is_port)
}

/// 1 to 65535, as a browser writes it: without leading zeros.
fn is_port(port: &str) -> bool {
    port.starts_with(|first: char| matches!(first, '1'..='9'))
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_origin;

    #[test]
    fn an_origin_is_https_and_a_host_or_a_star() {
        for good in [
            "*",
            "https://play.example",
            "https://play.example:8443",
            "https://a-b.c.example",
            "https://a",
            "https://h:1",
            "https://h:65535",
        ] {
            assert!(is_origin(good), "{good}");
        }
        for bad in [
            "",
            "play.example",
            "http://localhost:3000",
            "https://app.example.com/",
            "https://app.example.com/p",
            "https://*.example.com",
            "https://app.example.com:*",
            "https://app.example.com:99999",
            "https://app.example.com:0",
            "https://app.example.com:",
            "https://app.example.com:+1",
            "https://u@h",
            "HTTPS://App.Example.com",
            "ftp://x",
            "https://",
            "https://-a",
            "https://a.",
            "https://[::1]",
            "https://a b",
            " https://a",
            "null",
        ] {
            assert!(!is_origin(bad), "{bad}");
        }
    }
}
