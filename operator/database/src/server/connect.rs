//! Connecting: to whom, how safely, and how long it may take.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use tokio_postgres::{
    Config,
    config::{SslMode, TargetSessionAttrs},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::password::Password;

/// How much the server has to prove: PostgreSQL's own words for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tls {
    /// `disable`: nothing is encrypted.
    Disable,
    /// `require`: encrypted, whoever it is.
    Require,
    /// `verify-ca`: its certificate is signed by an authority that is trusted.
    VerifyCa,
    /// `verify-full`: and is for the host that was asked for.
    #[default]
    VerifyFull,
}

/// Where the server is, and who administers it.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How much it has to prove.
    pub tls: Tls,
    /// The authorities that are trusted, in PEM; those of the system when absent.
    pub authorities: Option<PathBuf>,
    /// The administrator's login.
    pub user: String,
    /// The administrator's password.
    pub password: Password,
    /// A database that is there before the platform's own is.
    pub maintenance_database: String,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long one statement may take.
    pub statement_timeout: Duration,
}

impl Connection {
    /// The server, as people name it.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// How to connect to `database` as the administrator.
    pub(super) fn administrator(&self, database: &str) -> Config {
        let mut config = self.login(database, &self.user, &self.password);
        // What a standby says may be old: nothing is decided by it.
        config
            .options(format!("-c statement_timeout={}", self.statement_timeout.as_millis()))
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        config
    }

    /// How to connect to `database` with a login.
    pub(super) fn login(&self, database: &str, user: &str, password: &Password) -> Config {
        let mut config = Config::new();
        config
            .host(&self.host)
            .port(self.port)
            .dbname(database)
            .user(user)
            .password(password.expose())
            .application_name("ankka-database")
            .ssl_mode(if self.tls == Tls::Disable { SslMode::Disable } else { SslMode::Require })
            .connect_timeout(self.connect_timeout)
            .keepalives_idle(Duration::from_secs(30))
            .tcp_user_timeout(self.statement_timeout);
        config
    }

    /// What certificates are judged by, read anew each time: authorities are replaced while the process runs.
    pub(super) fn verifier(&self) -> anyhow::Result<MakeRustlsConnect> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let roots = Arc::new(if self.tls == Tls::Require { RootCertStore::empty() } else { self.roots()? });
        let config = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
        Ok(MakeRustlsConnect::new(match self.tls {
            Tls::VerifyFull => config.with_root_certificates(roots).with_no_client_auth(),
            Tls::VerifyCa => {
                let chain = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build()?;
                let lenient = Lenient { chain: Some(chain), provider };
                config.dangerous().with_custom_certificate_verifier(Arc::new(lenient)).with_no_client_auth()
            }
            Tls::Disable | Tls::Require => {
                let lenient = Lenient { chain: None, provider };
                config.dangerous().with_custom_certificate_verifier(Arc::new(lenient)).with_no_client_auth()
            }
        }))
    }

    fn roots(&self) -> anyhow::Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        let Some(file) = &self.authorities else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            ensure!(!roots.is_empty(), "the system trusts no authority; set ANKKA_DATABASE_CA_FILE");
            return Ok(roots);
        };
        let shown = file.display();
        let found = CertificateDer::pem_file_iter(file).with_context(|| format!("failed to read {shown}"))?;
        for certificate in found {
            let certificate = certificate.with_context(|| format!("failed to read a certificate in {shown}"))?;
            roots.add(certificate).with_context(|| format!("{shown} has a certificate that is no authority's"))?;
        }
        ensure!(!roots.is_empty(), "{shown} has no certificate in it");
        Ok(roots)
    }
}

/// Leaves out what `require` and `verify-ca` leave out. That the server has the key of its certificate is always checked.
#[derive(Debug)]
struct Lenient {
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(TlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
