//! What the installation sets, from environment variables. A malformed one refuses to start.

use std::{fmt::Display, ops::RangeInclusive, path::PathBuf, str::FromStr};

use ankka_crds::names;
use tracing_subscriber::EnvFilter;

use crate::certificates::Lifetimes;

/// Settings of the process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `ANKKA_K8S_NAMESPACE_PREFIX`: prefix of project namespaces. Default `ankka`.
    pub prefix: String,
    /// `POD_NAMESPACE`: the namespace of the release; names the Service in the certificate. Required.
    pub namespace: String,
    /// `ANKKA_WEBHOOK_PORT`: where admission is served over TLS. Default 9443.
    pub port: u16,
    /// `ANKKA_WEBHOOK_HEALTH_PORT`: where health and metrics are served in the clear. Default 8080.
    pub health_port: u16,
    /// `ANKKA_WEBHOOK_CERTIFICATE_DIR`: a folder with `tls.crt` and `tls.key` that somebody else keeps, such as
    /// cert-manager. This process then makes no certificate and writes nothing. Default none.
    pub certificate_dir: Option<PathBuf>,
    /// `ANKKA_WEBHOOK_CA_SECONDS` (default a year), `ANKKA_WEBHOOK_LEAF_SECONDS` (30 days) and
    /// `ANKKA_WEBHOOK_OVERLAP_SECONDS` (120).
    pub lifetimes: Lifetimes,
    /// `ANKKA_WEBHOOK_DRAIN_SECONDS`: how long requests are still taken after SIGTERM, while the endpoint goes away.
    /// Default 5.
    pub drain_seconds: u64,
    /// `ANKKA_WEBHOOK_BENCHMARK=1`: also serve `POST /allow`, which admits everything, to compare with. Default off.
    pub benchmark: bool,
}

/// A setting that cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use {variable}={value}: {allowed}")]
pub struct Malformed {
    /// The variable.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// What is allowed.
    pub allowed: String,
}

impl Settings {
    /// The settings of this process's environment.
    pub fn from_env() -> Result<Self, Malformed> {
        Self::read(|name| std::env::var(name).ok())
    }

    /// The settings that `get` answers. An empty value is an absent one.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, Malformed> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let prefix = get("ANKKA_K8S_NAMESPACE_PREFIX").unwrap_or_else(|| names::DEFAULT_PREFIX.to_owned());
        if !names::is_prefix(&prefix) {
            return Err(Malformed {
                variable: "ANKKA_K8S_NAMESPACE_PREFIX",
                value: prefix,
                allowed: names::PREFIX_RULE.to_owned(),
            });
        }
        let Some(namespace) = get("POD_NAMESPACE").filter(|name| names::is_object_name(name)) else {
            return Err(Malformed {
                variable: "POD_NAMESPACE",
                value: get("POD_NAMESPACE").unwrap_or_default(),
                allowed: "the name of the namespace this pod runs in is needed".to_owned(),
            });
        };
        let benchmark = match get("ANKKA_WEBHOOK_BENCHMARK").as_deref() {
            None | Some("0") => false,
            Some("1") => true,
            Some(other) => {
                let (variable, value) = ("ANKKA_WEBHOOK_BENCHMARK", other.to_owned());
                return Err(Malformed { variable, value, allowed: "0 or 1".to_owned() });
            }
        };
        Ok(Self {
            prefix,
            namespace,
            port: number(&get, "ANKKA_WEBHOOK_PORT", 9443, 1..=u16::MAX)?,
            health_port: number(&get, "ANKKA_WEBHOOK_HEALTH_PORT", 8080, 1..=u16::MAX)?,
            certificate_dir: get("ANKKA_WEBHOOK_CERTIFICATE_DIR").map(PathBuf::from),
            lifetimes: lifetimes(&get)?,
            drain_seconds: number(&get, "ANKKA_WEBHOOK_DRAIN_SECONDS", 5, 0..=600)?,
            benchmark,
        })
    }

    /// The names the API server may call this process by.
    pub fn dns_names(&self) -> Vec<String> {
        let service = format!("ankka-webhook.{}", self.namespace);
        vec![format!("{service}.svc"), service.clone(), format!("{service}.svc.cluster.local")]
    }
}

fn lifetimes(get: &impl Fn(&str) -> Option<String>) -> Result<Lifetimes, Malformed> {
    const DAY: i64 = 24 * 60 * 60;
    const LONGEST: i64 = 100 * 365 * DAY;
    let authority = number(get, "ANKKA_WEBHOOK_CA_SECONDS", 365 * DAY, 1..=LONGEST)?;
    let leaf = number(get, "ANKKA_WEBHOOK_LEAF_SECONDS", 30 * DAY, 1..=LONGEST)?;
    let overlap = number(get, "ANKKA_WEBHOOK_OVERLAP_SECONDS", 120, 1..=LONGEST)?;
    // An authority is replaced when a third of its life is left: by its end the next one must be trusted and signing.
    if (leaf + overlap).saturating_mul(3) > authority {
        return Err(Malformed {
            variable: "ANKKA_WEBHOOK_CA_SECONDS",
            value: authority.to_string(),
            allowed: format!(
                "at least three times ANKKA_WEBHOOK_LEAF_SECONDS and ANKKA_WEBHOOK_OVERLAP_SECONDS together ({})",
                (leaf + overlap).saturating_mul(3)
            ),
        });
    }
    Ok(Lifetimes::of_seconds(authority, leaf, overlap))
}

