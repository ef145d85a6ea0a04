//! The Secret's content: [`State`] as keys that other tools know, and back. What is broken reads as absent.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize};

use super::{
    Moment, material,
    protocol::{Former, State},
};

/// Content of a Secret.
pub type Data = BTreeMap<String, ByteString>;

/// Every key this process keeps. Others in the same Secret are left alone.
const KEYS: [&str; 7] = ["tls.crt", "tls.key", "ca.crt", "ca.key", "next-ca.crt", "next-ca.key", "rotation.json"];

/// What neither a certificate nor a key says.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rotation {
    /// Milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_trusted_at: Option<Moment>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    former: Vec<FormerAuthority>,
}

#[derive(Serialize, Deserialize)]
struct FormerAuthority {
    certificate: String,
    /// Milliseconds since the epoch.
    until: Moment,
}

/// Reads a Secret. `dns_name` is the name the leaf must be good for.
pub fn read(data: &Data, dns_name: &str) -> State {
    let text = |key: &str| data.get(key).and_then(|value| std::str::from_utf8(&value.0).ok()).unwrap_or_default();
    let rotation: Rotation = serde_json::from_str(text("rotation.json")).unwrap_or_default();
    let next = material::signing_authority(text("next-ca.crt"), text("next-ca.key"));
    let mut state = State {
        current: material::signing_authority(text("ca.crt"), text("ca.key")),
        next_trusted_at: rotation.next_trusted_at.filter(|_| next.is_some()),
        next,
        former: rotation
            .former
            .iter()
            .filter_map(|former| {
                Some(Former { authority: material::authority(&former.certificate)?, until: former.until })
            })
            .collect(),
        leaf: None,
    };
    // An authority whose key is lost signs no more, and what it signed stays good.
    let orphan = if state.current.is_none() { material::authority(text("ca.crt")) } else { None };
    let signers = state.current.iter().chain(state.former.iter().map(|former| &former.authority)).chain(&orphan);
    state.leaf = material::leaf(text("tls.crt"), text("tls.key"), signers, dns_name);
    if let (Some(authority), Some(leaf)) = (orphan, &state.leaf)
        && leaf.issuer == authority.id
    {
        state.former.push(Former { authority, until: leaf.not_after });
    }
    state
}

/// The content of a Secret that holds `state`, and whatever else was in it.
pub fn write(state: &State, stored: &Data) -> Data {
    let rotation = Rotation {
        next_trusted_at: state.next_trusted_at,
        former: state
            .former
            .iter()
            .map(|former| FormerAuthority { certificate: former.authority.certificate.clone(), until: former.until })
            .collect(),
    };
    let rotation = serde_json::to_string(&rotation).expect("strings and numbers always serialise");
    let pair = |prefix: &str, certificate: &str, key: &str| {
        [(format!("{prefix}.crt"), certificate.to_owned()), (format!("{prefix}.key"), key.to_owned())]
    };
    let authorities = [("ca", &state.current), ("next-ca", &state.next)];
    let others = stored.iter().filter(|(key, _)| !KEYS.contains(&key.as_str()));
    authorities
        .into_iter()
        .filter_map(|(prefix, held)| held.as_ref().map(|held| pair(prefix, &held.certificate, &held.key)))
        .chain(state.leaf.as_ref().map(|leaf| pair("tls", &leaf.certificate, &leaf.key)))
        .flatten()
        .chain([("rotation.json".to_owned(), rotation)])
        .map(|(key, value)| (key, ByteString(value.into_bytes())))
        .chain(others.map(|(key, value)| (key.clone(), value.clone())))
        .collect()
}
