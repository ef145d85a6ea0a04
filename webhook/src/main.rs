//! The admission webhook of Ankka.

use ankka_telemetry::{About, Collector, Telemetry};
use ankka_webhook::{Settings, run};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Two TLS providers may be compiled in; the choice is made once, before anything opens a connection.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let variable = |name: &str| std::env::var(name).ok();
    let collector = Collector::read(variable)?;
    let about = About { program: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") };
    let telemetry = Telemetry::begin(about, ankka_webhook::settings::log_filter(variable)?, collector.as_ref())?;
    let ended = match Settings::from_env() {
        Ok(settings) => run(settings).await,
        Err(malformed) => Err(malformed.into()),
    };
    telemetry.end().await;
    ended
}
