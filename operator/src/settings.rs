//! Settings, from environment variables. A value that cannot be is refused by name; nothing is guessed.

use std::{net::SocketAddr, ops::RangeInclusive, str::FromStr, time::Duration};

use ankka_crds::{Installation, Store, compat::Platform, names};

use tracing_subscriber::EnvFilter;

use crate::queue::Timing;

/// Everything that is set from outside.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the installation decides about every service.
    pub desired: ankka_desired::Settings,
    /// The namespace the gateway runs in: it may reach every project's pods.
    pub gateway_namespace: String,
    /// When services are looked at again.
    pub timing: Timing,
    /// How many services are worked on at a time.
    pub concurrency: usize,
    /// The name of this replica.
    pub pod: String,
    /// Where metrics and health are served.
    pub listen: SocketAddr,
}

/// A variable whose value cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is '{value}'; it must be {allowed}")]
pub struct Refusal {
    variable: &'static str,
    value: String,
    allowed: String,
}

/// How long a rollout may make no progress before it counts as failed.
const PROGRESS_DEADLINE_SECONDS: i32 = 600;

impl Settings {
    /// Reads all settings by `variable`, which answers with a variable's value, or refuses all that cannot be.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Vec<Refusal>> {
        let mut reader = Reader { variable, refused: Vec::new() };
        let prefix = reader.text("ANKKA_K8S_NAMESPACE_PREFIX", names::DEFAULT_PREFIX);
        if !names::is_prefix(&prefix) {
            reader.refuse("ANKKA_K8S_NAMESPACE_PREFIX", &prefix, names::PREFIX_RULE.to_owned());
        }
        let own_namespace = reader.text("POD_NAMESPACE", "ankka-system");
        let image_pull_secrets = reader.text("ANKKA_IMAGE_PULL_SECRETS", "");
        let sidecar_image = Some(reader.text("ANKKA_SIDECAR_IMAGE", "")).filter(|image| !image.is_empty());
        let store = reader.store();
        let min_backoff = reader.seconds("ANKKA_OPERATOR_RETRY_MIN_BACKOFF_SECONDS", 2, 1..=3600);
        let max_backoff = reader.seconds("ANKKA_OPERATOR_RETRY_MAX_BACKOFF_SECONDS", 300, 1..=86_400);
        if max_backoff < min_backoff {
            let allowed = "at least ANKKA_OPERATOR_RETRY_MIN_BACKOFF_SECONDS".to_owned();
            reader.refuse("ANKKA_OPERATOR_RETRY_MAX_BACKOFF_SECONDS", &max_backoff.as_secs().to_string(), allowed);
        }
        let settings = Self {
            desired: ankka_desired::Settings {
                prefix,
                own_namespace,
                platform: Platform::new(env!("CARGO_PKG_VERSION")).expect("cargo's version is MAJOR.MINOR.PATCH"),
                installation: Installation { store, ..Installation::default() },
                sidecar_image,
                image_pull_secrets: list(&image_pull_secrets),
                progress_deadline_seconds: PROGRESS_DEADLINE_SECONDS,
            },
            gateway_namespace: reader.text("ANKKA_GATEWAY_NAMESPACE", "ankka-gateway"),
            timing: Timing {
                resync: reader.seconds("ANKKA_OPERATOR_RESYNC_SECONDS", 300, 1..=86_400),
                min_backoff,
                max_backoff,
            },
            concurrency: reader.number("ANKKA_OPERATOR_MAX_CONCURRENT_RECONCILES", 16, 1..=256),
            pod: reader.text("POD_NAME", "ankka-operator"),
            listen: reader.address("ANKKA_LISTEN", SocketAddr::from(([0, 0, 0, 0], 8080))),
        };
        if reader.refused.is_empty() { Ok(settings) } else { Err(reader.refused) }
    }
}

/// What is logged unless `ANKKA_LOG`, or else `RUST_LOG`, says otherwise.
pub const LOG: &str = "info,kube=warn,hyper=warn";

/// What is logged, as `variable` answers, or the refusal of a value that cannot be.
pub fn log_filter(variable: impl Fn(&str) -> Option<String>) -> Result<EnvFilter, Refusal> {
    let set = |name: &'static str| Some((name, variable(name).filter(|value| !value.is_empty())?));
    let Some((variable, value)) = set("ANKKA_LOG").or_else(|| set("RUST_LOG")) else {
        return Ok(EnvFilter::new(LOG));
    };
    EnvFilter::try_new(&value).map_err(|_| {
        let allowed = "a level (error, warn, info, debug, trace), or target=level pairs separated by commas".to_owned();
        Refusal { variable, value, allowed }
    })
}

struct Reader<F> {
    variable: F,
    refused: Vec<Refusal>,
}

impl<F: Fn(&str) -> Option<String>> Reader<F> {
    /// Trimmed; an empty value counts as none.
    fn get(&self, variable: &str) -> Option<String> {
        let value = (self.variable)(variable)?.trim().to_owned();
        (!value.is_empty()).then_some(value)
    }

