//! The objects that make a service run.

use ankka_crds::{GROUP, VERSION, labels, names};
use k8s_openapi::Resource;
use serde_json::Value;

use crate::digest;
use crate::http_route::HttpRoute;
pub use crate::merge::{merged, scaled};

/// Kinds of children, in the order in which they are made: what a workload needs comes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChildKind {
    /// The request for a database, which the database controller answers. It has no owner and is never deleted: it
    /// outlives its service, with the data.
    Database,
    /// The identity of the instances.
    ServiceAccount,
    /// What the instances may do: list pods of their own namespace.
    Role,
    /// Binds the two.
    RoleBinding,
    /// Cluster-formation settings that change without a rollout.
    ConfigMap,
    /// Keeps one instance of several through a drain.
    PodDisruptionBudget,
    /// The address inside the cluster.
    Service,
    /// The instances.
    Deployment,
    /// The address outside the cluster.
    HttpRoute,
}

impl ChildKind {
    /// Every kind, in the order in which they are made.
    pub const fn all() -> [Self; 9] {
        [
            Self::Database,
            Self::ServiceAccount,
            Self::Role,
            Self::RoleBinding,
            Self::ConfigMap,
            Self::PodDisruptionBudget,
            Self::Service,
            Self::Deployment,
            Self::HttpRoute,
        ]
    }

    /// API group; empty for the core group.
    pub const fn group(self) -> &'static str {
        match self {
            Self::ServiceAccount | Self::ConfigMap | Self::Service => "",
            Self::Role | Self::RoleBinding => "rbac.authorization.k8s.io",
            Self::PodDisruptionBudget => "policy",
            Self::Deployment => "apps",
            Self::HttpRoute => HttpRoute::GROUP,
            Self::Database => GROUP,
        }
    }

    /// API version inside the group.
    pub const fn version(self) -> &'static str {
        match self {
            Self::Database => VERSION,
            _ => "v1",
        }
    }

    /// `apiVersion` as objects carry it: the version, after the group where there is one.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::ServiceAccount | Self::ConfigMap | Self::Service => "v1",
            Self::Role | Self::RoleBinding => "rbac.authorization.k8s.io/v1",
            Self::PodDisruptionBudget => "policy/v1",
            Self::Deployment => "apps/v1",
            Self::HttpRoute => HttpRoute::API_VERSION,
            Self::Database => "ankka.dev/v1alpha1",
        }
    }

    /// `kind` as objects carry it.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::ServiceAccount => "ServiceAccount",
            Self::Role => "Role",
            Self::RoleBinding => "RoleBinding",
            Self::ConfigMap => "ConfigMap",
            Self::PodDisruptionBudget => "PodDisruptionBudget",
            Self::Service => "Service",
            Self::Deployment => "Deployment",
            Self::HttpRoute => HttpRoute::KIND,
            Self::Database => "AnkkaDatabase",
        }
    }

    /// Name of the resource in paths and roles.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::ServiceAccount => "serviceaccounts",
            Self::Role => "roles",
            Self::RoleBinding => "rolebindings",
            Self::ConfigMap => "configmaps",
            Self::PodDisruptionBudget => "poddisruptionbudgets",
            Self::Service => "services",
            Self::Deployment => "deployments",
            Self::HttpRoute => HttpRoute::URL_PATH_SEGMENT,
            Self::Database => "ankkadatabases",
        }
    }

    /// Name of this kind's object of a service.
    pub fn name_for(self, service: &str) -> String {
        match self {
            Self::ServiceAccount | Self::Role | Self::RoleBinding => names::account(service),
            Self::ConfigMap => names::cluster_config(service),
            Self::PodDisruptionBudget | Self::Service | Self::Deployment | Self::HttpRoute | Self::Database => {
                service.to_owned()
            }
        }
    }

    /// The service whose object of this kind has this name; none when no service's has.
    pub fn service_of(self, name: &str) -> Option<&str> {
        match self {
            Self::ServiceAccount | Self::Role | Self::RoleBinding => name.strip_prefix("ankka-"),
            Self::ConfigMap => name.strip_suffix("-cluster"),
            Self::PodDisruptionBudget | Self::Service | Self::Deployment | Self::HttpRoute | Self::Database => {
                Some(name)
            }
        }
    }

    /// Whether the service owns its object of this kind. What it does not own is nobody's but the platform's, whoever made it.
    pub const fn is_owned(self) -> bool {
        !matches!(self, Self::Database)
    }

    /// The kind as messages write it: `deployment`.
    pub fn word(self) -> String {
        self.kind().to_ascii_lowercase()
    }
}

/// One object as it should be: metadata with name, namespace, labels, annotations and owner reference, and its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// Its kind.
    pub kind: ChildKind,
    /// Its name.
    pub name: String,
    /// The whole object, `apiVersion` and `kind` included.
    pub body: Value,
    /// Digest of `body`, which also stands in the annotation `ankka.dev/rendered`. That annotation itself and
    /// `ankka.dev/generation` do not count.
    pub rendered: String,
}

impl Child {
    /// The child of this kind, name and content, with its digest written into it.
    pub(crate) fn new(kind: ChildKind, name: String, mut body: Value) -> Self {
        let rendered = stamp(&mut body);
        Self { kind, name, body, rendered }
    }
}

/// Writes an object's digest into its annotation `ankka.dev/rendered`, and returns it.
pub(crate) fn stamp(body: &mut Value) -> String {
    let mut counted = body.clone();
    if let Some(annotations) = counted.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(labels::RENDERED);
        annotations.remove(labels::GENERATION);
    }
    let rendered = digest::of(&counted);
    body["metadata"]["annotations"][labels::RENDERED] = Value::String(rendered.clone());
    rendered
}
