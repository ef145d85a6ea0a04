//! HTTPRoute: the address outside the cluster.

use k8s_openapi::Resource;
use serde_json::{Value, json};

use super::{Blueprint, labels};
use crate::ChildKind;
use crate::http_route::{BackendReference, HttpRoute, HttpRouteSpec, ParentReference, Rule};

/// The route of an exposed service to its Service; none when it has no host name. It stays while the service is paused.
///
/// The backend has no namespace: it is the route's own, so no grant is needed and none can be abused.
pub(super) fn build(blueprint: &Blueprint<'_>) -> Option<Value> {
    let route = blueprint.route.as_ref()?;
    let backend = BackendReference { name: blueprint.service.name.clone(), port: blueprint.service.port };
    let wanted = HttpRoute {
        metadata: labels::metadata(blueprint, ChildKind::HttpRoute),
        spec: HttpRouteSpec {
            parent_refs: vec![ParentReference {
                namespace: Some(route.gateway.namespace.clone()),
                name: route.gateway.name.clone(),
                section_name: Some(route.gateway.section.clone()),
            }],
            hostnames: vec![route.host.clone()],
            rules: vec![Rule { backend_refs: vec![backend] }],
        },
        status: None,
    };
    let mut body = json!(wanted);
    body["apiVersion"] = HttpRoute::API_VERSION.into();
    body["kind"] = HttpRoute::KIND.into();
    Some(body)
}