    fn text(&self, variable: &str, default: &str) -> String {
        self.get(variable).unwrap_or_else(|| default.to_owned())
    }

    fn number<N: FromStr + PartialOrd + std::fmt::Display>(
        &mut self,
        variable: &'static str,
        default: N,
        allowed: RangeInclusive<N>,
    ) -> N {
        let Some(value) = self.get(variable) else { return default };
        match value.parse() {
            Ok(number) if allowed.contains(&number) => number,
            _ => {
                self.refuse(variable, &value, format!("a whole number from {} to {}", allowed.start(), allowed.end()));
                default
            }
        }
    }

    fn seconds(&mut self, variable: &'static str, default: u64, allowed: RangeInclusive<u64>) -> Duration {
        Duration::from_secs(self.number(variable, default, allowed))
    }

    fn address(&mut self, variable: &'static str, default: SocketAddr) -> SocketAddr {
        let Some(value) = self.get(variable) else { return default };
        value.parse().unwrap_or_else(|_| {
            self.refuse(variable, &value, "an address and a port, such as 0.0.0.0:8080".to_owned());
            default
        })
    }

    fn store(&mut self) -> Option<Store> {
        let value = self.get("ANKKA_OBJECT_STORE_BACKEND")?;
        match value.to_ascii_lowercase().as_str() {
            "garage" => Some(Store::Garage),
            "gcs" => Some(Store::Gcs),
            _ => {
                self.refuse("ANKKA_OBJECT_STORE_BACKEND", &value, "garage or gcs, or not set".to_owned());
                None
            }
        }
    }

    fn refuse(&mut self, variable: &'static str, value: &str, allowed: String) {
        self.refused.push(Refusal { variable, value: value.to_owned(), allowed });
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
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
        assert_eq!(settings.concurrency, 16);
        assert_eq!(settings.desired.sidecar_image, None);
        assert_eq!(settings.desired.installation.store, None);
        assert_eq!(settings.listen.port(), 8080);
    }

    #[test]
    fn values_are_taken() {
        let settings = read(&[
            ("ANKKA_IMAGE_PULL_SECRETS", "one, two,"),
            ("ANKKA_OBJECT_STORE_BACKEND", "Garage"),
            ("ANKKA_OPERATOR_MAX_CONCURRENT_RECONCILES", " 4 "),
            ("ANKKA_SIDECAR_IMAGE", ""),
        ])
        .expect("valid");
        assert_eq!(settings.desired.image_pull_secrets, ["one", "two"]);
        assert_eq!(settings.desired.installation.store, Some(Store::Garage));
        assert_eq!(settings.concurrency, 4);
        assert_eq!(settings.desired.sidecar_image, None);
    }

    #[test]
    fn what_is_logged_can_be_said_and_is_not_guessed() {
        let filter = |set: &[(&str, &str)]| {
            log_filter(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
                .map(|filter| filter.to_string())
                .map_err(|refused| refused.to_string())
        };
        assert_eq!(filter(&[("ANKKA_LOG", "debug"), ("RUST_LOG", "trace")]).as_deref(), Ok("debug"));
        assert_eq!(filter(&[("ANKKA_LOG", ""), ("RUST_LOG", "trace")]).as_deref(), Ok("trace"));
        assert_eq!(
            filter(&[("ANKKA_LOG", "ankka_operator=loud")]),
            Err("ANKKA_LOG is 'ankka_operator=loud'; it must be a level (error, warn, info, debug, trace), or target=level pairs separated by commas".to_owned())
        );
        assert!(filter(&[]).is_ok_and(|filter| filter.contains("info")));
    }

    #[test]
    fn every_value_that_cannot_be_is_refused_by_name() {
        let refused = read(&[
            ("ANKKA_K8S_NAMESPACE_PREFIX", "Ankka"),
            ("ANKKA_OPERATOR_RESYNC_SECONDS", "5m"),
            ("ANKKA_OPERATOR_MAX_CONCURRENT_RECONCILES", "0"),
            ("ANKKA_OBJECT_STORE_BACKEND", "s3"),
            ("ANKKA_LISTEN", "8080"),
            ("ANKKA_OPERATOR_RETRY_MAX_BACKOFF_SECONDS", "1"),
        ])
        .expect_err("refused");
        let texts: Vec<String> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "ANKKA_K8S_NAMESPACE_PREFIX is 'Ankka'; it must be at most 16 lowercase letters, digits and '-', starting with a letter",
                "ANKKA_OBJECT_STORE_BACKEND is 's3'; it must be garage or gcs, or not set",
                "ANKKA_OPERATOR_RETRY_MAX_BACKOFF_SECONDS is '1'; it must be at least ANKKA_OPERATOR_RETRY_MIN_BACKOFF_SECONDS",
                "ANKKA_OPERATOR_RESYNC_SECONDS is '5m'; it must be a whole number from 1 to 86400",
                "ANKKA_OPERATOR_MAX_CONCURRENT_RECONCILES is '0'; it must be a whole number from 1 to 256",
                "ANKKA_LISTEN is '8080'; it must be an address and a port, such as 0.0.0.0:8080",
            ]
        );
    }
}
