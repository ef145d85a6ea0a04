//! Real keys and certificates: making them, and telling sound ones from broken ones.

use ankka_crds::digest::hex;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use sha2::{Digest, Sha256};
use std::time::Duration;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::{
    Moment,
    protocol::{Authority, Id, Leaf, Mint},
};

/// Certificates are good from this long before they are made: clocks differ.
const BACKDATED: Moment = 5 * 60 * 1000;

/// Makes ECDSA P-256 keys and their certificates.
#[derive(Clone, Debug)]
pub struct Minter {
    /// The names a leaf is good for.
    pub dns_names: Vec<String>,
}

impl Mint for Minter {
    type Error = rcgen::Error;

    fn authority(&mut self, now: Moment, not_after: Moment) -> Result<Authority, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = dated(CertificateParams::default(), now, not_after);
        // The key's digest in the name: authorities of one name would be taken for each other while both are trusted.
        let digest = hex(&Sha256::digest(key.der_bytes())[..8]);
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, format!("ankka-webhook-ca-{digest}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?;
        Ok(Authority {
            id: id_of(certificate.der()),
            not_after,
            certificate: pem(certificate.der()),
            key: key.serialize_pem(),
        })
    }

    fn leaf(&mut self, authority: &Authority, now: Moment, not_after: Moment) -> Result<Leaf, rcgen::Error> {
        let issuer = Issuer::from_ca_cert_pem(&authority.certificate, KeyPair::from_pem(&authority.key)?)?;
        let key = KeyPair::generate()?;
        let mut params = dated(CertificateParams::new(self.dns_names.clone())?, now, not_after);
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "ankka-webhook");
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&key, &issuer)?;
        Ok(Leaf {
            issuer: authority.id.clone(),
            not_after,
            certificate: pem(certificate.der()),
            key: key.serialize_pem(),
        })
    }
}

fn dated(mut params: CertificateParams, now: Moment, not_after: Moment) -> CertificateParams {
    let at = |moment: Moment| {
        date_time_ymd(1970, 1, 1) + Duration::from_secs(u64::try_from(moment.div_euclid(1000)).unwrap_or_default())
    };
    params.not_before = at(now - BACKDATED);
    params.not_after = at(not_after);
    params
}

fn id_of(der: &[u8]) -> Id {
    hex(&Sha256::digest(der))
}

/// The authority whose certificate this is, without a key. None unless it is the certificate of an authority.
pub fn authority(certificate: &str) -> Option<Authority> {
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).ok()?;
    authority_of_der(&der)
}

fn authority_of_der(der: &CertificateDer<'_>) -> Option<Authority> {
    let (_, parsed) = X509Certificate::from_der(der).ok()?;
    parsed.is_ca().then(|| Authority {
        id: id_of(der),
        not_after: parsed.validity().not_after.timestamp().saturating_mul(1000),
        certificate: pem(der),
        key: String::new(),
    })
}

/// The authority of this certificate and key. None unless both belong together.
pub fn signing_authority(certificate: &str, key: &str) -> Option<Authority> {
    let authority = authority(certificate)?;
    let pair = KeyPair::from_pem(key).ok()?;
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).ok()?;
    let (_, parsed) = X509Certificate::from_der(&der).ok()?;
    let same = parsed.public_key().subject_public_key.data.as_ref() == pair.der_bytes();
    same.then(|| Authority { key: key.to_owned(), ..authority })
}

/// The authorities in a `caBundle`. What is no certificate of an authority is left out.
pub fn authorities(bundle: &[u8]) -> Vec<Authority> {
    CertificateDer::pem_slice_iter(bundle).filter_map(|der| authority_of_der(&der.ok()?)).collect()
}

/// The leaf of this certificate and key. None unless both belong together, one of `authorities` signed it, and it is good
/// for `dns_name`.
pub fn leaf<'a>(
    certificate: &str,
    key: &str,
    mut authorities: impl Iterator<Item = &'a Authority>,
    dns_name: &str,
) -> Option<Leaf> {
    super::serving::server_config(certificate.as_bytes(), key.as_bytes()).ok()?;
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).ok()?;
    let (_, parsed) = X509Certificate::from_der(&der).ok()?;
    let names = parsed.subject_alternative_name().ok()??;
    if !names.value.general_names.iter().any(|name| matches!(name, GeneralName::DNSName(name) if *name == dns_name)) {
        return None;
    }
    let issuer = authorities.find(|authority| signed(&parsed, authority))?;
    Some(Leaf {
        issuer: issuer.id.clone(),
        not_after: parsed.validity().not_after.timestamp().saturating_mul(1000),
        certificate: certificate.to_owned(),
        key: key.to_owned(),
    })
}

/// When the first certificate of `pem` expires.
pub fn not_after(pem: &[u8]) -> Option<Moment> {
    let der = CertificateDer::from_pem_slice(pem).ok()?;
    let (_, parsed) = X509Certificate::from_der(&der).ok()?;
    Some(parsed.validity().not_after.timestamp().saturating_mul(1000))
}

fn signed(leaf: &X509Certificate<'_>, authority: &Authority) -> bool {
    let Ok(der) = CertificateDer::from_pem_slice(authority.certificate.as_bytes()) else {
        return false;
    };
    X509Certificate::from_der(&der).is_ok_and(|(_, issuer)| leaf.verify_signature(Some(issuer.public_key())).is_ok())
}

/// The certificate as PEM in one spelling, so that bundles compare as bytes.
fn pem(der: &[u8]) -> String {
    let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    pem::encode_config(&pem::Pem::new("CERTIFICATE", der), config)
}
