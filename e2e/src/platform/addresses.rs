//! The addresses and ports of the local platform. All on the bridge or loopback: nothing is reachable from outside.

use std::net::Ipv4Addr;

/// The bridge: the node's address, and the gateway of its pods.
pub(crate) const BRIDGE: &str = "ankka0";
/// Address of the bridge.
pub(crate) const NODE: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 1);
/// Every address a pod may have, real or fake. Routed to the bridge.
pub(crate) const CLUSTER_RANGE: &str = "10.244.0.0/16";
/// Addresses of the real node's pods: its first part. An address is used again late, so a stale connection meets nobody.
pub(crate) const POD_RANGE: &str = "10.244.0.0/20";
/// Bits of [`POD_RANGE`].
pub(crate) const POD_BITS: u8 = 20;
/// Addresses that kwok gives to pods that nobody runs.
pub(crate) const FAKE_POD_RANGE: &str = "10.244.128.0/17";
/// Addresses of services. Routed to the bridge.
pub(crate) const SERVICE_RANGE: &str = "10.96.0.0/16";
/// Service address of the API server.
pub(crate) const API_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
/// Service address of the gateway.
pub(crate) const GATEWAY_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 43);

pub(crate) const ETCD_PORT: u16 = 12379;
pub(crate) const ETCD_PEER_PORT: u16 = 12380;
pub(crate) const API_PORT: u16 = 16443;
pub(crate) const CONTROLLER_MANAGER_PORT: u16 = 10257;
pub(crate) const SCHEDULER_PORT: u16 = 10259;
pub(crate) const KUBELET_PORT: u16 = 10250;
pub(crate) const KUBELET_HEALTH_PORT: u16 = 10248;
pub(crate) const PROXY_HEALTH_PORT: u16 = 10256;
pub(crate) const PROXY_METRICS_PORT: u16 = 10249;
pub(crate) const DNS_READY_PORT: u16 = 18181;
pub(crate) const KWOK_PORT: u16 = 10247;
pub(crate) const POSTGRES_PORT: u16 = 15432;
pub(crate) const CONTOUR_PORT: u16 = 18102;
pub(crate) const CONTOUR_HEALTH_PORT: u16 = 18101;
pub(crate) const CONTOUR_DEBUG_PORT: u16 = 18100;
pub(crate) const ENVOY_HEALTH_PORT: u16 = 18103;
/// Where Envoy serves the gateway's port: Contour adds 8000 to it.
pub(crate) const ENVOY_PORT: u16 = GATEWAY_PORT + 8000;
/// The gateway's port.
pub(crate) const GATEWAY_PORT: u16 = 443;

/// Name of the real node.
pub(crate) const NODE_NAME: &str = "node1";
/// Domain of exposed services.
pub(crate) const BASE_DOMAIN: &str = "apps.ankka.test";
/// Domain of services' names.
pub(crate) const DOMAIN: &str = "cluster.local";
