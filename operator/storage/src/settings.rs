//! Settings, from environment variables. A value that cannot be is refused by name; nothing is guessed.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use ankka_crds::names;
use ankka_runtime::{
    queue::Timing,
    settings::{Reader, Refusal},
};
use reqwest::Url;

use crate::store::Token;

/// Everything that is set from outside.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Prefix of project namespaces.
    pub prefix: String,
    /// The namespace the platform itself runs in.
    pub own_namespace: String,
    /// The object store; none when the installation has none.
    pub store: Option<Store>,
    /// How many buckets are worked on at a time.
    pub concurrency: usize,
    /// How long an access key that was replaced is still accepted.
    pub grace: Duration,
    /// When buckets are looked at again.
    pub timing: Timing,
    /// The name of this replica.
    pub pod: String,
    /// Where metrics and health are served.
    pub listen: SocketAddr,
}

/// A Garage: how it is administered, and how services reach it.
#[derive(Clone, Debug)]
pub struct Store {
    /// Address of its admin API.
    pub admin: Url,
    /// The administrator's token.
    pub token: Token,
    /// The authorities that are trusted, in PEM; those of the system when absent.
    pub authorities: Option<PathBuf>,
    /// Its S3 address, as services are told.
    pub endpoint: String,
    /// The region services sign for.
    pub region: String,
    /// How long one call may take.
    pub timeout: Duration,
}

const ADMIN_URL: &str = "ANKKA_OBJECT_STORE_ADMIN_URL";
const ADMIN_TOKEN: &str = "ANKKA_OBJECT_STORE_ADMIN_TOKEN";
const ENDPOINT: &str = "ANKKA_OBJECT_STORE_ENDPOINT";
const REGION: &str = "ANKKA_OBJECT_STORE_REGION";

impl Settings {
    /// Reads all settings by `variable`, which answers with a variable's value, or refuses all that cannot be.
    ///
    /// # Errors
    /// Every value that cannot be.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Vec<Refusal>> {
        let mut reader = Reader::new(variable);
        let prefix =
            reader.text_that("ANKKA_K8S_NAMESPACE_PREFIX", names::DEFAULT_PREFIX, names::is_prefix, names::PREFIX_RULE);
        let timing = reader.timing(
            "ANKKA_STORAGE_RESYNC_SECONDS",
            ("ANKKA_STORAGE_RETRY_MIN_BACKOFF_SECONDS", 1),
            ("ANKKA_STORAGE_RETRY_MAX_BACKOFF_SECONDS", 30),
        );
        let settings = Self {
            prefix,
            own_namespace: reader.text("POD_NAMESPACE", "ankka-system"),
            store: store(&mut reader),
            concurrency: reader.number("ANKKA_STORAGE_CONCURRENCY", 4, 1..=64),
            grace: reader.seconds("ANKKA_OBJECT_STORE_CREDENTIAL_GRACE_SECONDS", 3600, 1..=31_536_000),
            timing,
            pod: reader.text("POD_NAME", "ankka-storage"),
            listen: reader.address("ANKKA_LISTEN", SocketAddr::from(([0, 0, 0, 0], 8080))),
        };
        reader.finish(settings)
    }
}

/// The store that the variables describe: all of them, or none.
fn store(reader: &mut Reader<impl Fn(&str) -> Option<String>>) -> Option<Store> {
    let timeout = reader.seconds("ANKKA_OBJECT_STORE_TIMEOUT_SECONDS", 15, 1..=300);
    if [ADMIN_URL, ADMIN_TOKEN, ENDPOINT, REGION].iter().all(|variable| reader.get(variable).is_none()) {
        return None;
    }
    let admin = address(reader, ADMIN_URL, "the http or https address of Garage's admin API");
    let endpoint = address(reader, ENDPOINT, "the http or https address that services reach the store at");
    let token = reader.required(ADMIN_TOKEN, "a token for Garage's admin API");
    let region = reader.required(REGION, "the region that Garage is configured with");
    Some(Store {
        admin: admin?,
        token: token?.into(),
        authorities: reader.get("ANKKA_OBJECT_STORE_CA_FILE").map(PathBuf::from),
        endpoint: endpoint?.as_str().trim_end_matches('/').to_owned(),
        region: region?,
        timeout,
    })
}

fn address(
    reader: &mut Reader<impl Fn(&str) -> Option<String>>,
    variable: &'static str,
    what: &'static str,
) -> Option<Url> {
    let value = reader.required(variable, what)?;
    let url = Url::parse(&value).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let bare = url.filter(|url| url.query().is_none() && url.fragment().is_none() && url.username().is_empty());
    if bare.is_none() {
        reader.refuse(variable, &value, what.to_owned());
    }
    bare
}

#[cfg(test)]
mod tests {
    use ankka_crds::settings;

    use super::*;

    const STORE: [(&str, &str); 4] = [
        (ADMIN_URL, "http://garage.garage-system.svc.cluster.local:3903"),
        (ADMIN_TOKEN, "do not show"),
        (ENDPOINT, "http://garage.garage-system.svc.cluster.local:3900"),
        (REGION, "garage"),
    ];

    fn read(variables: &[(&str, &str)]) -> Result<Settings, Vec<String>> {
        Settings::read(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
            .map_err(|refused| refused.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn an_installation_may_have_no_store() {
        assert!(read(&[]).expect("valid").store.is_none());
    }

    #[test]
    fn a_store_is_all_four_variables() {
        let settings = read(&STORE).expect("valid");
        let store = settings.store.as_ref().expect("a store");
        assert_eq!(store.endpoint, "http://garage.garage-system.svc.cluster.local:3900");
        assert_eq!((store.region.as_str(), store.timeout), ("garage", Duration::from_secs(15)));
        assert_eq!((settings.grace, settings.timing.resync), (Duration::from_hours(1), Duration::from_mins(5)));
        assert!(!format!("{settings:?}").contains("do not show"));
    }

    #[test]
    fn what_is_missing_or_cannot_be_is_refused_by_name() {
        assert_eq!(
            read(&[(ADMIN_URL, "garage:3903"), (REGION, "garage")]).expect_err("refused"),
            [
                "ANKKA_OBJECT_STORE_ADMIN_URL is 'garage:3903'; it must be the http or https address of Garage's admin API",
                "ANKKA_OBJECT_STORE_ENDPOINT is ''; it must be the http or https address that services reach the store at",
                "ANKKA_OBJECT_STORE_ADMIN_TOKEN is ''; it must be a token for Garage's admin API",
            ]
        );
    }

    #[test]
    fn what_is_read_is_what_the_reference_lists_with_its_defaults() {
        let read = std::cell::RefCell::new(std::collections::BTreeSet::new());
        let note = |name: &str| {
            read.borrow_mut().insert(name.to_owned());
            STORE.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Settings::read(note).expect("valid");
        ankka_runtime::settings::log_filter(note).expect("nothing is required");
        ankka_telemetry::Collector::read(note).expect("nothing is required");
        let mut listed = settings::names(settings::STORAGE);
        listed.insert("RUST_LOG".to_owned());
        assert_eq!(read.into_inner(), listed);
        let given = |name: &str| settings::default_of(settings::STORAGE, name);
        assert_eq!(format!("{:?}", Settings::read(given)), format!("{:?}", Settings::read(|_| None)));
    }
}
