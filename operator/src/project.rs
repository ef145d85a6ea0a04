//! One pass over one project: its namespace, its NetworkPolicy, its administrators, its status.

use std::{sync::Arc, time::Duration};

use ankka_crds::{AnkkaProject, names, resources::AnkkaProjectStatus};
use ankka_desired::{
    Seen, Settings,
    project::{ADMINISTRATORS, Action, Decision, Facts, Kind, NamespaceSeen, Object, POLICY, decide},
    project_with_times,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::{
    act::{Answer, Outcome, conditional, metadata_of, trust_unchanged},
    cache::{Cache, Key, ProjectSnapshot, Source, version_of},
    error::Error,
    passes::{ROUNDS, SOON},
    queue::{Next, Queue},
    repairs::Repairs,
    report::{Statuses, now},
    wire::{Target, Wire},
};

/// Why what is changed again each time is not put right at this moment.
const CONTESTED: &str = "something else changes the project's namespace, its networkpolicy or its administrators each time it \
                         is put right, so that is done less and less often; see who with: kubectl get \
                         namespace,networkpolicy,rolebinding \
                         -o yaml --show-managed-fields";

/// Passes over projects.
#[derive(Clone)]
pub struct Projects {
    /// Settings of the installation.
    pub settings: Arc<Settings>,
    /// Namespaces beside the Gateway's that what serves it runs in.
    pub proxy_namespaces: Vec<String>,
    /// What is observed.
    pub cache: Arc<Cache>,
    /// Where passes over its services are asked for.
    pub queue: Arc<Queue<Key>>,
    /// Sends the requests.
    pub wire: Wire,
    /// Reports.
    pub statuses: Statuses,
    /// Keeps those that somebody undoes each time apart.
    pub repairs: Arc<Repairs>,
}

impl Projects {
    /// Makes one project what it should be, as far as that can be done now, and says how it is.
    pub async fn pass(&self, id: &str) -> Result<Next, Error> {
        if let Some(known) = self.cache.project(id) {
            for kind in known.probed {
                self.probe(&Place::new(&self.settings.prefix, id, kind)).await?;
            }
        }
        for _ in 0..ROUNDS {
            let Some(known) = self.cache.project(id) else { return Ok(Next::Forget) };
            if known.project.metadata.deletion_timestamp.is_some() {
                return Ok(Next::Resync);
            }
            let decision = self.decide(&known);
            // What is written although this generation has been reported on is being put right.
            let metadata = &known.project.metadata;
            let observed = known.project.status.as_ref().and_then(|status| status.observed_generation);
            let repair =
                (!decision.actions.is_empty() && observed == metadata.generation).then(|| Key::Project(id.into()));
            let left = repair.as_ref().map_or(Duration::ZERO, |key| self.repairs.wait(key));
            if !left.is_zero() {
                let status = not_ready(decision.status, "Contested", CONTESTED.to_owned());
                return Ok(match self.report(&known, status).await? {
                    Next::Resync | Next::Retry => Next::After(left),
                    sooner => sooner,
                });
            }
            match self.all(id, decision.actions).await {
                Ok(Outcome::Done) => {
                    if let Some(key) = repair {
                        self.repairs.made(key);
                    }
                    return self.report(&known, decision.status).await;
                }
                Ok(Outcome::Judge) => {}
                Err(error) => {
                    if let Some(refusal) = error.refusal() {
                        self.report(&known, not_ready(decision.status, "WriteRefused", refusal)).await?;
                    }
                    return Err(error);
                }
            }
        }
        Err(Error::Unsteady(format!("project {id}")))
    }

    fn decide(&self, known: &ProjectSnapshot) -> Decision {
        decide(&Facts {
            project: &known.project,
            prefix: &self.settings.prefix,
            own_namespace: &self.settings.own_namespace,
            gateway_namespace: &self.settings.gateway.namespace,
            proxy_namespaces: &self.proxy_namespaces,
            namespace: known.namespace.as_ref(),
            policy: known.policy.as_ref(),
            administrators: known.administrators.as_ref(),
        })
    }

    /// In order: the namespace comes before what is in it.
    async fn all(&self, id: &str, actions: Vec<Action>) -> Result<Outcome, Error> {
        for action in actions {
            let outcome = match action {
                Action::Create(object) => {
                    self.create(&Place::new(&self.settings.prefix, id, object.kind), &object).await?
                }
                Action::Update { uid, object } => {
                    self.change(&Place::new(&self.settings.prefix, id, object.kind), &uid, &object).await?
                }
            };
            if outcome == Outcome::Judge {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Done)
    }

    async fn create(&self, place: &Place, object: &Object) -> Result<Outcome, Error> {
        match self.wire.create::<Answer>(place.target(), &object.body).await {
            Ok(answer) => {
                self.found(place, &answer.metadata, Source::Answered);
                Ok(Outcome::Done)
            }
            Err(error) if error.code() == Some(409) => {
                self.probe(place).await?;
                Ok(Outcome::Judge)
            }
            Err(error) => Err(error),
        }
    }

    async fn change(&self, place: &Place, uid: &str, object: &Object) -> Result<Outcome, Error> {
        let Some(live) = self.wire.get::<Value>(place.target()).await? else {
            self.gone(place);
            return Ok(Outcome::Judge);
        };
        let metadata = metadata_of(&live);
        if metadata.uid.as_deref() != Some(uid) || metadata.deletion_timestamp.is_some() {
            self.found(place, &metadata, Source::Answered);
            return Ok(Outcome::Judge);
        }
        let body = conditional(object.merged(&live), metadata);
        match self.wire.update::<Answer>(place.target(), &body).await {
            Ok(mut answer) => {
                trust_unchanged(&mut answer.metadata, &body);
                self.found(place, &answer.metadata, Source::Answered);
                Ok(Outcome::Done)
            }
            Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(Outcome::Judge),
            Err(error) => Err(error),
        }
    }

    /// Looks at an object that no watch tells about, because it has no label of ours.
    async fn probe(&self, place: &Place) -> Result<(), Error> {
        match self.wire.get::<Answer>(place.target()).await? {
            Some(found) => self.found(place, &found.metadata, Source::Probed),
            None => self.gone(place),
        }
        Ok(())
    }

    fn found(&self, place: &Place, metadata: &ObjectMeta, source: Source) {
        let version = version_of(metadata);
        match place.kind {
            Kind::Namespace => {
                if self.cache.put_namespace(&place.namespace, version, NamespaceSeen::of(metadata), source) {
                    self.tell_services(&place.namespace);
                }
            }
            Kind::NetworkPolicy => {
                self.cache.put_policy(&place.namespace, version, Seen::of(metadata), source);
            }
            Kind::Administrators => {
                self.cache.put_administrators(&place.namespace, version, Seen::of(metadata), source);
            }
        }
    }

    fn gone(&self, place: &Place) {
        match place.kind {
            Kind::Namespace => {
                if self.cache.remove_namespace(&place.namespace, u64::MAX) {
                    self.tell_services(&place.namespace);
                }
            }
            Kind::NetworkPolicy => {
                self.cache.remove_policy(&place.namespace, u64::MAX);
            }
            Kind::Administrators => {
                self.cache.remove_administrators(&place.namespace, u64::MAX);
            }
        }
    }

    /// The watch has nothing new to say about what an answer has said already, and services depend on their namespace.
    fn tell_services(&self, namespace: &str) {
        for key in self.cache.keys_in(namespace) {
            if matches!(key, Key::Service(_)) {
                self.queue.add(key);
            }
        }
    }

    async fn report(&self, known: &ProjectSnapshot, status: AnkkaProjectStatus) -> Result<Next, Error> {
        let project = &known.project;
        if let Some(status) = project_with_times(project.status.as_ref(), status, &now()) {
            let Some(mut answer) = self.statuses.put::<_, _, AnkkaProject>(&**project, &status).await? else {
                return Ok(Next::After(SOON));
            };
            answer.metadata.managed_fields = None;
            self.cache.put_project(version_of(&answer.metadata), answer, Source::Answered);
        }
        Ok(if known.probed.is_empty() { Next::Resync } else { Next::Retry })
    }
}

/// Where one of a project's objects is.
struct Place {
    kind: Kind,
    namespace: String,
    collection: String,
}

impl Place {
    fn new(prefix: &str, project: &str, kind: Kind) -> Self {
        let namespace = names::namespace(prefix, project);
        let collection = match kind {
            Kind::Namespace => "/api/v1/namespaces".to_owned(),
            Kind::NetworkPolicy => format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"),
            Kind::Administrators => format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"),
        };
        Self { kind, namespace, collection }
    }

    fn target(&self) -> Target<'_> {
        let (kind, name, namespace) = match self.kind {
            Kind::Namespace => ("Namespace", self.namespace.as_str(), None),
            Kind::NetworkPolicy => ("NetworkPolicy", POLICY, Some(self.namespace.as_str())),
            Kind::Administrators => ("RoleBinding", ADMINISTRATORS, Some(self.namespace.as_str())),
        };
        Target { collection: &self.collection, kind, name, namespace }
    }
}

/// The status of a project that is not what it should be, for a reason that the decision does not know of.
fn not_ready(mut status: AnkkaProjectStatus, reason: &str, why: String) -> AnkkaProjectStatus {
    for condition in &mut status.conditions {
        if condition.type_ == "Ready" {
            "False".clone_into(&mut condition.status);
        }
        reason.clone_into(&mut condition.reason);
        condition.message.clone_from(&why);
    }
    status.detail = Some(why);
    status
}
