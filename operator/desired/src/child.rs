//! The objects that make a service run.

use serde_json::Value;

/// Kinds of children, in the order in which they are made: what a workload needs comes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChildKind {
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
    /// Digest of `body`, which also stands in the annotation `ankka.dev/rendered`.
    pub rendered: String,
}
