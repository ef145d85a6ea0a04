//! One pass over one service: observe, decide, act, report.

use std::{sync::Arc, time::Duration};

use ankka_crds::{AnkkaService, AnkkaServiceStatus, resources::Condition};
use ankka_desired::{Action, ChildKind, Decision, Facts, RouteFacts, Settings, decide, revisions::Recording};
use ankka_telemetry::SPANS;
use jiff::Timestamp;
use kube::{Resource, core::DynamicObject};

use tracing::Instrument;

use crate::{
    act::{Actor, Outcome},
    cache::{Cache, Key, ServiceId, Snapshot, Unreadable},
    error::Error,
    passes::{ROUNDS, SOON},
    queue::Next,
    repairs::Repairs,
    report::{Reported, Statuses},
    revisions::Recorder,
    upgrades::{Turn, Upgrades},
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
    /// Keeps descriptors.
    pub recorder: Recorder,
    /// Reports.
    pub statuses: Statuses,
    /// Keeps those that somebody undoes each time apart.
    pub repairs: Arc<Repairs>,
    /// Keeps those apart that the installation alone changes.
    pub upgrades: Arc<Upgrades>,
}

impl Services {
    /// Makes one service what it should be, as far as that can be done now, and says how it is.
    pub async fn pass(&self, id: &ServiceId) -> Result<Next, Error> {
        self.upgrades.looked_at(id);
        if let Some(known) = self.cache.service(id) {
            for kind in known.probed {
                let observe = tracing::info_span!(target: SPANS, "observe");
                self.actor.probe(id, kind).instrument(observe).await?;
            }
            for name in known.probed_revisions {
                self.recorder.probe(id, &name).await?;
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
            let (decision, _turn) = self.decide_in_turn(id, &known, &service);
            let review = decision.review;
            // What is written although this generation has been reported on is being put right.
            let observed = service.status.as_ref().and_then(|status| status.observed_generation);
            let repair = (!decision.actions.is_empty() && observed == service.metadata.generation)
                .then(|| Key::Service(id.clone()));
            let left = repair.as_ref().map_or(Duration::ZERO, |key| self.repairs.wait(key));
            if !left.is_zero() {
                let status = explained(decision.status, "Contested", contested(id, &decision.actions));
                return Ok(match self.report(id, &service, status, &known).await? {
                    Next::Resync | Next::Retry => Next::After(left),
                    sooner => sooner,
                });
            }
            let reported_on = decision.actions.iter().any(is_reported_on);
            let routes = decision.actions.iter().any(|action| action.kind() == ChildKind::HttpRoute);
            let actions = decision.actions.len();
            let act = tracing::info_span!(target: SPANS, "act", actions);
            let acted = self.actor.all(id, decision.actions).instrument(act).await;
            if routes {
                // No watch tells what is known already from the answers to our own writes.
                self.cache.rivals(id).into_iter().for_each(|rival| self.statuses.queue.add(rival));
            }
            match acted {
                Ok(Outcome::Done) => {
                    if let Some(key) = repair {
                        self.repairs.made(key);
                    }
                    let status = if reported_on { self.after(id, &service) } else { None };
                    let next = self.report(id, &service, status.unwrap_or(decision.status), &known).await?;
                    let repairs = observed == service.metadata.generation;
                    let next = self.keep(id, decision.recordings, repairs, next).await?;
                    return Ok(no_later(next, review));
                }
                Ok(Outcome::Judge) => {}
                Err(error) => {
                    if let Some(refusal) = error.refusal() {
                        let status = explained(decision.status, "WriteRefused", refusal);
                        self.statuses.service(id, &service, status, known.held).await?;
                    }
                    return Err(error);
                }
            }
        }
        Err(Error::Unsteady(format!("service {} in {}", id.name, id.namespace)))
    }

    /// Keeps the descriptor, once the service has been seen to: its history is nothing that instances wait for. `repairs`
    /// says that this generation has been reported on before. While the word about it is held back, so is this.
    async fn keep(&self, id: &ServiceId, wanted: Vec<Recording>, repairs: bool, next: Next) -> Result<Next, Error> {
        if wanted.is_empty() || matches!(next, Next::After(_)) {
            return Ok(next);
        }
        let key = Key::Service(id.clone());
        let left = if repairs { self.repairs.wait(&key) } else { Duration::ZERO };
        if !left.is_zero() {
            return Ok(Next::After(left));
        }
        let outcome = self.recorder.all(id, wanted).await?;
        if repairs {
            self.repairs.made(key);
        }
        Ok(if outcome == Outcome::Judge { Next::After(SOON) } else { next })
    }

    /// The status by what the answers have said; none when they ask for more to be done. A Deployment of which a label was
    /// put right runs as before, and no watch would tell that there was no rollout.
    fn after(&self, id: &ServiceId, service: &AnkkaService) -> Option<AnkkaServiceStatus> {
        let decision = decide_by(&self.cache.service(id)?, service, &self.settings);
        decision.actions.is_empty().then_some(decision.status)
    }

    /// What to do now, and the turn to be upgraded if that is part of it. A service whose turn has not come goes on with
    /// the sidecar that it has.
    fn decide_in_turn<'a>(
        &'a self,
        id: &'a ServiceId,
        known: &Snapshot,
        service: &AnkkaService,
    ) -> (Decision, Option<Turn<'a>>) {
        let decision = decide_by(known, service, &self.settings);
        let Some(before) = &decision.upgrade else { return (decision, None) };
        let sidecar = self.settings.sidecar_image.as_deref().unwrap_or_default();
        if let Some(turn) = self.upgrades.begin(id, sidecar) {
            return (decision, Some(turn));
        }
        let settings = Settings { sidecar_image: Some(before.clone()), ..Settings::clone(&self.settings) };
        (decide_by(known, service, &settings), None)
    }

