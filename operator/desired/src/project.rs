//! The decision about a project: its namespace, who may reach what runs there, and who administers it.

use std::collections::BTreeMap;
use std::iter;

use ankka_crds::resources::{AnkkaProjectStatus, Condition};
use ankka_crds::{AnkkaProject, labels, names, project};
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicySpec};
use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::Serialize;
use serde_json::{Value, json};

use crate::Seen;
use crate::child::stamp;
use crate::merge::merged_object;

/// Name of the NetworkPolicy of every project's namespace.
pub const POLICY: &str = "ankka-project";

/// Name of the RoleBinding of a project's administrators. No service's is named so: theirs are `ankka-<service>`.
pub const ADMINISTRATORS: &str = "ankka:administrators";

/// What administrators are bound to: Kubernetes' own role for the owners of a namespace, which `ankka-admin` is part of. They read
/// logs, set Secrets, and let others in.
pub const ROLE: &str = "admin";

/// Everything one decision rests on.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The project as stored.
    pub project: &'a AnkkaProject,
    /// Prefix of project namespaces.
    pub prefix: &'a str,
    /// The namespace the platform itself runs in.
    pub own_namespace: &'a str,
    /// The namespace of the Gateway.
    pub gateway_namespace: &'a str,
    /// Further namespaces that what serves the Gateway runs in.
    pub proxy_namespaces: &'a [String],
    /// The object that has the name of the project's namespace, ours or not.
    pub namespace: Option<&'a NamespaceSeen>,
    /// The NetworkPolicy named [`POLICY`] in that namespace, ours or not.
    pub policy: Option<&'a Seen>,
    /// The RoleBinding named [`ADMINISTRATORS`] in that namespace, ours or not.
    pub administrators: Option<&'a Seen>,
}

/// A namespace that has the name of a project's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceSeen {
    /// Its UID.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Value of `ankka.dev/adopt`: the project that may take it over.
    pub adopt: Option<String>,
    /// We have written labels of it: it was given to a project once, whatever its labels say now.
    pub given: bool,
    /// It is being deleted.
    pub terminating: bool,
}

impl NamespaceSeen {
    /// What of a namespace's metadata the decision needs.
    pub fn of(meta: &ObjectMeta) -> Self {
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            labels: meta.labels.clone().unwrap_or_default(),
            adopt: meta.annotations.as_ref().and_then(|annotations| annotations.get(labels::ADOPT)).cloned(),
            given: meta.managed_fields.iter().flatten().any(|entry| entry.manager.as_deref() == Some(labels::MANAGER)),
            terminating: meta.deletion_timestamp.is_some(),
        }
    }

    /// Whether it is the namespace of this project.
    pub fn is_of(&self, project: &str) -> bool {
        let label = |key: &str| self.labels.get(key).map(String::as_str);
        label(labels::MANAGED_BY) == Some(labels::MANAGED_BY_VALUE) && label(labels::PROJECT) == Some(project)
    }
}

/// What a project consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Its namespace.
    Namespace,
    /// Who may reach what runs there.
    NetworkPolicy,
    /// Who administers it: a RoleBinding.
    Administrators,
}

/// One object as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// The whole object, `apiVersion` and `kind` included.
    pub body: Value,
}

impl Object {
    /// The body of the PUT that makes the stored object what it should be. Labels and annotations of others stay, and of a
    /// namespace everything but its labels.
    pub fn merged(&self, live: &Value) -> Value {
        let mut body = merged_object(live, &self.body);
        if self.kind == Kind::Namespace
            && let Some(spec) = live.get("spec")
        {
            body["spec"] = spec.clone();
        }
        body
    }
}

/// One write. Each is safe to repeat after a crash at any point.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// POST: an object of that name already there is somebody else's.
    Create(Object),
    /// Read, then PUT [`Object::merged`] with the UID and resourceVersion that were read.
    Update {
        /// UID of the object that was seen.
        uid: String,
        /// What it should be.
        object: Object,
    },
}

/// What to do about one project, and what to say about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Writes, in order.
    pub actions: Vec<Action>,
    /// The status once they are done, without times: [`crate::project_with_times`] fills them in.
    pub status: AnkkaProjectStatus,
}

/// What stands in the way.
struct Obstacle {
    reason: &'static str,
    detail: String,
    /// It goes away by itself.
    passing: bool,
}

