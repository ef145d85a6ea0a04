//! `AnkkaBucket`: one service's bucket, as a request to whichever process fulfils it.
//!
//! The service controller writes the spec, the process that fulfils the request writes the status, and nobody else writes
//! either. A bucket has no owner reference and no finalizer: it outlives its service, with its data. Whatever fulfils the request can
//! stand in for the storage controller when it keeps this:
//!
//! * `status.secret` names a Secret of type [`crate::names::STORAGE_SECRET_TYPE`] with the keys `ANKKA_S3_ACCESS_KEY` and
//!   `ANKKA_S3_SECRET_KEY`, which reach the bucket and no other. It is set once the Secret is written and then stays, also while the
//!   store is down: instances may start from then on. `bucket`, `endpoint` and `region` are set by then, too.
//! * `status.credentialGeneration` rises after the Secret holds the new key. The service's instances are replaced then.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Condition, is_false, is_zero};

/// Desired state of one service's bucket. The service is the one of the same name in the same namespace.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[kube(
    group = "ankka.dev",
    version = "v1alpha1",
    kind = "AnkkaBucket",
    doc = "The bucket of the service of the same name. Written by controllers only; it outlives its service, with its data.",
    plural = "ankkabuckets",
    shortname = "abkt",
    category = "ankka",
    namespaced,
    status = "AnkkaBucketStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Store", type_ = "string", json_path = ".spec.store"),
    printcolumn(name = "Bucket", type_ = "string", json_path = ".status.bucket"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Detail", type_ = "string", json_path = ".status.detail", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct AnkkaBucketSpec {
    /// `garage` or `gcs`.
    #[serde(default)]
    pub store: String,
    /// Whether the bucket is reached from outside the cluster.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exposed: bool,
    /// Web origins the bucket's CORS rule admits while it is exposed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub origins: Vec<String>,
    /// Days after which a version that is no longer current is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_age_days: Option<i64>,
    /// Whether a credential is issued.
    #[serde(default)]
    pub credential: bool,
    /// Raised to have the credential issued again. Never falls.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub credential_generation: i64,
    /// Raised to have the installation's settings applied again. Never falls.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub settings_generation: i64,
    /// A move to the installation's other store.
    #[serde(default, rename = "move", skip_serializing_if = "Option::is_none")]
    pub move_: Option<super::StorageMove>,
}

/// What the process that fulfils the request found.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnkkaBucketStatus {
    /// The `metadata.generation` this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `waiting for object storage`, `provisioned`, `recovered existing bucket` or `object storage provisioning failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Why, where there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The bucket's name in the store. Written before it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// The bucket's id in the store. Another one means that the bucket was made anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_id: Option<String>,
    /// The bucket was there, with its objects, before this record of it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub recovered: bool,
    /// The store's S3 address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The region to sign for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Name of the Secret with the credential, once it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Id of the access key in the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key: Option<String>,
    /// The generation of the credential in the Secret: 0 for the first, else what the spec asked for, or more when running
    /// instances had to be given another.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub credential_generation: i64,
    /// Name under which an access key is being made. Written before it is made, so that one whose making nobody heard of is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuing: Option<String>,
    /// Access keys of before and when each ends. An end is never moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub former_keys: Vec<FormerKey>,
    /// Ids of access keys that somebody else has let into the bucket. They are left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub other_keys: Vec<String>,
    /// `Ready`, and `Reconciling` or `Stalled` while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// An access key that was replaced.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormerKey {
    /// Its id.
    #[serde(default)]
    pub access_key: String,
    /// When the store stops accepting it, RFC 3339.
    #[serde(default)]
    pub ends_at: String,
}
