//! Role: what the instances may do.

use k8s_openapi::api::rbac::v1::{PolicyRule, Role};

use super::{Blueprint, labels};
use crate::ChildKind;

/// Instances find their peers among the pods of their own namespace, and may do nothing else.
pub(super) fn build(blueprint: &Blueprint<'_>) -> Role {
    Role {
        metadata: labels::metadata(blueprint, ChildKind::Role),
        rules: Some(vec![PolicyRule {
            api_groups: Some(vec![String::new()]),
            resources: Some(vec!["pods".to_owned()]),
            verbs: ["get", "list", "watch"].map(str::to_owned).into(),
            ..Default::default()
        }]),
    }
}
