//! What a process of the platform says of itself beside its metrics: its log, and traces where a collector is named.
//!
//! Spans have a target of their own, [`SPANS`]. The log never takes them, and without a collector nobody does: then a span costs a
//! look at whether somebody would.

mod client;

use anyhow::Context;
use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing_subscriber::{EnvFilter, Layer, filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

use crate::client::Client;

/// Target of spans that are sent to the collector: `tracing::info_span!(target: SPANS, "…")`.
pub const SPANS: &str = "ankka_trace";

/// Names the collector, as every program that speaks OTLP has it.
pub const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Where traces go: a collector that takes OTLP over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector(String);

/// An endpoint that cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{ENDPOINT} is '{0}'; it must be the address of a collector in the cluster, such as http://collector.monitoring:4318"
)]
pub struct Unusable(String);

impl Collector {
    /// The collector that the environment names, as `variable` answers; none when it names none.
    ///
    /// # Errors
    /// When it is no address that can be used. A collector outside the cluster is reached through one inside: the images hold no
    /// certificates of public authorities.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, Unusable> {
        let Some(endpoint) = variable(ENDPOINT).filter(|endpoint| !endpoint.is_empty()) else { return Ok(None) };
        let usable = endpoint
            .parse::<http::Uri>()
            .is_ok_and(|address| address.scheme_str() == Some("http") && address.host().is_some());
        if usable { Ok(Some(Self(endpoint))) } else { Err(Unusable(endpoint)) }
    }

    fn traces(&self) -> String {
        format!("{}/v1/traces", self.0.trim_end_matches('/'))
    }
}

/// A process, as traces name it.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The program's name.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
}

/// Sends what is left when the process ends.
#[derive(Debug)]
#[must_use]
pub struct Telemetry(Option<SdkTracerProvider>);

impl Telemetry {
    /// Begins: one JSON object a line on standard output of what `filter` lets through, and traces to `collector`. To be called
    /// once, inside the runtime of tokio.
    ///
    /// # Errors
    /// When the exporter cannot be made.
    pub fn begin(about: About, filter: EnvFilter, collector: Option<&Collector>) -> anyhow::Result<Self> {
        let never = format!("{SPANS}=off").parse().context("the target of spans is a directive")?;
        let log = tracing_subscriber::fmt::layer().json().flatten_event(true).with_filter(filter.add_directive(never));
        let provider = collector.map(|collector| provider(about, collector)).transpose()?;
        let traces = provider.as_ref().map(|provider| {
            let tracer = provider.tracer(about.program);
            let wanted = Targets::new().with_target(SPANS, tracing::Level::INFO);
            tracing_opentelemetry::layer()
                .with_tracer(tracer)
                .with_location(false)
                .with_threads(false)
                .with_filter(wanted)
        });
        tracing_subscriber::registry().with(log).with(traces).init();
        Ok(Self(provider))
    }

    /// Sends what has not been sent yet. It takes a few seconds at most.
    pub async fn end(self) {
        let Some(provider) = self.0 else { return };
        // Waits for the thread that exports, which waits for this runtime.
        let _ = tokio::task::spawn_blocking(move || provider.shutdown()).await;
    }
}

fn provider(about: About, collector: &Collector) -> anyhow::Result<SdkTracerProvider> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Client::here())
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(collector.traces())
        .build()
        .context("failed to make an exporter of traces")?;
    let resource = Resource::builder()
        .with_service_name(about.program)
        .with_attribute(KeyValue::new("service.version", about.version))
        .build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(endpoint: &str) -> Result<Option<Collector>, String> {
        Collector::read(|name| (name == ENDPOINT).then(|| endpoint.to_owned())).map_err(|unusable| unusable.to_string())
    }

    #[test]
    fn a_collector_is_named_by_its_address() {
        assert_eq!(read(""), Ok(None));
        for endpoint in ["http://collector.monitoring:4318", "http://collector.monitoring:4318/"] {
            let collector = read(endpoint).expect("usable").expect("one is named");
            assert_eq!(collector.traces(), "http://collector.monitoring:4318/v1/traces");
        }
        for endpoint in ["collector:4318", "https://collector", "grpc://collector:4317", "http:///"] {
            let refusal = read(endpoint).expect_err("it cannot be used");
            assert!(refusal.starts_with(&format!("{ENDPOINT} is '{endpoint}'; it must be")), "{refusal}");
        }
    }
}
