//! The decision about a project: its namespace, and who may reach what runs there.

use std::collections::BTreeMap;

use ankka_crds::resources::{AnkkaProjectStatus, Condition};
use ankka_crds::{AnkkaProject, labels, names, project};
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicySpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde_json::{Value, json};

use crate::Seen;
use crate::child::stamp;
use crate::merge::merged_object;

/// Name of the NetworkPolicy of every project's namespace.
pub const POLICY: &str = "ankka-project";

/// Everything one decision rests on.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The project as stored.
    pub project: &'a AnkkaProject,
    /// Prefix of project namespaces.
    pub prefix: &'a str,
    /// The namespace the platform itself runs in.
    pub own_namespace: &'a str,
    /// The namespace the gateway runs in.
    pub gateway_namespace: &'a str,
    /// The object that has the name of the project's namespace, ours or not.
    pub namespace: Option<&'a NamespaceSeen>,
    /// The NetworkPolicy named [`POLICY`] in that namespace, ours or not.
    pub policy: Option<&'a Seen>,
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
    let (policy, rendered) = policy(facts);
    match facts.policy {
        None => actions.push(Action::Create(policy)),
        // Every policy of ours carries its digest from the first write on.
        Some(seen) if seen.rendered.is_none() => {
            return Err(Obstacle {
                reason: "NameTaken",
                detail: format!(
                    "a networkpolicy named '{POLICY}' already exists in '{name}' and is not managed by ankka"
                ),
                passing: false,
            });
        }
        Some(seen) if seen.terminating || seen.is_as_written(&rendered, &policy.body) => {}
        Some(seen) => actions.push(Action::Update { uid: seen.uid.clone(), object: policy }),
    }
    Ok(actions)
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
fn policy(facts: &Facts<'_>) -> (Object, String) {
    let id = id(facts);
    let gateway = [("kubernetes.io/metadata.name".to_owned(), facts.gateway_namespace.to_owned())];
    let peers = vec![
        NetworkPolicyPeer { pod_selector: Some(LabelSelector::default()), ..Default::default() },
        NetworkPolicyPeer {
            namespace_selector: Some(LabelSelector { match_labels: Some(gateway.into()), ..Default::default() }),
            ..Default::default()
        },
    ];
    let object = NetworkPolicy {
        metadata: ObjectMeta {
            name: Some(POLICY.to_owned()),
            namespace: Some(names::namespace(facts.prefix, id)),
            labels: Some(
                [
                    (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_VALUE.to_owned()),
                    (labels::PROJECT.to_owned(), id.to_owned()),
                ]
                .into(),
            ),
            ..Default::default()
        },
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector::default()),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ingress: Some(vec![NetworkPolicyIngressRule { from: Some(peers), ports: None }]),
            egress: None,
        }),
    };
    let mut body = serde_json::to_value(object).expect("Kubernetes objects have string keys only");
    let rendered = stamp(&mut body);
    let object = Object { kind: Kind::NetworkPolicy, name: POLICY.to_owned(), body };
    (object, rendered)
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