/// Decides about one project. Nothing is done about one that is being deleted: its namespace stays.
pub fn decide(facts: &Facts<'_>) -> Decision {
    let project = facts.project;
    if project.metadata.deletion_timestamp.is_some() {
        return Decision { actions: Vec::new(), status: project.status.clone().unwrap_or_default() };
    }
    let (actions, obstacle) = match judge(facts) {
        Ok(actions) => (actions, None),
        Err(obstacle) => (Vec::new(), Some(obstacle)),
    };
    Decision { actions, status: status(facts, obstacle.as_ref()) }
}

fn judge(facts: &Facts<'_>) -> Result<Vec<Action>, Obstacle> {
    let id = id(facts);
    project::validate(id, facts.prefix, Some(facts.own_namespace)).map_err(|problems| {
        let messages: Vec<_> = problems.into_iter().map(|problem| problem.message).collect();
        Obstacle { reason: "InvalidId", detail: messages.join("; "), passing: false }
    })?;
    project::validate_spec(&facts.project.spec).map_err(|problems| {
        let messages: Vec<_> = problems.into_iter().map(|problem| problem.message).collect();
        Obstacle { reason: "InvalidSpec", detail: messages.join("; "), passing: false }
    })?;
    let name = names::namespace(facts.prefix, id);
    let mut actions = Vec::new();
    match facts.namespace {
        None => actions.push(Action::Create(namespace(facts))),
        Some(seen) if seen.terminating => {
            return Err(Obstacle {
                reason: "NamespaceTerminating",
                detail: format!("namespace '{name}' is being deleted; it is made again once it is gone"),
                passing: true,
            });
        }
        Some(seen) if !seen.is_of(id) && !seen.given && seen.adopt.as_deref() != Some(id) => {
            return Err(Obstacle {
                reason: "NamespaceTaken",
                detail: format!(
                    "namespace '{name}' already exists and is not managed by ankka; to let the project have it: \
                     kubectl annotate namespace {name} {}={id}",
                    labels::ADOPT
                ),
                passing: false,
            });
        }
        Some(seen) => {
            let drifted = namespace_labels(id).iter().any(|(key, value)| seen.labels.get(key) != Some(value));
            if drifted {
                actions.push(Action::Update { uid: seen.uid.clone(), object: namespace(facts) });
            }
        }
    }
    actions.extend(inside(policy(facts), facts.policy, "networkpolicy", &name)?);
    // Without administrators a binding of ours stays and binds nobody: nothing of ours is deleted here.
    let bound = facts.administrators.is_some_and(|seen| seen.rendered.is_some());
    if bound || !facts.project.spec.administrators.is_empty() {
        actions.extend(inside(administrators(facts), facts.administrators, "rolebinding", &name)?);
    }
    Ok(actions)
}

/// What to do about one object in the project's namespace. Every one of ours carries its digest from the first write on.
fn inside(wanted: Object, seen: Option<&Seen>, word: &str, namespace: &str) -> Result<Option<Action>, Obstacle> {
    let rendered = wanted.body["metadata"]["annotations"][labels::RENDERED].as_str().unwrap_or_default();
    match seen {
        None => Ok(Some(Action::Create(wanted))),
        Some(seen) if seen.rendered.is_none() => Err(Obstacle {
            reason: "NameTaken",
            detail: format!(
                "a {word} named '{}' already exists in '{namespace}' and is not managed by ankka",
                wanted.name
            ),
            passing: false,
        }),
        Some(seen) if seen.terminating || seen.is_as_written(rendered, &wanted.body) => Ok(None),
        Some(seen) => Ok(Some(Action::Update { uid: seen.uid.clone(), object: wanted })),
    }
}

fn id<'a>(facts: &Facts<'a>) -> &'a str {
    facts.project.metadata.name.as_deref().unwrap_or_default()
}

