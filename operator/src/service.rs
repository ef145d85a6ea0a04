//! One pass over one service: observe, decide, act, report.

use std::sync::Arc;

use ankka_crds::{AnkkaService, AnkkaServiceStatus, resources::Condition};
use ankka_desired::{Action, ChildKind, Facts, Settings, decide};
use kube::{Resource, core::DynamicObject};

use crate::{
    act::{Actor, Outcome},
    cache::{Cache, ServiceId, Snapshot, Unreadable},
    error::Error,
    passes::{ROUNDS, SOON},
    queue::Next,
    report::{Reported, Statuses},
    wire::Target,
};

/// Passes over services.
#[derive(Clone)]
pub struct Services {
    /// Settings of the installation.
    pub settings: Arc<Settings>,
    /// What is observed.
    pub cache: Arc<Cache>,
    /// Acts.
    pub actor: Actor,
    /// Reports.
    pub statuses: Statuses,
}

impl Services {
    /// Makes one service what it should be, as far as that can be done now, and says how it is.
    pub async fn pass(&self, id: &ServiceId) -> Result<Next, Error> {
        if let Some(known) = self.cache.service(id) {
            for kind in known.probed {
                self.actor.probe(id, kind).await?;
            }
        }
        for _ in 0..ROUNDS {
            let Some(known) = self.cache.service(id) else { return Ok(Next::Forget) };
            let service = match known.service.decode() {
                Ok(service) => service,
                Err(unreadable) => return self.unreadable(id, &unreadable).await,
            };
            if service.metadata.deletion_timestamp.is_some() {
                // The garbage collector takes its children; what is being torn down is not built up again.
                return Ok(Next::Resync);
            }
            let decision = self.decide(&known, &service);
            let changes_instances = decision.actions.iter().any(is_change_of_instances);
            match self.actor.all(id, decision.actions).await {
                Ok(Outcome::Done) => {
                    let status = if changes_instances { self.after(id, &service) } else { None };
                    return self.report(id, &service, status.unwrap_or(decision.status), &known).await;
                }
                Ok(Outcome::Judge) => {}
                Err(error) => {
                    if let Some(refusal) = error.refusal() {
                        let status = refused(decision.status, refusal);
                        self.statuses.service(id, &service, status, known.held).await?;
                    }
                    return Err(error);
                }
            }
        }
        Err(Error::Unsteady(format!("service {} in {}", id.name, id.namespace)))
    }

    /// The status by what the answers have said; none when they ask for more to be done. A Deployment of which a label was
    /// put right runs as before, and no watch would tell that there was no rollout.
    fn after(&self, id: &ServiceId, service: &AnkkaService) -> Option<AnkkaServiceStatus> {
        let decision = self.decide(&self.cache.service(id)?, service);
        decision.actions.is_empty().then_some(decision.status)
    }

    fn decide(&self, known: &Snapshot, service: &AnkkaService) -> ankka_desired::Decision {
        decide(&Facts {
            service,
            project: known.project.as_ref(),
            settings: &self.settings,
            children: &known.children,
            workload: known.workload.as_ref(),
            pods: &known.pods,
        })
    }

    async fn report(
        &self,
        id: &ServiceId,
        service: &AnkkaService,
        status: AnkkaServiceStatus,
        known: &Snapshot,
    ) -> Result<Next, Error> {
        Ok(match self.statuses.service(id, service, status, known.held).await? {
            Reported::Held(left) => Next::After(left),
            Reported::Judge => Next::After(SOON),
            // No watch tells when a stranger's object goes away.
            Reported::Done if !known.probed.is_empty() => Next::Retry,
            Reported::Done => Next::Resync,
        })
    }

    /// A service that cannot be decoded: nothing is done, and its status says why, when that can be written at all.
    async fn unreadable(&self, id: &ServiceId, unreadable: &Unreadable) -> Result<Next, Error> {
        if unreadable.terminating {
            return Ok(Next::Resync);
        }
        let target = Target {
            collection: &AnkkaService::url_path(&(), Some(&id.namespace)),
            kind: "AnkkaService",
            name: &id.name,
            namespace: Some(&id.namespace),
        };
        let Some(stored) = self.statuses.wire.get::<DynamicObject>(target).await? else { return Ok(Next::Forget) };
        let mut service = AnkkaService::new(&id.name, ankka_crds::AnkkaServiceSpec::default());
        service.status = serde_json::from_value(stored.data["status"].clone()).ok();
        service.metadata = stored.metadata;
        let status = undecodable(&service, &unreadable.error);
        match self.statuses.service(id, &service, status, None).await? {
            Reported::Done => Ok(Next::Resync),
            Reported::Held(_) | Reported::Judge => Ok(Next::Retry),
        }
    }
}

fn is_change_of_instances(action: &Action) -> bool {
    matches!(action, Action::Update { child, .. } if child.kind == ChildKind::Deployment)
}

/// The status of a service for which the API server refused a write.
fn refused(mut status: AnkkaServiceStatus, refusal: String) -> AnkkaServiceStatus {
    for condition in &mut status.conditions {
        if matches!(condition.type_.as_str(), "Ready" | "Reconciling" | "Stalled") {
            "WriteRefused".clone_into(&mut condition.reason);
            condition.message.clone_from(&refusal);
        }
    }
    status.detail = Some(refusal);
    status
}

/// The status of a service that cannot be decoded.
fn undecodable(service: &AnkkaService, error: &str) -> AnkkaServiceStatus {
    let detail = format!("the stored service cannot be read ({error}); apply its descriptor again");
    let generation = service.metadata.generation;
    let condition = |type_: &str, status: &str| Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: "Unreadable".to_owned(),
        message: detail.clone(),
        observed_generation: generation,
        last_transition_time: String::new(),
    };
    AnkkaServiceStatus {
        observed_generation: generation,
        lifecycle: Some("Failed".to_owned()),
        conditions: vec![condition("Ready", "False"), condition("Stalled", "True")],
        detail: Some(detail),
        ..service.status.clone().unwrap_or_default()
    }
}
