//! What others do to the service's objects with kubectl.

use ankka_desired::ChildKind;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::step::Meddling;

const KUBECTL: &str = "kubectl-edit";

/// A prefix of what others may add, and of nothing of ours.
pub(super) const THEIRS: &str = "other.io/";
/// What `kubectl rollout restart` writes.
pub(super) const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";

impl Cluster {
    /// Somebody does it, where the object is there and not a stranger's.
    pub(super) fn meddle(&mut self, meddling: Meddling) {
        let deployment = ChildKind::Deployment;
        match meddling {
            Meddling::Scale(replicas) => self.edit(deployment, |body| body["spec"]["replicas"] = json!(replicas)),
            Meddling::Image => self.edit(deployment, |body| {
                body["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example.com/other:1");
            }),
            Meddling::Variable => self.edit(deployment, |body| {
                let env = body.pointer_mut("/spec/template/spec/containers/0/env").and_then(Value::as_array_mut);
                let extra = json!({ "name": "EXTRA", "value": "1" });
                env.filter(|env| !env.contains(&extra)).into_iter().for_each(|env| env.push(extra.clone()));
            }),
            Meddling::RolloutRestart => self.edit(deployment, |body| {
                body["spec"]["template"]["metadata"]["annotations"][RESTARTED] = json!("now");
            }),
            Meddling::Label(kind) => {
                self.edit(kind, |body| body["metadata"]["labels"]["ankka.dev/service"] = json!("other"));
            }
            Meddling::OwnLabel(kind) => {
                self.edit(kind, |body| body["metadata"]["labels"][format!("{THEIRS}seen")] = json!("1"));
            }
            Meddling::Content => {
                self.edit(ChildKind::ConfigMap, |body| body["data"]["more"] = json!("x"));
                self.edit(ChildKind::Role, |body| body["rules"][0]["verbs"] = json!(["*"]));
                self.edit(ChildKind::Service, |body| body["spec"]["selector"] = json!({ "a": "b" }));
                self.edit(ChildKind::HttpRoute, |body| body["spec"]["hostnames"] = json!(["other.example.com"]));
                self.edit(ChildKind::PodDisruptionBudget, |body| body["spec"]["maxUnavailable"] = json!(3));
            }
            Meddling::Disown(kind) => self.edit(kind, |body| {
                body["metadata"].as_object_mut().expect("metadata").remove("ownerReferences");
            }),
            Meddling::Delete(kind) => {
                if !self.strangers.contains_key(&kind) {
                    self.api.remove(kind);
                }
            }
            Meddling::Occupy(kind) => self.occupy(kind),
            Meddling::Vacate => self.vacate(),
            Meddling::Login(generation) => self.edit(ChildKind::Database, |body| {
                body["spec"] = json!({ "credentialGeneration": generation });
            }),
            Meddling::LoseSecret => self.databases.secret = None,
        }
    }

    fn edit(&mut self, kind: ChildKind, change: impl FnOnce(&mut Value)) {
        if self.api.get(kind).is_some() && !self.strangers.contains_key(&kind) {
            self.api.edit(KUBECTL, kind, change);
        }
    }

    /// A stranger's object of that name. An AnkkaDatabase has no owner: whose it is cannot be told, so nobody makes one.
    fn occupy(&mut self, kind: ChildKind) {
        if kind == ChildKind::Database || self.api.get(kind).is_some() {
            return;
        }
        let body = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": { "name": kind.name_for("cart") },
            "spec": { "theirs": true },
        });
        let body = match kind {
            // What is read of these two has a form.
            ChildKind::Deployment | ChildKind::HttpRoute => return,
            _ => body,
        };
        self.api.create(KUBECTL, kind, body).expect("there is none");
        self.strangers.extend(self.api.get(kind).map(|body| (kind, body)));
    }
}