/// The namespace has no owner reference: it outlives its project, with all that is in it. An image may run as root, so
/// Pod Security enforces `baseline` and only warns of what `restricted` would refuse.
fn namespace_labels(project: &str) -> BTreeMap<String, String> {
    [
        (labels::MANAGED_BY, labels::MANAGED_BY_VALUE),
        (labels::PROJECT, project),
        ("pod-security.kubernetes.io/enforce", "baseline"),
        ("pod-security.kubernetes.io/warn", "restricted"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

fn namespace(facts: &Facts<'_>) -> Object {
    let name = names::namespace(facts.prefix, id(facts));
    let body = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": name, "labels": namespace_labels(id(facts)) },
    });
    Object { kind: Kind::Namespace, name, body }
}

/// Pods of the project and the gateway may reach the project's pods, and nobody else; what the pods themselves reach is
/// not limited. No owner reference either: without its policy a namespace would be open to all.
fn policy(facts: &Facts<'_>) -> Object {
    let id = id(facts);
    let own = NetworkPolicyPeer { pod_selector: Some(LabelSelector::default()), ..Default::default() };
    let others = facts.proxy_namespaces.iter().map(String::as_str).filter(|name| *name != facts.gateway_namespace);
    let gateway = iter::once(facts.gateway_namespace).chain(others).map(everything_in);
    let peers = iter::once(own).chain(gateway).collect();
    let object = NetworkPolicy {
        metadata: ObjectMeta {
            name: Some(POLICY.to_owned()),
            namespace: Some(names::namespace(facts.prefix, id)),
            labels: Some(identity(id)),
            ..Default::default()
        },
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector::default()),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ingress: Some(vec![NetworkPolicyIngressRule { from: Some(peers), ports: None }]),
            egress: None,
        }),
    };
    stamped(Kind::NetworkPolicy, POLICY, object)
}

/// All pods of a namespace.
fn everything_in(namespace: &str) -> NetworkPolicyPeer {
    let labels = [("kubernetes.io/metadata.name".to_owned(), namespace.to_owned())];
    NetworkPolicyPeer {
        namespace_selector: Some(LabelSelector { match_labels: Some(labels.into()), ..Default::default() }),
        ..Default::default()
    }
}

/// Binds those whom the project names, and nobody else: other bindings in the namespace are whoever made them's. No owner
/// reference: whoever administers a namespace does so as long as it is there.
fn administrators(facts: &Facts<'_>) -> Object {
    let id = id(facts);
    let group = |kind: &str| (kind != "ServiceAccount").then(|| "rbac.authorization.k8s.io".to_owned());
    let administrators = &facts.project.spec.administrators;
    let subjects = administrators.iter().map(|administrator| Subject {
        api_group: group(&administrator.kind),
        kind: administrator.kind.clone(),
        name: administrator.name.clone(),
        namespace: administrator.namespace.clone(),
    });
    let object = RoleBinding {
        metadata: ObjectMeta {
            name: Some(ADMINISTRATORS.to_owned()),
            namespace: Some(names::namespace(facts.prefix, id)),
            labels: Some(identity(id)),
            ..Default::default()
        },
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "ClusterRole".to_owned(),
            name: ROLE.to_owned(),
        },
        // An empty list is not stored: asked for, it would be missing at every pass.
        subjects: (!administrators.is_empty()).then(|| subjects.collect()),
    };
    stamped(Kind::Administrators, ADMINISTRATORS, object)
}

/// The labels of what is in a project's namespace and no service's.
fn identity(project: &str) -> BTreeMap<String, String> {
    [(labels::MANAGED_BY, labels::MANAGED_BY_VALUE), (labels::PROJECT, project)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

fn stamped(kind: Kind, name: &str, object: impl Serialize) -> Object {
    let mut body = serde_json::to_value(object).expect("Kubernetes objects have string keys only");
    stamp(&mut body);
    Object { kind, name: name.to_owned(), body }
}

fn status(facts: &Facts<'_>, obstacle: Option<&Obstacle>) -> AnkkaProjectStatus {
    let generation = facts.project.metadata.generation;
    let detail = obstacle.map(|obstacle| obstacle.detail.clone());
    let (ready, reason, also) = match obstacle {
        None => ("True", "Ready", None),
        Some(obstacle) if obstacle.passing => ("Unknown", obstacle.reason, Some("Reconciling")),
        Some(obstacle) => ("False", obstacle.reason, Some("Stalled")),
    };
    let condition = |type_: &str, status: &str| Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: detail.clone().unwrap_or_default(),
        observed_generation: generation,
        last_transition_time: String::new(),
    };
    let mut conditions = vec![condition("Ready", ready)];
    conditions.extend(also.map(|type_| condition(type_, "True")));
    AnkkaProjectStatus {
        observed_generation: generation,
        namespace: (reason != "InvalidId").then(|| names::namespace(facts.prefix, id(facts))),
        detail,
        conditions,
    }
}
