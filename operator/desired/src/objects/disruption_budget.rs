//! PodDisruptionBudget: drains take one instance at a time.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Blueprint, labels};
use crate::ChildKind;

/// A budget for two or more instances; none for a single one, whose node could then never be drained, nor while paused.
///
/// `maxUnavailable: 1`, not `minAvailable: n - 1`: the two mean the same, but this one is the same for every count, so
/// scaling does not write it. Instances that are not ready may always be evicted: one that never starts must not hold up
/// the drain of its node.
pub(super) fn build(blueprint: &Blueprint<'_>) -> Option<PodDisruptionBudget> {
    (blueprint.instances() >= 2).then(|| PodDisruptionBudget {
        metadata: labels::metadata(blueprint, ChildKind::PodDisruptionBudget),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(labels::selector(blueprint)),
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            ..Default::default()
        }),
        status: None,
    })
}
