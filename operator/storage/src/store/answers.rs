//! What the store answers: of each answer the fields that are used.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A bucket in a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BucketListed {
    pub(super) id: String,
    pub(super) global_aliases: Vec<String>,
}

/// An access key in a list.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct KeySeen {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// When the store stops accepting it.
    #[serde(rename = "expiration")]
    pub ends_at: Option<Timestamp>,
    /// The store does not accept it any more.
    pub expired: bool,
}

/// A bucket, with everybody who is let in.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BucketSeen {
    /// Its id.
    pub id: String,
    /// The access keys that are let in.
    pub keys: Vec<Allowed>,
    /// Its CORS rules. A store that says nothing of them has none.
    #[serde(default)]
    pub(super) cors_rules: Option<Vec<CorsRule>>,
}

/// An access key that a bucket lets in.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Allowed {
    /// Its id.
    pub access_key_id: String,
    /// Its name.
    pub name: String,
    /// What it may do.
    pub permissions: Permissions,
}

/// What an access key may do with a bucket.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
pub struct Permissions {
    /// Read objects.
    pub read: bool,
    /// Write and delete objects.
    pub write: bool,
    /// Change the bucket's own settings, and delete it.
    pub owner: bool,
}

impl Permissions {
    /// What a service's own key may do with its bucket.
    pub const ALL: Self = Self { read: true, write: true, owner: true };
}

impl BucketSeen {
    /// Whether this access key is let in at all.
    pub fn lets_in(&self, key: &str) -> bool {
        self.keys.iter().any(|allowed| allowed.access_key_id == key && allowed.permissions != Permissions::default())
    }

    /// Whether this access key may do everything with it.
    pub fn is_open_to(&self, key: &str) -> bool {
        self.keys.iter().any(|allowed| allowed.access_key_id == key && allowed.permissions == Permissions::ALL)
    }

    /// Whether its CORS rule is the one for these origins, and the only one.
    pub fn admits(&self, origins: &[String]) -> bool {
        self.cors_rules.as_deref().unwrap_or_default() == rules(origins)
    }
}

/// A bucket's CORS rule.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
pub(super) struct CorsRule {
    #[serde(rename = "ID", default)]
    id: Option<String>,
    #[serde(rename = "MaxAgeSeconds", default)]
    max_age_seconds: Option<i64>,
    #[serde(rename = "AllowedOrigin")]
    allowed_origin: Vec<String>,
    #[serde(rename = "AllowedMethod")]
    allowed_method: Vec<String>,
    #[serde(rename = "AllowedHeader", default)]
    allowed_header: Vec<String>,
    #[serde(rename = "ExposeHeader", default)]
    expose_header: Vec<String>,
}

/// The rules that admit these origins: one, or none.
pub(super) fn rules(origins: &[String]) -> Vec<CorsRule> {
    let all = |values: &[&str]| values.iter().map(ToString::to_string).collect();
    let rule = CorsRule {
        id: Some("ankka-origins".to_owned()),
        max_age_seconds: Some(3600),
        allowed_origin: origins.to_vec(),
        allowed_method: all(&["GET", "PUT", "HEAD"]),
        allowed_header: all(&["*"]),
        expose_header: all(&["ETag"]),
    };
    if origins.is_empty() { Vec::new() } else { vec![rule] }
}

/// An access key that was just made. Its secret is told this once.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewKey {
    /// Its id.
    #[serde(rename = "accessKeyId")]
    pub id: String,
    /// Its secret.
    #[serde(rename = "secretAccessKey")]
    pub secret: SecretKey,
}

/// The secret of an access key. Nothing shows it.
#[derive(Clone, Deserialize)]
pub struct SecretKey(String);

impl SecretKey {
    /// The secret itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for SecretKey {
    fn from(secret: String) -> Self {
        Self(secret)
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// An access key that was changed.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct KeyChanged {
    pub(super) expiration: Option<Timestamp>,
}

/// Why the store did not do what was asked.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Problem {
    #[serde(default)]
    pub(super) code: String,
    #[serde(default)]
    pub(super) message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_for_origins_is_read_back_as_it_was_written() {
        let origins = vec!["https://app.example.com".to_owned()];
        let written = serde_json::to_value(rules(&origins)).expect("JSON");
        assert_eq!(
            written,
            serde_json::json!([{
                "ID": "ankka-origins", "MaxAgeSeconds": 3600, "AllowedOrigin": ["https://app.example.com"],
                "AllowedMethod": ["GET", "PUT", "HEAD"], "AllowedHeader": ["*"], "ExposeHeader": ["ETag"],
            }])
        );
        let bucket = serde_json::json!({"id": "1", "keys": [], "corsRules": written});
        let bucket: BucketSeen = serde_json::from_value(bucket).expect("a bucket");
        assert!(bucket.admits(&origins) && !bucket.admits(&[]));
        let bare: BucketSeen = serde_json::from_value(serde_json::json!({"id": "1", "keys": []})).expect("a bucket");
        assert!(bare.admits(&[]) && !bare.admits(&origins));
    }

    #[test]
    fn a_secret_is_not_shown() {
        let key = serde_json::json!({"accessKeyId": "GK1", "secretAccessKey": "do not show", "name": "x"});
        let key: NewKey = serde_json::from_value(key).expect("a key");
        assert_eq!(key.secret.expose(), "do not show");
        assert!(!format!("{key:?}").contains("do not show"));
    }
}
