//! What this process counts, for `/metrics`.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::Registry,
};

use crate::{certificates::keeper::Outcome, review::Verdict};

/// Labels of a review.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Review {
    /// `services`, `projects` or `changes`.
    endpoint: &'static str,
    /// `admitted`, `denied` or `unreadable`.
    outcome: &'static str,
}

/// All metrics of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reviews: Family<Review, Counter>,
    seconds: Histogram,
    certificate_expiry: Gauge<f64, AtomicU64>,
    authority_expiry: Gauge<f64, AtomicU64>,
    failed_passes: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            registry: Registry::with_prefix("ankka_webhook"),
            reviews: Family::default(),
            seconds: Histogram::new([0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 1.0]),
            certificate_expiry: Gauge::default(),
            authority_expiry: Gauge::default(),
            failed_passes: Counter::default(),
        };
        metrics.registered()
    }
}

impl Metrics {
    fn registered(mut self) -> Self {
        let all = &mut self.registry;
        all.register("build", "The version of this process", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        all.register("reviews", "Reviews by endpoint and outcome", self.reviews.clone());
        all.register("review_seconds", "Time one review took, in seconds", self.seconds.clone());
        all.register(
            "certificate_expiry_timestamp_seconds",
            "When the served certificate expires, in seconds since the epoch",
            self.certificate_expiry.clone(),
        );
        all.register(
            "authority_expiry_timestamp_seconds",
            "When the authority that signs certificates expires, in seconds since the epoch",
            self.authority_expiry.clone(),
        );
        all.register(
            "certificate_failures",
            "Passes over the certificates that did not finish",
            self.failed_passes.clone(),
        );
        self
    }

    /// The word for a verdict. None: it could not be read.
    pub fn outcome(verdict: Option<&Verdict>) -> &'static str {
        match verdict {
            Some(Verdict::Admit { .. }) => "admitted",
            Some(Verdict::Deny(_)) => "denied",
            None => "unreadable",
        }
    }

    /// Counts one review that took `seconds`. No verdict: it could not be read.
    pub fn reviewed(&self, endpoint: &'static str, verdict: Option<&Verdict>, seconds: f64) {
        let outcome = Self::outcome(verdict);
        self.reviews.get_or_create(&Review { endpoint, outcome }).inc();
        self.seconds.observe(seconds);
    }

    /// Takes note of what a pass over the certificates left; none when it failed.
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since the epoch fit an f64 for 285,000 years")]
    pub fn passed(&self, outcome: Option<&Outcome>) {
        let Some(outcome) = outcome else {
            self.failed_passes.inc();
            return;
        };
        let expiries =
            [(outcome.leaf_not_after, &self.certificate_expiry), (outcome.authority_not_after, &self.authority_expiry)];
        for (not_after, gauge) in expiries {
            if let Some(not_after) = not_after {
                gauge.set(not_after as f64 / 1000.0);
            }
        }
    }

    /// All metrics as text, in the format of OpenMetrics.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