fn number<T>(
    get: &impl Fn(&str) -> Option<String>,
    variable: &'static str,
    default: T,
    allowed: RangeInclusive<T>,
) -> Result<T, Malformed>
where
    T: FromStr + PartialOrd + Display,
{
    let Some(value) = get(variable) else { return Ok(default) };
    match value.parse() {
        Ok(number) if allowed.contains(&number) => Ok(number),
        _ => {
            let allowed = format!("a whole number from {} to {}", allowed.start(), allowed.end());
            Err(Malformed { variable, value, allowed })
        }
    }
}

/// What is logged, as `get` answers: `ANKKA_LOG`, else `RUST_LOG`, else everything from `info`.
pub fn log_filter(get: impl Fn(&str) -> Option<String>) -> Result<EnvFilter, Malformed> {
    let set = |variable: &'static str| Some((variable, get(variable).filter(|value| !value.is_empty())?));
    let Some((variable, value)) = set("ANKKA_LOG").or_else(|| set("RUST_LOG")) else {
        return Ok(EnvFilter::new("info"));
    };
    EnvFilter::try_new(&value).map_err(|_| Malformed {
        variable,
        value,
        allowed: "a level (error, warn, info, debug, trace), or target=level pairs separated by commas".to_owned(),
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test ends where it fails")]
mod tests {
    use ankka_crds::settings;

    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<Settings, Malformed> {
        let find = |name: &str| set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
        Settings::read(|name| find(name).or_else(|| (name == "POD_NAMESPACE").then(|| "ankka-system".to_owned())))
    }

    #[test]
    fn defaults_suit_the_chart() {
        let settings = read(&[]).unwrap();
        assert_eq!((settings.port, settings.health_port, settings.prefix.as_str()), (9443, 8080, "ankka"));
        assert!(settings.certificate_dir.is_none() && !settings.benchmark);
        let names = settings.dns_names();
        assert_eq!(names[0], "ankka-webhook.ankka-system.svc");
        assert_eq!(names.len(), 3);
    }

    #[test]
    fn a_malformed_setting_names_variable_value_and_what_is_allowed() {
        let error = read(&[("ANKKA_WEBHOOK_PORT", "https")]).unwrap_err().to_string();
        assert_eq!(error, "cannot use ANKKA_WEBHOOK_PORT=https: a whole number from 1 to 65535");
        assert!(read(&[("ANKKA_WEBHOOK_PORT", "0")]).is_err());
        assert!(read(&[("ANKKA_K8S_NAMESPACE_PREFIX", "Ankka")]).is_err());
        assert!(read(&[("ANKKA_WEBHOOK_BENCHMARK", "yes")]).is_err());
        assert_eq!(Settings::read(|_| None).unwrap_err().variable, "POD_NAMESPACE");
        assert_eq!(read(&[("POD_NAMESPACE", "24-7")]).unwrap().dns_names()[0], "ankka-webhook.24-7.svc");
    }

    #[test]
    fn lifetimes_that_leave_no_time_to_rotate_are_refused() {
        let short = [("ANKKA_WEBHOOK_CA_SECONDS", "12"), ("ANKKA_WEBHOOK_LEAF_SECONDS", "3")];
        assert!(read(&[&short[..], &[("ANKKA_WEBHOOK_OVERLAP_SECONDS", "1")]].concat()).is_ok());
        let error = read(&[&short[..], &[("ANKKA_WEBHOOK_OVERLAP_SECONDS", "2")]].concat()).unwrap_err();
        assert_eq!(error.variable, "ANKKA_WEBHOOK_CA_SECONDS");
    }

    #[test]
    fn what_is_read_is_what_the_reference_lists_with_its_defaults() {
        let read = std::cell::RefCell::new(std::collections::BTreeSet::new());
        let note = |name: &str| {
            read.borrow_mut().insert(name.to_owned());
            None
        };
        Settings::read(|name| note(name).or_else(|| (name == "POD_NAMESPACE").then(|| "ankka-system".to_owned())))
            .unwrap();
        log_filter(note).unwrap();
        ankka_telemetry::Collector::read(note).unwrap();
        let mut listed = settings::names(settings::WEBHOOK);
        listed.insert("RUST_LOG".to_owned());
        assert_eq!(read.into_inner(), listed);
        let namespace = |name: &str| (name == "POD_NAMESPACE").then(|| "ankka-system".to_owned());
        let given = Settings::read(|name| settings::default_of(settings::WEBHOOK, name).or_else(|| namespace(name)));
        assert_eq!(format!("{:?}", given.unwrap()), format!("{:?}", Settings::read(namespace).unwrap()));
    }
}
