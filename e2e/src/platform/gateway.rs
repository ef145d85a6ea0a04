//! The gateway through which exposed services are reached: the Gateway API's resources, a Gateway with a certificate for all of the
//! base domain, and a name and an address of its own.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, runtime::wait};
use serde_json::json;

use super::{
    addresses::{BASE_DOMAIN, ENVOY_PORT, GATEWAY_PORT, GATEWAY_SERVICE, NODE},
    envoy,
    layout::Layout,
    manifests,
};
use crate::tools::{CONTOUR_API, GATEWAY_API};

/// Namespace of the gateway.
pub(crate) const NAMESPACE: &str = "ankka-gateway";
/// Name of the gateway.
pub(crate) const NAME: &str = "ankka";
/// The hosts its certificate is for.
pub(crate) const HOSTS: &str = "*.apps.ankka.test";

/// What Contour may do.
const PERMISSIONS: &str = include_str!("../../manifests/contour.yaml");

/// The gateway as tests and the installation see it.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// Every exposed service has a host name below it.
    pub base_domain: &'static str,
    /// Where all those names lead.
    pub address: SocketAddr,
    /// File with the authority of its certificate, PEM.
    pub authority: PathBuf,
}

impl Gateway {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self {
            base_domain: BASE_DOMAIN,
            address: (IpAddr::V4(GATEWAY_SERVICE), GATEWAY_PORT).into(),
            authority: layout.certificate("ca").into(),
        }
    }
}

/// Applies what Contour and Envoy need before they start.
pub(crate) async fn prepare(layout: &Layout, client: &Client) -> Result<()> {
    envoy::prepare(layout).await?;
    let folder = layout.tools.folder("contour");
    let read = |name: &&str| {
        let file = folder.join(name);
        std::fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))
    };
    let definitions = GATEWAY_API.iter().chain(&CONTOUR_API).map(read).collect::<Result<Vec<_>>>()?.join("\n---\n");
    manifests::apply(client, &format!("{definitions}\n---\n{PERMISSIONS}")).await?;
    for name in ["gatewayclasses", "gateways", "httproutes"] {
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let name = format!("{name}.gateway.networking.k8s.io");
        let established = wait::await_condition(definitions, &name, wait::conditions::is_crd_established());
        tokio::time::timeout(Duration::from_secs(30), established)
            .await
            .with_context(|| format!("{name} is not served"))??;
    }
    manifests::apply(client, &objects(layout)?).await
}

/// The gateway and what it needs, as YAML.
fn objects(layout: &Layout) -> Result<String> {
    let pem = |file: String| std::fs::read_to_string(&file).with_context(|| format!("failed to read {file}"));
    let within = |name: &str| json!({"name": name, "namespace": NAMESPACE});
    let objects = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": within("certificate"),
            "type": "kubernetes.io/tls",
            "stringData": {"tls.crt": pem(layout.certificate("gateway"))?, "tls.key": pem(layout.key("gateway"))?},
        }),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": within("envoy"),
            "spec": {
                "clusterIP": GATEWAY_SERVICE,
                "ports": [{"name": "https", "port": GATEWAY_PORT, "targetPort": ENVOY_PORT}],
            },
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": "envoy",
                "namespace": NAMESPACE,
                "labels": {"kubernetes.io/service-name": "envoy", "endpointslice.kubernetes.io/managed-by": "ankka-local"},
            },
            "addressType": "IPv4",
            "ports": [{"name": "https", "port": ENVOY_PORT, "protocol": "TCP"}],
            "endpoints": [{"addresses": [NODE], "conditions": {"ready": true}}],
        }),
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "GatewayClass",
            "metadata": {"name": "contour"},
            "spec": {"controllerName": "projectcontour.io/gateway-controller"},
        }),
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "Gateway",
            "metadata": within(NAME),
            "spec": {"gatewayClassName": "contour", "listeners": [{
                "name": "https",
                "port": GATEWAY_PORT,
                "protocol": "HTTPS",
                "hostname": HOSTS,
                "tls": {"mode": "Terminate", "certificateRefs": [{"kind": "Secret", "name": "certificate"}]},
                "allowedRoutes": {"namespaces": {"from": "Selector", "selector": {
                    "matchExpressions": [{"key": ankka_crds::labels::PROJECT, "operator": "Exists"}],
                }}},
            }]},
        }),
    ];
    Ok(objects.map(|object| object.to_string()).join("\n---\n"))
}
