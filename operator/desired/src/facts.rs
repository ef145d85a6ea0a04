//! What was observed, as small as the decision needs it: caches of thousands of services hold these, not whole objects.

use std::collections::BTreeMap;

use ankka_crds::resources::FormerLogin;
use ankka_crds::{AnkkaService, labels, names};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::cause::Place;
use crate::fields::{self, OwnFields};
use crate::revisions::RevisionSeen;
use crate::{Child, ChildKind, Problem, RouteFacts, Settings};

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
    /// How far the database is, when it has been asked for.
    pub database: Option<&'a DatabaseState>,
    /// The service's pods, those being deleted included.
    pub pods: &'a [PodState],
    /// What is kept of the service's descriptors.
    pub revisions: &'a [RevisionSeen],
    /// The time of the decision.
    pub now: Timestamp,
    /// What decides about the service's address outside the cluster.
    pub route: RouteFacts<'a>,
}

impl<'a> Facts<'a> {
    /// The service's name.
    pub(crate) fn name(&self) -> &'a str {
        self.service.metadata.name.as_deref().unwrap_or_default()
    }

    /// The service's namespace.
    pub(crate) fn namespace(&self) -> &'a str {
        self.service.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Where the service is, as next steps name it.
    pub(crate) fn place(&self) -> Place<'a> {
        let namespace = self.namespace();
        let project = names::project_of(&self.settings.prefix, namespace).unwrap_or(namespace);
        Place { service: self.name(), project, namespace }
    }

    /// The service's UID.
    pub(crate) fn uid(&self) -> &'a str {
        self.service.metadata.uid.as_deref().unwrap_or_default()
    }
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
    /// The fields that are still as we wrote them (read from `managedFields`).
    pub own: OwnFields,
}

impl Seen {
    /// What of an object's metadata the decision needs.
    pub fn of(meta: &ObjectMeta) -> Self {
        let (own, foreign) = fields::read(meta.managed_fields.as_deref().unwrap_or_default());
        let controller = meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
        let rendered = meta.annotations.as_ref().and_then(|annotations| annotations.get(labels::RENDERED));
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            owner: controller.map(|owner| Owner {
                kind: owner.kind.clone(),
                name: owner.name.clone(),
                uid: owner.uid.clone(),
            }),
            rendered: rendered.cloned(),
            foreign,
            terminating: meta.deletion_timestamp.is_some(),
            own,
        }
    }

    /// Whether the object is as we last wrote it, and that is what it should be.
    pub fn settled(&self, child: &Child) -> bool {
        self.is_as_written(&child.rendered, &child.body)
    }

    /// [`Self::settled`] for an object whose content is compared by itself: only its metadata counts here.
    pub(crate) fn is_labelled(&self, child: &Child) -> bool {
        let metadata = json!({ "metadata": child.body["metadata"] });
        self.rendered.as_deref() == Some(&child.rendered) && self.own.hold(&metadata)
    }

    pub(crate) fn is_as_written(&self, rendered: &str, body: &Value) -> bool {
        self.rendered.as_deref() == Some(rendered) && !self.foreign && self.own.hold(body)
    }

    /// Whether the AnkkaService with this UID controls the object.
    pub(crate) fn owned_by(&self, uid: &str) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.uid == uid)
    }

    /// Whether this AnkkaService controls the object.
    pub fn is_owned_by(&self, service: &AnkkaService) -> bool {
        service.metadata.uid.as_deref().is_some_and(|uid| self.owned_by(uid))
    }

    /// Whether an AnkkaService of this name that is gone controls the object: the garbage collector will remove it.
    pub(crate) fn left_by_predecessor(&self, service: &str, uid: &str) -> bool {
        let owner = self.owner.as_ref();
        owner.is_some_and(|owner| owner.kind == "AnkkaService" && owner.name == service && owner.uid != uid)
    }
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

/// When an object was made, RFC 3339; empty for one that was not.
pub(crate) fn created(meta: &ObjectMeta) -> String {
    meta.creation_timestamp.as_ref().map(|time| time.0.to_string()).unwrap_or_default()
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
    /// The last rollout was completed: the reason of the condition `Progressing` is `NewReplicaSetAvailable`. It stays so
    /// when instances fail later.
    pub complete: bool,
    /// Message of the condition `Progressing` when its reason is `ProgressDeadlineExceeded`.
    pub deadline_exceeded: Option<String>,
    /// Message of the condition `ReplicaFailure` while it is true, e.g. an exceeded quota.
    pub replica_failure: Option<String>,
    /// Image of the sidecar in `spec.template`, when it has one.
    pub sidecar: Option<String>,
}

/// How far a service's database is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseState {
    /// `spec.credentialGeneration`: the generation of the login that was asked for.
    pub asked: i64,
    /// When it was asked for first, RFC 3339.
    pub created: String,
    /// `status.phase`.
    pub phase: Option<String>,
    /// `status.detail`.
    pub detail: Option<String>,
    /// `status.secret`: the Secret with the login, once it is written.
    pub secret: Option<String>,
    /// `status.credentialGeneration`: the generation of the login in that Secret.
    pub in_place: i64,
    /// `status.formerLogins`: the logins of before, each with its end.
    pub former: Vec<FormerLogin>,
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
    /// Why it is not ready, when its node or the scheduler says so.
    pub problem: Option<Problem>,
    /// All its containers run.
    pub running: bool,
    /// Since when they do, while it is not ready.
    pub silent_since: Option<Timestamp>,
    /// How often its containers have ended and were started again, in total.
    pub restarts: i32,
    /// Generation of the database login that it was made for; none when it was given no login of the platform's.
    pub login: Option<i64>,
    /// Digest of the running image of the service's own container, e.g. `sha256:…`.
    pub image_digest: Option<String>,
}
