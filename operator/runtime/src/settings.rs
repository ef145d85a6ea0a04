//! Reading settings from environment variables. A value that cannot be is refused by name; nothing is guessed.

use std::{net::SocketAddr, ops::RangeInclusive, str::FromStr, time::Duration};

use tracing_subscriber::EnvFilter;

use crate::queue::Timing;

/// A variable whose value cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is '{value}'; it must be {allowed}")]
pub struct Refusal {
    variable: &'static str,
    value: String,
    allowed: String,
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

/// Reads settings one by one, and remembers each that cannot be.
#[derive(Debug)]
pub struct Reader<F> {
    variable: F,
    refused: Vec<Refusal>,
}

impl<F: Fn(&str) -> Option<String>> Reader<F> {
    /// Reads by `variable`, which answers with a variable's value.
    pub fn new(variable: F) -> Self {
        Self { variable, refused: Vec::new() }
    }

    /// `settings`, unless something was refused.
    pub fn finish<S>(self, settings: S) -> Result<S, Vec<Refusal>> {
        if self.refused.is_empty() { Ok(settings) } else { Err(self.refused) }
    }

    /// A variable's value. Trimmed; an empty value counts as none.
    pub fn get(&self, variable: &str) -> Option<String> {
        let value = (self.variable)(variable)?.trim().to_owned();
        (!value.is_empty()).then_some(value)
    }

    /// Text of any kind.
    pub fn text(&self, variable: &str, default: &str) -> String {
        self.get(variable).unwrap_or_else(|| default.to_owned())
    }

    /// Text for which `holds`, as `allowed` says it.
    pub fn text_that(
        &mut self,
        variable: &'static str,
        default: &str,
        holds: impl FnOnce(&str) -> bool,
        allowed: &str,
    ) -> String {
        let value = self.text(variable, default);
        if !holds(&value) {
            self.refuse(variable, &value, allowed.to_owned());
        }
        value
    }

    /// Text that has no default; what it is to be is said where it is missing.
    pub fn required(&mut self, variable: &'static str, what: &str) -> Option<String> {
        let value = self.get(variable);
        if value.is_none() {
            self.refuse(variable, "", what.to_owned());
        }
        value
    }

    /// A number among those allowed.
    pub fn number<N: FromStr + PartialOrd + std::fmt::Display>(
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

    /// A number of seconds among those allowed.
    pub fn seconds(&mut self, variable: &'static str, default: u64, allowed: RangeInclusive<u64>) -> Duration {
        Duration::from_secs(self.number(variable, default, allowed))
    }

    /// When a controller looks again, from three variables in seconds, the shortest and the longest wait with their defaults.
    /// The longest wait is not shorter than the shortest.
    pub fn timing(&mut self, resync: &'static str, min: (&'static str, u64), max: (&'static str, u64)) -> Timing {
        let min_backoff = self.seconds(min.0, min.1, 1..=3600);
        let max_backoff = self.seconds(max.0, max.1, 1..=86_400);
        if max_backoff < min_backoff {
            self.refuse(max.0, &max_backoff.as_secs().to_string(), format!("at least {}", min.0));
        }
        Timing { resync: self.seconds(resync, 300, 1..=86_400), min_backoff, max_backoff }
    }

    /// An address with a port.
    pub fn address(&mut self, variable: &'static str, default: SocketAddr) -> SocketAddr {
        let Some(value) = self.get(variable) else { return default };
        value.parse().unwrap_or_else(|_| {
            self.refuse(variable, &value, "an address and a port, such as 0.0.0.0:8080".to_owned());
            default
        })
    }

    /// Notes that a value cannot be, and what can.
    pub fn refuse(&mut self, variable: &'static str, value: &str, allowed: String) {
        self.refused.push(Refusal { variable, value: value.to_owned(), allowed });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
