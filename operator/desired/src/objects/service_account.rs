//! ServiceAccount: the identity of the instances.

use k8s_openapi::api::core::v1::ServiceAccount;

use super::{Blueprint, labels};
use crate::ChildKind;

/// The token is mounted, because instances find their peers by listing pods. Pull secrets stand on the pod, where a change
/// of theirs is seen to take effect.
pub(super) fn build(blueprint: &Blueprint<'_>) -> ServiceAccount {
    ServiceAccount {
        metadata: labels::metadata(blueprint, ChildKind::ServiceAccount),
        automount_service_account_token: Some(true),
        ..Default::default()
    }
}
