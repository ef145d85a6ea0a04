//! How a Deployment and its pods are doing, which word that is, and what stands in their way.

use ankka_crds::names::SIDECAR_CONTAINER;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::jiff::Timestamp;

use crate::status::{Lifecycle, Reason, Verdict};
use crate::{Cause, Facts, PodState, Problem, WorkloadState, database};

impl WorkloadState {
    /// What of a Deployment the status needs.
    pub fn of(deployment: &Deployment) -> Self {
        let status = deployment.status.clone().unwrap_or_default();
        let spec = deployment.spec.as_ref();
        let condition = |type_: &str| status.conditions.iter().flatten().find(|condition| condition.type_ == type_);
        let progressing = condition("Progressing");
        let reason = |wanted: &str| progressing.filter(|condition| condition.reason.as_deref() == Some(wanted));
        let failure = condition("ReplicaFailure").filter(|condition| condition.status == "True");
        Self {
            generation: deployment.metadata.generation.unwrap_or_default(),
            observed_generation: status.observed_generation.unwrap_or_default(),
            // The API server stores 1 where nothing was said.
            desired: spec.and_then(|spec| spec.replicas).unwrap_or(1),
            total: status.replicas.unwrap_or_default(),
            updated: status.updated_replicas.unwrap_or_default(),
            ready: status.ready_replicas.unwrap_or_default(),
            complete: reason("NewReplicaSetAvailable").is_some(),
            deadline_exceeded: reason("ProgressDeadlineExceeded")
                .map(|condition| condition.message.clone().unwrap_or_default()),
            replica_failure: failure.map(|condition| condition.message.clone().unwrap_or_default()),
            sidecar: sidecar(deployment),
        }
    }

    /// Whether instances are being replaced. A rollout that made no progress within its deadline counts as over: it has
    /// failed.
    pub fn is_rolling(&self) -> bool {
        let observed = self.observed_generation >= self.generation;
        let complete = self.complete && self.updated >= self.desired && self.total <= self.updated;
        !(observed && (complete || self.deadline_exceeded.is_some()))
    }
}

fn sidecar(deployment: &Deployment) -> Option<String> {
    let containers = &deployment.spec.as_ref()?.template.spec.as_ref()?.containers;
    containers.iter().find(|container| container.name == SIDECAR_CONTAINER)?.image.clone()
}

/// The documented words, first match wins.
///
/// What a Deployment says about an older generation of itself says nothing about this one, so that comes first. A rollout
/// that a quota holds up completes by itself once there is room: it is in progress however long it takes.
pub(crate) fn verdict(facts: &Facts<'_>, instances: i32) -> Verdict {
    let told = |problem: Option<Problem>| problem.map(|problem| problem.told(facts.place()));
    let in_progress = |problem| Verdict::new(Lifecycle::UpdateInProgress, Reason::UpdateInProgress, told(problem));
    let Some(workload) = facts.workload.filter(|workload| workload.observed_generation >= workload.generation) else {
        return in_progress(None);
    };

    let obstacle = obstacle(facts, workload);
    let silent = || newest(facts.pods).into_iter().find(|pod| pod.silent_at().is_some_and(|at| at <= facts.now));
    let problem = || obstacle.clone().or_else(|| of_its_own(facts, silent()?.overdue_problem()));
    let overdue = || {
        let of_a_pod = || newest(facts.pods).into_iter().find_map(PodState::overdue_problem);
        obstacle.clone().or_else(|| of_its_own(facts, of_a_pod()))
    };
    if let (Some(message), None) = (&workload.deadline_exceeded, &workload.replica_failure) {
        let message =
            if message.is_empty() { "the rollout did not complete within its progress deadline" } else { message };
        let problem = overdue().unwrap_or_else(|| Problem::new(Cause::Deadline, message));
        return Verdict::new(Lifecycle::Failed, Reason::DeadlineExceeded, told(Some(problem)));
    }
    if workload.updated < instances || workload.total > workload.updated || workload.total > instances {
        return in_progress(problem());
    }
    match workload.ready {
        ready if ready == instances && instances > 0 => Verdict::new(Lifecycle::Ready, Reason::Ready, None),
        // Instances that were never ready and have met no obstacle are starting.
        _ if !workload.complete && obstacle.is_none() => in_progress(problem()),
        ready if ready > 0 => Verdict::new(Lifecycle::PartiallyReady, Reason::InstancesDown, told(overdue())),
        _ if instances > 0 => Verdict::new(Lifecycle::Unavailable, Reason::InstancesDown, told(overdue())),
        _ => Verdict::new(Lifecycle::NotDeployed, Reason::NotDeployed, None),
    }
}

/// What the node, the scheduler or a quota says.
fn obstacle(facts: &Facts<'_>, workload: &WorkloadState) -> Option<Problem> {
    let of_a_pod = of_its_own(facts, newest(facts.pods).into_iter().find_map(|pod| pod.problem.clone()));
    let refused = || Some(Problem::new(Cause::Quota, workload.replica_failure.as_deref()?));
    of_a_pod.or_else(refused)
}

/// What is wrong with a program, unless something that it needs is.
fn of_its_own(facts: &Facts<'_>, problem: Option<Problem>) -> Option<Problem> {
    let of_the_database =
        problem.as_ref().filter(|problem| problem.is_of_the_program()).and_then(|_| database::trouble(facts));
    of_the_database.or(problem)
}

/// When there may be more to say although nothing has changed: an instance that starts has had its time then.
pub(crate) fn review(facts: &Facts<'_>) -> Option<Timestamp> {
    newest(facts.pods).into_iter().filter_map(PodState::silent_at).filter(|at| *at > facts.now).min()
}

/// The pods of the newest template, oldest first. Pods are made in whole seconds: templates that share the last one count
/// as equally new.
pub(crate) fn newest(pods: &[PodState]) -> Vec<&PodState> {
    let mut pods: Vec<_> = pods.iter().filter(|pod| !pod.terminating).collect();
    pods.sort_by(|a, b| (&a.created, &a.name).cmp(&(&b.created, &b.name)));
    let last = pods.last().map(|pod| &pod.created);
    let templates: Vec<_> = pods.iter().filter(|pod| Some(&pod.created) == last).map(|pod| &pod.template).collect();
    pods.retain(|pod| templates.contains(&&pod.template));
    pods
}
