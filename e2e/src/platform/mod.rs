//! A Kubernetes cluster on this machine: a control plane, and, for root, one node that runs containers.

mod addresses;
mod api_server;
mod component;
mod containerd;
mod contour;
mod controller_manager;
mod dns;
mod envoy;
mod etcd;
mod gateway;
pub mod images;
mod kubelet;
mod kwok;
pub(crate) mod layout;
mod leftovers;
mod lifecycle;
mod manifests;
mod network;
mod pki;
pub(crate) mod postgres;
mod probe;
mod process;
mod proxy;
mod scheduler;

pub use component::{Component, Health};
pub use gateway::Gateway;
pub use lifecycle::{Local, Lock};
pub use postgres::Server as DatabaseServer;
