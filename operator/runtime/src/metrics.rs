//! What is counted. Every label has a small, fixed set of values.

use std::{sync::atomic::AtomicU64, time::Duration};

use prometheus_client::{
    collector::Collector,
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
        info::Info,
    },
    registry::{Registry, Unit},
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PassLabels {
    subject: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabels {
    subject: &'static str,
    error: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    verb: &'static str,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabels {
    resource: &'static str,
}

/// All metrics of one process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    passes: Family<PassLabels, Counter>,
    errors: Family<ErrorLabels, Counter>,
    duration: Histogram,
    writes: Family<WriteLabels, Counter>,
    watch_errors: Family<WatchLabels, Counter>,
    unreadable: Counter,
    leader: Gauge,
    queue: Gauge,
    known: Gauge,
    last_pass: Gauge<f64, AtomicU64>,
}

impl Metrics {
    /// Those of the process whose metrics begin with `prefix`. It is about `objects`, such as `services`.
    pub fn new(prefix: &str, objects: &str) -> Self {
        let mut registry = Registry::with_prefix(prefix);
        let passes = Family::default();
        let errors = Family::default();
        let duration = Histogram::new(exponential_buckets(0.000_25, 4.0, 10));
        let writes = Family::default();
        let watch_errors = Family::default();
        let unreadable = Counter::default();
        let (leader, queue, known) = (Gauge::default(), Gauge::default(), Gauge::default());
        let last_pass = Gauge::default();
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of this process", build);
        registry.register("reconciles", "Passes over one object", passes.clone());
        registry.register("reconcile_errors", "Passes that did not finish, by cause", errors.clone());
        registry.register_with_unit("reconcile_duration", "Time one pass took", Unit::Seconds, duration.clone());
        registry.register("writes", "Writes sent to the API server and answered", writes.clone());
        registry.register("watch_errors", "Watches that broke and were taken up again", watch_errors.clone());
        registry.register("unreadable_objects", "Stored objects that could not be decoded", unreadable.clone());
        registry.register("leader", "1 while this replica acts, 0 while it stands by", leader.clone());
        registry.register("queue_depth", "Objects that are due for a pass and wait for a worker", queue.clone());
        registry.register(objects, "Those that are known", known.clone());
        registry.register_with_unit("last_pass", "When a pass last finished", Unit::Seconds, last_pass.clone());
        Self { registry, passes, errors, duration, writes, watch_errors, unreadable, leader, queue, known, last_pass }
    }

    /// Has what is looked up when somebody asks be told, too.
    pub fn look_up(&mut self, collector: impl Collector) {
        self.registry.register_collector(Box::new(collector));
    }

    /// A pass over a `subject` finished after `took`; `error` is the label of why it did not succeed.
    pub fn passed(&self, subject: &'static str, took: Duration, error: Option<&'static str>) {
        self.passes.get_or_create(&PassLabels { subject }).inc();
        self.duration.observe(took.as_secs_f64());
        if let Some(error) = error {
            self.errors.get_or_create(&ErrorLabels { subject, error }).inc();
        }
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        self.last_pass.set(now.unwrap_or_default().as_secs_f64());
    }

    /// A write was answered.
    pub fn wrote(&self, verb: &'static str, kind: &'static str) {
        self.writes.get_or_create(&WriteLabels { verb, kind }).inc();
    }

    /// A watch broke.
    pub fn watch_broke(&self, resource: &'static str) {
        self.watch_errors.get_or_create(&WatchLabels { resource }).inc();
    }

    /// A stored object could not be decoded.
    pub fn found_unreadable(&self) {
        self.unreadable.inc();
    }

    /// Whether this replica acts.
    pub fn leads(&self, leading: bool) {
        self.leader.set(i64::from(leading));
    }

    /// Everything in the text format of OpenMetrics. `waiting` objects wait for a pass, and so many are known.
    pub fn render(&self, waiting: usize, known: usize) -> String {
        self.queue.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        self.known.set(i64::try_from(known).unwrap_or(i64::MAX));
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_rendered() {
        let metrics = Metrics::new("ankka_operator", "services");
        metrics.passed("Service", Duration::from_millis(3), Some("conflict"));
        metrics.wrote("create", "Deployment");
        metrics.leads(true);
        let text = metrics.render(7, 9);
        for line in [
            "ankka_operator_reconciles_total{subject=\"Service\"} 1",
            "ankka_operator_reconcile_errors_total{subject=\"Service\",error=\"conflict\"} 1",
            "ankka_operator_writes_total{verb=\"create\",kind=\"Deployment\"} 1",
            "ankka_operator_leader 1",
            "ankka_operator_queue_depth 7",
            "ankka_operator_services 9",
            concat!("ankka_operator_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
        ] {
            assert!(text.contains(line), "{line} not in {text}");
        }
    }
}
