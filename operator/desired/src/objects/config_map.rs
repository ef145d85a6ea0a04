//! ConfigMap: cluster-formation settings that change without a rollout.

use k8s_openapi::api::core::v1::ConfigMap;

use super::{Blueprint, labels};
use crate::ChildKind;

/// Key of the number of peers that must be found before a new cluster forms.
pub(super) const CONTACT_POINTS: &str = "contactPoints";

/// Two peers are enough to tell a cluster that is there from one still to be formed; a single instance has none to wait
/// for. Read by reference, so that 1 → 3 → 1 instances never changes the pod template. Pausing changes nothing here: at
/// resume the same instances start.
pub(super) fn build(blueprint: &Blueprint<'_>) -> ConfigMap {
    let contact_points = blueprint.service.instances.min(2);
    ConfigMap {
        metadata: labels::metadata(blueprint, ChildKind::ConfigMap),
        data: Some([(CONTACT_POINTS.to_owned(), contact_points.to_string())].into()),
        ..Default::default()
    }
}
