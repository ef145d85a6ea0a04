//! How a Deployment is doing.

use k8s_openapi::api::apps::v1::Deployment;

use crate::WorkloadState;

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
        }
    }
}
