//! Settings, from environment variables. A value that cannot be is refused by name; nothing is guessed.

use std::net::SocketAddr;

use ankka_crds::{Installation, Store, compat::Platform, exposure::Domain, names};
use ankka_desired::{DatabaseServer, Gateway};
use ankka_runtime::settings::{Reader, Refusal};

use crate::queue::Timing;

/// Everything that is set from outside.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the installation decides about every service.
    pub desired: ankka_desired::Settings,
    /// When services are looked at again.
    pub timing: Timing,
    /// How many services are worked on at a time.
    pub concurrency: usize,
    /// How many services are upgraded at a time.
    pub upgrades: usize,
    /// Namespaces beside the Gateway's that what serves it runs in.
    pub proxy_namespaces: Vec<String>,
    /// The name of this replica.
    pub pod: String,
    /// Where metrics and health are served.
    pub listen: SocketAddr,
}

/// How long a rollout may make no progress before it counts as failed.
const PROGRESS_DEADLINE_SECONDS: i32 = 600;

impl Settings {
    /// Reads all settings by `variable`, which answers with a variable's value, or refuses all that cannot be.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Vec<Refusal>> {
        let mut reader = Reader::new(variable);
        let prefix =
            reader.text_that("ANKKA_K8S_NAMESPACE_PREFIX", names::DEFAULT_PREFIX, names::is_prefix, names::PREFIX_RULE);
        let own_namespace = reader.text("POD_NAMESPACE", "ankka-system");
        let image_pull_secrets = reader.text("ANKKA_IMAGE_PULL_SECRETS", "");
        let sidecar_image = Some(reader.text("ANKKA_SIDECAR_IMAGE", "")).filter(|image| !image.is_empty());
        let store = store(&mut reader);
        let database = database(&mut reader);
        let domain = domain(&mut reader);
        let gateway = gateway(&mut reader);
        let proxy_namespaces = proxy_namespaces(&mut reader);
        let timing = reader.timing(
            "ANKKA_OPERATOR_RESYNC_SECONDS",
            ("ANKKA_OPERATOR_RETRY_MIN_BACKOFF_SECONDS", 2),
            ("ANKKA_OPERATOR_RETRY_MAX_BACKOFF_SECONDS", 300),
        );
        let settings = Self {
            desired: ankka_desired::Settings {
                prefix,
                own_namespace,
                platform: Platform::new(env!("CARGO_PKG_VERSION")).expect("cargo's version is MAJOR.MINOR.PATCH"),
                installation: Installation { store, ..Installation::default() },
                database,
                sidecar_image,
                image_pull_secrets: list(&image_pull_secrets),
                domain,
                gateway,
                progress_deadline_seconds: PROGRESS_DEADLINE_SECONDS,
            },
            timing,
            concurrency: reader.number("ANKKA_OPERATOR_MAX_CONCURRENT_RECONCILES", 16, 1..=256),
            upgrades: reader.number("ANKKA_OPERATOR_MAX_CONCURRENT_UPGRADES", 3, 1..=10_000),
            proxy_namespaces,
            pod: reader.text("POD_NAME", "ankka-operator"),
            listen: reader.address("ANKKA_LISTEN", SocketAddr::from(([0, 0, 0, 0], 8080))),
        };
        reader.finish(settings)
    }
}

fn store(reader: &mut Reader<impl Fn(&str) -> Option<String>>) -> Option<Store> {
    let value = reader.get("ANKKA_OBJECT_STORE_BACKEND")?;
    match value.to_ascii_lowercase().as_str() {
        "garage" => Some(Store::Garage),
        "gcs" => Some(Store::Gcs),
        _ => {
            reader.refuse("ANKKA_OBJECT_STORE_BACKEND", &value, "garage or gcs, or not set".to_owned());
            None
        }
    }
}

