//! `AnkkaProject`: a project, which is a namespace and who administers it.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Condition;

/// Desired state of one project. Its id is the resource's name.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[kube(
    group = "ankka.dev",
    version = "v1alpha1",
    kind = "AnkkaProject",
    doc = "A project: a namespace for services, and who administers it. Its id is the resource's name.",
    plural = "ankkaprojects",
    shortname = "aproj",
    category = "ankka",
    status = "AnkkaProjectStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Namespace", type_ = "string", json_path = ".status.namespace"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Detail", type_ = "string", json_path = ".status.detail", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct AnkkaProjectSpec {
    /// Where the project's buckets are made; the installation's location when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,

    /// Who may administer the project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub administrators: Vec<Subject>,

    /// Names of Secrets in the project's namespace to pull images with, beside the installation's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub image_pull_secrets: Vec<String>,
}

/// Somebody the API server knows.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: String,
    /// The name as the API server knows it.
    pub name: String,
    /// The namespace of a `ServiceAccount`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// What the platform found, written by the service controller only.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnkkaProjectStatus {
    /// The `metadata.generation` this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The project's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Why the project is not ready and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// `Ready`, and `Reconciling` or `Stalled` while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
