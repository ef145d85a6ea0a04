//! A certificate authority made on the spot, and certificates for everyone.

use std::{net::IpAddr, path::Path};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};

use super::{
    addresses::{API_SERVICE, NODE, NODE_NAME},
    gateway,
    layout::Layout,
    postgres,
};
use crate::paths;

/// Somebody with a certificate: its file name, user name, group, and the host names it serves under beside the addresses.
struct Party {
    name: &'static str,
    user: &'static str,
    group: Option<&'static str>,
    hosts: &'static [&'static str],
}

const PARTIES: [Party; 11] = [
    Party {
        name: "apiserver",
        user: "kube-apiserver",
        group: None,
        hosts: &[
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ],
    },
    Party { name: "kubelet-client", user: "kube-apiserver-kubelet-client", group: Some("system:masters"), hosts: &[] },
    Party { name: "admin", user: "admin", group: Some("system:masters"), hosts: &[] },
    Party { name: "controller-manager", user: "system:kube-controller-manager", group: None, hosts: &["localhost"] },
    Party { name: "scheduler", user: "system:kube-scheduler", group: None, hosts: &["localhost"] },
    Party { name: "kubelet", user: "system:node:node1", group: Some("system:nodes"), hosts: &[NODE_NAME] },
    Party { name: "proxy", user: "system:kube-proxy", group: None, hosts: &[] },
    Party { name: "dns", user: "system:coredns", group: None, hosts: &[] },
    Party { name: "postgres", user: "postgres", group: None, hosts: &[postgres::HOST] },
    Party { name: "contour", user: "system:contour", group: None, hosts: &[] },
    Party { name: "gateway", user: "gateway", group: None, hosts: &[gateway::HOSTS] },
];

/// Users with a kubeconfig: the file's name.
pub(crate) const USERS: [&str; 7] = ["admin", "controller-manager", "scheduler", "kubelet", "proxy", "dns", "contour"];

/// Whether what is there is what [`create`] makes now; true when there is nothing.
pub(crate) fn current(layout: &Layout) -> bool {
    std::fs::read_to_string(layout.pki().join("complete")).map_or(true, |parties| parties == everybody())
}

fn everybody() -> String {
    PARTIES.map(|party| party.name).join(" ")
}

/// Makes the authority, the certificates, the keys of service accounts, and a kubeconfig for each user. Once: what is there is kept.
pub(crate) fn create(layout: &Layout) -> Result<()> {
    let folder = layout.pki();
    if folder.join("complete").exists() {
        return Ok(());
    }
    let authority = authority(&folder).context("failed to make the certificate authority")?;
    for party in &PARTIES {
        issue(&folder, &authority, party)
            .with_context(|| format!("failed to make a certificate for {}", party.name))?;
    }
    let accounts = KeyPair::generate()?;
    secret(&folder.join("accounts.key"), &accounts.serialize_pem())?;
    paths::write(&folder.join("accounts.pub"), accounts.public_key_pem())?;
    for user in USERS {
        secret(&layout.kubeconfig(user), &kubeconfig(layout, user))?;
    }
    paths::write(&folder.join("complete"), everybody())
}

fn authority(folder: &Path) -> Result<Issuer<'static, KeyPair>> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "ankka-local-platform");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    paths::write(&folder.join("ca.crt"), params.self_signed(&key)?.pem())?;
    secret(&folder.join("ca.key"), &key.serialize_pem())?;
    Ok(Issuer::new(params, key))
}

fn issue(folder: &Path, authority: &Issuer<'_, KeyPair>, party: &Party) -> Result<()> {
    let mut params = CertificateParams::new(party.hosts.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    if !party.hosts.is_empty() {
        let loopback = std::net::Ipv4Addr::LOCALHOST;
        params.subject_alt_names.extend([loopback, NODE, API_SERVICE].map(|ip| SanType::IpAddress(IpAddr::V4(ip))));
    }
    params.distinguished_name.push(DnType::CommonName, party.user);
    if let Some(group) = party.group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    paths::write(&folder.join(format!("{}.crt", party.name)), params.signed_by(&key, authority)?.pem())?;
    secret(&folder.join(format!("{}.key", party.name)), &key.serialize_pem())
}

/// JSON, which is YAML too. Paths, not contents: the files lie beside it.
fn kubeconfig(layout: &Layout, user: &str) -> String {
    let file = |name: String| layout.pki().join(name);
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "ankka-local",
        "contexts": [{"name": "ankka-local", "context": {"cluster": "ankka-local", "user": user}}],
        "clusters": [{"name": "ankka-local", "cluster": {
            "server": layout.api_url(),
            "certificate-authority": file("ca.crt".into()),
        }}],
        "users": [{"name": user, "user": {
            "client-certificate": file(format!("{user}.crt")),
            "client-key": file(format!("{user}.key")),
        }}],
    })
    .to_string()
}

/// Writes what only we may read.
pub(crate) fn secret(path: &Path, content: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    paths::write(path, content)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .with_context(|| format!("failed to protect {}", path.display()))
}