fn domain(reader: &mut Reader<impl Fn(&str) -> Option<String>>) -> Option<Domain> {
    let port = reader.number("ANKKA_HTTPS_PORT", 443, 1..=u16::MAX);
    let base = name(reader, "ANKKA_BASE_DOMAIN", "");
    (!base.is_empty()).then_some(Domain { base, port })
}

fn gateway(reader: &mut Reader<impl Fn(&str) -> Option<String>>) -> Gateway {
    let documented = Gateway::default();
    Gateway {
        namespace: name(reader, "ANKKA_GATEWAY_NAMESPACE", &documented.namespace),
        name: name(reader, "ANKKA_GATEWAY_NAME", &documented.name),
        section: name(reader, "ANKKA_GATEWAY_SECTION", &documented.section),
    }
}

fn proxy_namespaces(reader: &mut Reader<impl Fn(&str) -> Option<String>>) -> Vec<String> {
    let names = list(&reader.text("ANKKA_GATEWAY_PROXY_NAMESPACES", ""));
    let (good, bad): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| names::is_object_name(name));
    for name in bad {
        reader.refuse("ANKKA_GATEWAY_PROXY_NAMESPACES", &name, "names of namespaces, with commas between".to_owned());
    }
    good
}

/// A lowercase DNS name.
fn name(reader: &mut Reader<impl Fn(&str) -> Option<String>>, variable: &'static str, default: &str) -> String {
    let name = reader.text(variable, default);
    if !name.is_empty() && !names::is_object_name(&name) {
        reader.refuse(variable, &name, "a lowercase DNS name, such as apps.example.com".to_owned());
    }
    name
}

