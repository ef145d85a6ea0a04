//! `AnkkaDatabase`: one service's database, as a request to whichever process fulfils it.
//!
//! The contract is that of `AnkkaBucket`: spec by the service controller, status by whoever fulfils it, no owner
//! reference, no finalizer. Whatever fulfils the request can stand in for the database controller when it keeps this:
//!
//! * `status.secret` names a Secret of type [`crate::names::DATABASE_SECRET_TYPE`] with the keys `ANKKA_DB_HOST`, `_PORT`, `_NAME`,
//!   `_USER` and `_PASSWORD`, which the database accepts. It is set once the Secret is written and then stays, also
//!   while the server is down: instances may start from then on.
//! * `status.credentialGeneration` rises after the Secret holds the new login. The service's instances are replaced then.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Condition, is_false, is_zero};

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
    /// `waiting for database`, `provisioned`, `recovered existing data` or `database provisioning failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Why, where there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The database's name on the server, and of the role that owns it. Written before either is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The database was there, with its data, before this record of it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub recovered: bool,
    /// Name of the Secret with the login, once it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The login in the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
    /// The generation of the login in the Secret: 0 for the first, else what the spec asked for, or more when the login
    /// had to be issued anew.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub credential_generation: i64,
    /// Which key the password in the Secret was derived from, as a fingerprint. Another one is that of another server, whose
    /// login is issued anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_key: Option<String>,
    /// Logins of before and when each ends. An end is never moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub former_logins: Vec<FormerLogin>,
    /// `Ready`, and `Reconciling` or `Stalled` while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// A login that was replaced.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormerLogin {
    /// Its name.
    #[serde(default)]
    pub login: String,
    /// When the server stops accepting it, RFC 3339.
    #[serde(default)]
    pub ends_at: String,
}