    async fn report(
        &self,
        id: &ServiceId,
        service: &AnkkaService,
        status: AnkkaServiceStatus,
        known: &Snapshot,
    ) -> Result<Next, Error> {
        let report = tracing::info_span!(target: SPANS, "report");
        Ok(match self.statuses.service(id, service, status, known.held).instrument(report).await? {
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

/// What to do by these settings.
fn decide_by(known: &Snapshot, service: &AnkkaService, settings: &Settings) -> Decision {
    let _decide = tracing::info_span!(target: SPANS, "decide").entered();
    decide(&Facts {
        service,
        project: known.project.as_ref(),
        settings,
        children: &known.children,
        workload: known.workload.as_ref(),
        database: known.database.as_ref(),
        pods: &known.pods,
        revisions: &known.revisions,
        now: Timestamp::now(),
        route: RouteFacts { served: known.routes_served, state: known.route.as_ref(), rivals: &known.rivals },
    })
}

/// What is next, and no later than when there may be another thing to say.
fn no_later(next: Next, review: Option<Timestamp>) -> Next {
    let Some(left) = review.map(|at| Timestamp::now().duration_until(at)) else { return next };
    let left = Duration::try_from(left).unwrap_or_default() + SOON;
    match next {
        Next::Resync => Next::After(left),
        Next::After(sooner) => Next::After(sooner.min(left)),
        other => other,
    }
}

/// Whether the answer to the write says how the object is doing.
fn is_reported_on(action: &Action) -> bool {
    matches!(action, Action::Update { child, .. } if matches!(child.kind, ChildKind::Deployment | ChildKind::HttpRoute))
}

/// Why what is changed again each time is not put right at this moment.
fn contested(id: &ServiceId, actions: &[Action]) -> String {
    let kinds: Vec<_> = actions.iter().map(|action| action.kind().word()).collect();
    let (kinds, namespace) = (kinds.join(", "), &id.namespace);
    let example = actions.first().map_or_else(String::new, |action| {
        let (kind, name) = (action.kind(), action.kind().name_for(&id.name));
        format!("kubectl get {} {name} -n {namespace} -o yaml --show-managed-fields", kind.word())
    });
    format!(
        "something else changes the service's {kinds} each time it is put right, so that is done less and less often; see who: {example}"
    )
}

/// The status of a service that is not what it should be, for a reason that the decision does not know of.
fn explained(mut status: AnkkaServiceStatus, reason: &str, why: String) -> AnkkaServiceStatus {
    for condition in &mut status.conditions {
        if matches!(condition.type_.as_str(), "Ready" | "Reconciling" | "Stalled") {
            reason.clone_into(&mut condition.reason);
            condition.message.clone_from(&why);
        }
    }
    status.detail = Some(why);
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