fn database(reader: &mut Reader<impl Fn(&str) -> Option<String>>) -> DatabaseServer {
    match reader.get("ANKKA_DATABASE_SERVER").as_deref() {
        None | Some("none") => DatabaseServer::None,
        Some("provisioned") => DatabaseServer::Provisioned,
        Some(value) => {
            reader.refuse("ANKKA_DATABASE_SERVER", value, "none or provisioned".to_owned());
            DatabaseServer::None
        }
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use ankka_crds::settings;
    use std::time::Duration;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, Vec<Refusal>> {
        Settings::read(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn without_variables_the_documented_defaults_hold() {
        let settings = read(&[]).expect("defaults are valid");
        assert_eq!(settings.desired.prefix, "ankka");
        assert_eq!(settings.timing.resync, Duration::from_mins(5));
        assert_eq!(settings.timing.min_backoff, Duration::from_secs(2));
        assert_eq!(settings.timing.max_backoff, Duration::from_mins(5));
        assert_eq!((settings.concurrency, settings.upgrades), (16, 3));
        assert_eq!(settings.desired.sidecar_image, None);
        assert_eq!(settings.desired.installation.store, None);
        assert_eq!(settings.listen.port(), 8080);
        assert_eq!(settings.desired.domain, None);
        assert_eq!(settings.desired.gateway, Gateway::default());
    }

    #[test]
    fn values_are_taken() {
        let settings = read(&[
            ("ANKKA_IMAGE_PULL_SECRETS", "one, two,"),
            ("ANKKA_OBJECT_STORE_BACKEND", "Garage"),
            ("ANKKA_OPERATOR_MAX_CONCURRENT_RECONCILES", " 4 "),
            ("ANKKA_SIDECAR_IMAGE", ""),
            ("ANKKA_BASE_DOMAIN", "apps.example.com"),
            ("ANKKA_HTTPS_PORT", "8443"),
            ("ANKKA_GATEWAY_SECTION", "public"),
            ("ANKKA_GATEWAY_PROXY_NAMESPACES", "projectcontour, envoy"),
            ("ANKKA_DATABASE_SERVER", "provisioned"),
        ])
        .expect("valid");
        assert_eq!(settings.desired.image_pull_secrets, ["one", "two"]);
        assert_eq!(settings.desired.installation.store, Some(Store::Garage));
        assert_eq!(settings.desired.database, DatabaseServer::Provisioned);
        assert_eq!(settings.concurrency, 4);
        assert_eq!(settings.desired.domain, Some(Domain { base: "apps.example.com".to_owned(), port: 8443 }));
        assert_eq!(settings.desired.gateway, Gateway { section: "public".to_owned(), ..Gateway::default() });
        assert_eq!(settings.desired.sidecar_image, None);
        assert_eq!(settings.proxy_namespaces, ["projectcontour", "envoy"]);
    }

    #[test]
    fn every_value_that_cannot_be_is_refused_by_name() {
        let refused = read(&[
            ("ANKKA_K8S_NAMESPACE_PREFIX", "Ankka"),
            ("ANKKA_OPERATOR_RESYNC_SECONDS", "5m"),
            ("ANKKA_OPERATOR_MAX_CONCURRENT_RECONCILES", "0"),
            ("ANKKA_OPERATOR_MAX_CONCURRENT_UPGRADES", "0"),
            ("ANKKA_OBJECT_STORE_BACKEND", "s3"),
            ("ANKKA_DATABASE_SERVER", "yes"),
            ("ANKKA_LISTEN", "8080"),
            ("ANKKA_BASE_DOMAIN", "https://example.com"),
            ("ANKKA_HTTPS_PORT", "0"),
            ("ANKKA_GATEWAY_NAME", "My Gateway"),
            ("ANKKA_GATEWAY_PROXY_NAMESPACES", "one,My Proxies"),
            ("ANKKA_OPERATOR_RETRY_MAX_BACKOFF_SECONDS", "1"),
        ])
        .expect_err("refused");
        let texts: Vec<String> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "ANKKA_K8S_NAMESPACE_PREFIX is 'Ankka'; it must be at most 16 lowercase letters, digits and '-', starting with a letter",
                "ANKKA_OBJECT_STORE_BACKEND is 's3'; it must be garage or gcs, or not set",
                "ANKKA_DATABASE_SERVER is 'yes'; it must be none or provisioned",
                "ANKKA_HTTPS_PORT is '0'; it must be a whole number from 1 to 65535",
                "ANKKA_BASE_DOMAIN is 'https://example.com'; it must be a lowercase DNS name, such as apps.example.com",
                "ANKKA_GATEWAY_NAME is 'My Gateway'; it must be a lowercase DNS name, such as apps.example.com",
                "ANKKA_GATEWAY_PROXY_NAMESPACES is 'My Proxies'; it must be names of namespaces, with commas between",
                "ANKKA_OPERATOR_RETRY_MAX_BACKOFF_SECONDS is '1'; it must be at least ANKKA_OPERATOR_RETRY_MIN_BACKOFF_SECONDS",
                "ANKKA_OPERATOR_RESYNC_SECONDS is '5m'; it must be a whole number from 1 to 86400",
                "ANKKA_OPERATOR_MAX_CONCURRENT_RECONCILES is '0'; it must be a whole number from 1 to 256",
                "ANKKA_OPERATOR_MAX_CONCURRENT_UPGRADES is '0'; it must be a whole number from 1 to 10000",
                "ANKKA_LISTEN is '8080'; it must be an address and a port, such as 0.0.0.0:8080",
            ]
        );
    }

    #[test]
    fn what_is_read_is_what_the_reference_lists_with_its_defaults() {
        let read = std::cell::RefCell::new(std::collections::BTreeSet::new());
        let note = |name: &str| {
            read.borrow_mut().insert(name.to_owned());
            None
        };
        Settings::read(note).expect("nothing is required");
        ankka_runtime::settings::log_filter(note).expect("nothing is required");
        ankka_telemetry::Collector::read(note).expect("nothing is required");
        let mut listed = settings::names(settings::OPERATOR);
        listed.insert("RUST_LOG".to_owned());
        assert_eq!(read.into_inner(), listed);
        let given = Settings::read(|name| settings::default_of(settings::OPERATOR, name)).expect("valid");
        assert_eq!(format!("{given:?}"), format!("{:?}", Settings::read(|_| None).expect("valid")));
    }
}
