//! `AnkkaDatabase`: one service's database, as a request to whichever process fulfils it.
//!
//! The contract is that of `AnkkaBucket`: spec by the service controller, status by whoever fulfils it, no owner
//! reference, no finalizer.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Condition, is_zero};

/// Desired state of one service's database. The service is the one of the same name in the same namespace.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[kube(
    group = "ankka.dev",
    version = "v1alpha1",
    kind = "AnkkaDatabase",
    doc = "The database of the service of the same name. Written by controllers only; it outlives its service, with its data.",
    plural = "ankkadatabases",
    shortname = "adb",
    category = "ankka",
    namespaced,
    status = "AnkkaDatabaseStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Database", type_ = "string", json_path = ".status.database"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Detail", type_ = "string", json_path = ".status.detail", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct AnkkaDatabaseSpec {
    /// Raised to have the login issued again. Never falls.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub credential_generation: i64,
}

/// What the process that fulfils the request found.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnkkaDatabaseStatus {
    /// The `metadata.generation` this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The documented phrase, e.g. `provisioned` or `waiting for database`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Why, where there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The database's name on the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// `Ready`, and `Reconciling` or `Stalled` while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
