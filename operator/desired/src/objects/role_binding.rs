//! RoleBinding: gives the instances' identity its role.

use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};

use super::{Blueprint, labels};
use crate::ChildKind;

pub(super) fn build(blueprint: &Blueprint<'_>) -> RoleBinding {
    let name = &blueprint.service.name;
    RoleBinding {
        metadata: labels::metadata(blueprint, ChildKind::RoleBinding),
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "Role".to_owned(),
            name: ChildKind::Role.name_for(name),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: ChildKind::ServiceAccount.name_for(name),
            namespace: Some(blueprint.namespace.to_owned()),
            ..Default::default()
        }]),
    }
}
