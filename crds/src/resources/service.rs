//! `AnkkaService`: one service, as its author asked for it.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Condition, FormerLogin, is_false, is_zero};

/// Desired state of one service: the descriptor, and what commands have set beside it. The service's name is the
/// resource's name and its project is the namespace, never a field.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "ankka.dev",
    version = "v1alpha1",
    kind = "AnkkaService",
    doc = "One service of a project: what `ankka services apply` makes of `service.json`. Its name is the resource's name and its project is the namespace.",
    plural = "ankkaservices",
    shortname = "asvc",
    category = "ankka",
    namespaced,
    status = "AnkkaServiceStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Status", type_ = "string", json_path = ".status.lifecycle"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyInstances"),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".status.desiredInstances"),
    printcolumn(name = "Gen", type_ = "integer", json_path = ".metadata.generation"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.service.image"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Address", type_ = "string", json_path = ".status.address", priority = 1),
    printcolumn(name = "Database", type_ = "string", json_path = ".status.database.phase", priority = 1),
    printcolumn(name = "Storage", type_ = "string", json_path = ".status.objectStorage.phase", priority = 1),
    printcolumn(name = "Detail", type_ = "string", json_path = ".status.detail", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct AnkkaServiceSpec {
    /// The descriptor's `service` object, as it was applied. Atomic: who applies it owns all of it.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub service: ServiceSpec,

    /// Zero instances while true; the descriptor and the data are kept. Set by `ankka services pause`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paused: bool,

    /// Whether the service has an address outside the cluster. Set by `ankka services expose`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exposed: bool,

    /// How often a restart was asked for. Never falls. Raised by `ankka services restart`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: i64,

    /// What commands have asked of the service's object storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageCommands>,

    /// What commands have asked of the service's database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<DatabaseCommands>,
}

/// What commands have asked of a service's object storage. Counters never fall.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageCommands {
    /// Raised by `ankka services storage reissue`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub credential_generation: i64,
    /// Raised by `ankka services storage reapply-settings`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub settings_generation: i64,
    /// Set by `ankka services storage move`.
    #[serde(default, rename = "move", skip_serializing_if = "Option::is_none")]
    pub move_: Option<StorageMove>,
}

/// One move of a bucket to the installation's other store.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageMove {
    /// Raised each time a move is asked for.
    #[serde(default)]
    pub generation: i64,
    /// Longest write pause: a whole number and `s`, `m` or `h`. 10 minutes when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_pause_bound: Option<String>,
}

/// What commands have asked of a service's database.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseCommands {
    /// Raised by `ankka services database reissue`. Never falls.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub credential_generation: i64,
}

/// What to run: the descriptor's `service` object. Every field but the image has a default, used where the field is absent.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceSpec {
    /// The container image to run; any reference the cluster can pull. Required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,

    /// The ankka version the image was built against, `MAJOR.MINOR.PATCH`. Not checked when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,

    /// `embedded` (the default) for an ankka service; `process` for a program in another language, run beside the sidecar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosting: Option<String>,

    /// The sidecar protocol version the image's SDK speaks, `MAJOR.MINOR`. Required with `process` hosting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,

    /// Environment for the service's containers, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub env: Option<Vec<EnvEntry>>,

    /// Extra labels on the service's Deployment, pods and Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub labels: Option<BTreeMap<String, String>>,

    /// Extra annotations on the service's Deployment, pods and Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub annotations: Option<BTreeMap<String, String>>,

    /// Whether the service serves HTTP at all. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<bool>,

    /// The port the service listens on, 1 to 65535. Default 9000. Ignored when `http` is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,

    /// Size and number of instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesSpec>,

    /// Whether the platform makes the service a bucket. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provision_object_storage: Option<bool>,

    /// Whether the bucket can be reached from outside the cluster. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expose_object_storage: Option<bool>,

    /// Web origins whose pages may use the bucket: `https://host`, `https://host:port` or `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub object_storage_origins: Option<Vec<String>>,

    /// Whether the service is issued a storage credential. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_storage_credential: Option<bool>,

    /// Days after which a version that is no longer current is deleted, 1 or more. Without effect on Garage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_storage_version_age_days: Option<i64>,
}

/// One environment variable: a name and exactly one of a value or a reference to a Secret.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvEntry {
    /// The variable's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A literal value, which arrives byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// A value read from a Secret in the service's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<SecretKeyRef>,
}

/// One key of a Secret in the service's namespace.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// The Secret's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The key in the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Size and number of instances.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesSpec {
    /// The size of each instance: `small` (the default), `medium` or `large`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// The number of instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,
}

/// The number of instances. Only `minInstances` is acted on: there is no autoscaler.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Autoscaling {
    /// The number of instances to run. Default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_instances: Option<i64>,
    /// Validated and stored; not acted on. Default 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_instances: Option<i64>,
    /// Validated and stored; not acted on. Default 80.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_cpu_percent: Option<i64>,
}

/// What the platform found, written by the service controller only.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnkkaServiceStatus {
    /// The `metadata.generation` this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// `NotDeployed`, `UpdateInProgress`, `Ready`, `PartiallyReady`, `Unavailable`, `Failed` or `Paused`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<String>,

    /// Why the service is not ready and what to do; absent when there is nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,

    /// Instances that answer.
    #[serde(default)]
    pub ready_instances: i64,

    /// Instances asked for; zero while paused.
    #[serde(default)]
    pub desired_instances: i64,

    /// Where the service is reached: inside the cluster, or outside when exposed. Absent when it serves no HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,

    /// Of an exposed service, how its route is: `pending`, `accepted` or `rejected: <reason>`. Absent when not exposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,

    /// Digest of the image the newest instance runs, as its node reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_digest: Option<String>,

    /// The service's database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<ProvisioningStatus>,

    /// The service's bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_storage: Option<ProvisioningStatus>,

    /// `Ready`, and `Reconciling` or `Stalled` while they are true; `DatabaseReady`, `StorageReady` and `RouteAccepted`
    /// where the service has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// How far the platform is with something the service needs.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvisioningStatus {
    /// The documented phrase, e.g. `provisioned` or `supplied`.
    pub phase: String,
    /// Why, where there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Logins of before that are still accepted, and until when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub former_logins: Vec<FormerLogin>,
}
