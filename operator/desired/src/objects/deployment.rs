//! Deployment: the instances.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Blueprint, labels, pod};
use crate::ChildKind;

/// Sets of instances kept beside the current one. Going back is done with the descriptor, so these serve only to look at.
const REVISION_HISTORY: i32 = 2;

/// One new instance joins the cluster and becomes ready before an old one stops, at one instance too.
pub(super) fn build(blueprint: &Blueprint<'_>) -> Deployment {
    Deployment {
        metadata: labels::declared_metadata(blueprint, ChildKind::Deployment),
        spec: Some(DeploymentSpec {
            replicas: Some(blueprint.instances()),
            selector: labels::selector(blueprint),
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_surge: Some(IntOrString::Int(1)),
                    max_unavailable: Some(IntOrString::Int(0)),
                }),
            }),
            progress_deadline_seconds: Some(blueprint.progress_deadline_seconds),
            revision_history_limit: Some(REVISION_HISTORY),
            template: pod::template(blueprint),
            ..Default::default()
        }),
        status: None,
    }
}
