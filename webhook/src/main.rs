//! The admission webhook of Ankka.

use ankka_webhook::{Settings, run};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Two TLS providers may be compiled in; the choice is made once, before anything opens a connection.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    tracing_subscriber::fmt().json().flatten_event(true).with_env_filter(ankka_webhook::settings::log_filter()?).init();
    run(Settings::from_env()?).await
}
