//! Service: the address inside the cluster.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Blueprint, labels, pod};
use crate::ChildKind;

/// The service's address; none when it serves no HTTP. It stays while the service is paused.
///
/// The target is the instances' port by name: while a change of port rolls, the instances of before are still reached on
/// the port they listen on.
pub(super) fn build(blueprint: &Blueprint<'_>) -> Option<Service> {
    blueprint.service.port.map(|port| Service {
        metadata: labels::declared_metadata(blueprint, ChildKind::Service),
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            selector: Some(labels::identity(blueprint)),
            ports: Some(vec![ServicePort {
                name: Some(pod::HTTP_PORT.to_owned()),
                port: i32::from(port),
                target_port: Some(IntOrString::String(pod::HTTP_PORT.to_owned())),
                protocol: Some("TCP".to_owned()),
                ..Default::default()
            }]),
            ..Default::default()
        }),
        status: None,
    })
}
