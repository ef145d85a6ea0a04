//! The certificate the server answers with, swapped while it runs.

use std::{fmt, io, sync::Arc};

use axum_server::tls_rustls::RustlsConfig;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::sync::watch;

/// What is served now. New connections get it; those that are open keep what they began with, and are not cut.
#[derive(Clone)]
pub struct Serving {
    config: watch::Sender<Option<RustlsConfig>>,
}

impl fmt::Debug for Serving {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Serving").field("started", &self.config.borrow().is_some()).finish()
    }
}

impl Default for Serving {
    fn default() -> Self {
        Self { config: watch::Sender::new(None) }
    }
}

impl Serving {
    /// Serves this certificate and key from now on. A broken pair is refused, and the one before stays in use.
    pub fn load(&self, certificate: &[u8], key: &[u8]) -> io::Result<()> {
        let config = server_config(certificate, key)?;
        self.config.send_if_modified(|current| {
            if let Some(current) = current {
                current.reload_from_config(config);
                return false;
            }
            *current = Some(RustlsConfig::from_config(config));
            true
        });
        Ok(())
    }

    /// What a server is given: there is nothing to serve with before the first certificate.
    pub async fn first(&self) -> RustlsConfig {
        let mut config = self.config.subscribe();
        loop {
            if let Some(config) = config.borrow_and_update().as_ref() {
                return config.clone();
            }
            // This value holds a sender, so the channel does not close.
            let _ = config.changed().await;
        }
    }
}

/// A server's configuration for this pair. Refused where key and certificate do not belong together.
pub fn server_config(certificate: &[u8], key: &[u8]) -> io::Result<Arc<ServerConfig>> {
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>().map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
