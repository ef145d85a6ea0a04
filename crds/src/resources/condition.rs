//! A condition as every Kubernetes tool reads it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One aspect of a resource's state, in the shape of `metav1.Condition`.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// `Ready`, `Reconciling`, `Stalled`, `RouteAccepted`, `DatabaseReady` or `StorageReady`.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word in `CamelCase` for programs.
    pub reason: String,
    /// One sentence for people; may be empty.
    pub message: String,
    /// The `metadata.generation` this was found for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When `status` last changed, RFC 3339.
    pub last_transition_time: String,
}
