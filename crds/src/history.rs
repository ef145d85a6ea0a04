//! The history of a service as it is recorded: annotation `ankka.dev/changes`, kept by the admission webhook and by nobody
//! else (reference, section C3).

use serde::{Deserialize, Serialize};

use crate::{AnkkaService, labels::CHANGES};

/// Changes kept.
pub const KEPT: usize = 50;

/// One change of a service's spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The service's generation after the change.
    pub generation: i64,
    /// What was changed.
    pub kind: Kind,
    /// Who changed it, as the API server knows them.
    pub who: String,
    /// When, RFC 3339, in whole seconds.
    pub at: String,
    /// The image after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Digest of the descriptor after the change: 64 hex digits.
    pub digest: String,
    /// Of a rollback, the generation whose descriptor was brought back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back_to: Option<i64>,
}

/// What a change changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each is the documented word of a command")]
pub enum Kind {
    Applied,
    RolledBack,
    Restarted,
    Paused,
    Resumed,
    Exposed,
    Unexposed,
    StorageCredentialReissued,
    StorageSettingsReapplied,
    StorageMoved,
    DatabaseCredentialReissued,
}

impl Kind {
    /// The word as it is recorded and printed, e.g. `rolled-back`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::RolledBack => "rolled-back",
            Self::Restarted => "restarted",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::Exposed => "exposed",
            Self::Unexposed => "unexposed",
            Self::StorageCredentialReissued => "storage-credential-reissued",
            Self::StorageSettingsReapplied => "storage-settings-reapplied",
            Self::StorageMoved => "storage-moved",
            Self::DatabaseCredentialReissued => "database-credential-reissued",
        }
    }
}

/// The recorded changes of a service, newest first; none of what cannot be read.
pub fn of(service: &AnkkaService) -> Vec<Change> {
    let annotations = service.metadata.annotations.as_ref();
    annotations.and_then(|annotations| annotations.get(CHANGES)).map(|text| parse(text)).unwrap_or_default()
}

/// The changes in an annotation's value. What cannot be read was not written by us, and is not history.
pub fn parse(text: &str) -> Vec<Change> {
    serde_json::from_str(text).unwrap_or_default()
}

/// The digest of the descriptor a service had at this generation: that of the newest change at or before it.
pub fn digest_at(changes: &[Change], generation: i64) -> Option<&str> {
    changes.iter().find(|change| change.generation <= generation).map(|change| change.digest.as_str())
}
