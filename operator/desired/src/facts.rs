//! What was observed, as small as the decision needs it: caches of thousands of services hold these, not whole objects.

use std::collections::BTreeMap;

use ankka_crds::AnkkaService;

use crate::{ChildKind, Settings};

/// Everything one decision rests on.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The service as stored.
    pub service: &'a AnkkaService,
    /// The project whose namespace the service is in; none when it is no project's.
    pub project: Option<&'a ProjectFacts>,
    /// Settings of the installation.
    pub settings: &'a Settings,
    /// The objects that have the names of this service's children, ours or not.
    pub children: &'a BTreeMap<ChildKind, Seen>,
    /// How the Deployment is doing, when it is there.
    pub workload: Option<&'a WorkloadState>,
    /// The service's pods, those being deleted included.
    pub pods: &'a [PodState],
}

/// What of a project matters to its services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectFacts {
    /// Names of Secrets to pull images with, beside the installation's.
    pub image_pull_secrets: Vec<String>,
    /// The namespace is being deleted: nothing is made in it any more.
    pub terminating: bool,
}

/// An object that has the name of one of our children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Its UID.
    pub uid: String,
    /// UID of the controller that owns it, when one does.
    pub owner: Option<Owner>,
    /// Value of `ankka.dev/rendered`: digest of what we wrote last.
    pub rendered: Option<String>,
    /// Somebody else owns a field that is ours alone (read from `managedFields`).
    pub foreign: bool,
    /// It is being deleted.
    pub terminating: bool,
}

/// The controller owner of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// How a Deployment is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadState {
    /// `metadata.generation`.
    pub generation: i64,
    /// `status.observedGeneration`.
    pub observed_generation: i64,
    /// `spec.replicas`.
    pub desired: i32,
    /// `status.replicas`.
    pub total: i32,
    /// `status.updatedReplicas`.
    pub updated: i32,
    /// `status.readyReplicas`.
    pub ready: i32,
    /// Message of the condition `Progressing` when its reason is `ProgressDeadlineExceeded`.
    pub deadline_exceeded: Option<String>,
    /// Message of the condition `ReplicaFailure` while it is true, e.g. an exceeded quota.
    pub replica_failure: Option<String>,
}

/// How one pod is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodState {
    /// Its name.
    pub name: String,
    /// Label `pod-template-hash`.
    pub template: String,
    /// When it was made, RFC 3339.
    pub created: String,
    /// It is ready.
    pub ready: bool,
    /// It is being deleted.
    pub terminating: bool,
    /// Why it is not ready, `Reason: message`, when its node or the scheduler says so.
    pub problem: Option<String>,
    /// Digest of the running image of the service's own container, e.g. `sha256:…`.
    pub image_digest: Option<String>,
}
