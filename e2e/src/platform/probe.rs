//! Asking the cluster's TLS servers how they are, as the administrator.

use anyhow::{Context, Result};

use super::layout::Layout;

/// A client of the API server with the rights of an administrator.
pub(crate) fn client(layout: &Layout, url: &str) -> Result<kube::Client> {
    let mut config = kube::Config::new(url.parse().context("the address is a URL")?);
    let read = |file: &str| std::fs::read(file).with_context(|| format!("failed to read {file}"));
    let authority = rustls::pki_types::pem::PemObject::from_pem_slice(&read(&layout.certificate("ca"))?)
        .map(|certificate: rustls::pki_types::CertificateDer<'_>| certificate.to_vec())
        .context("the authority's certificate is PEM")?;
    config.root_cert = Some(vec![authority]);
    config.auth_info.client_certificate = Some(layout.certificate("admin"));
    config.auth_info.client_key = Some(layout.key("admin"));
    config.connect_timeout = Some(std::time::Duration::from_secs(5));
    config.read_timeout = Some(std::time::Duration::from_secs(30));
    kube::Client::try_from(config).context("failed to make a client")
}

/// Asks for `path`; anything but 200 is an error that says what was answered.
pub(crate) async fn get(layout: &Layout, url: &str, path: &str) -> Result<()> {
    let request = http::Request::get(path).body(Vec::new()).context("the path is one")?;
    client(layout, url)?.request_text(request).await.with_context(|| format!("{url}{path}"))?;
    Ok(())
}
