//! A Kubernetes cluster on this machine: a control plane, and, for root, one node that runs containers.

mod addresses;
mod api_server;
mod component;
mod containerd;
mod controller_manager;
mod dns;
mod etcd;
pub mod images;
mod kubelet;
mod kwok;
pub(crate) mod layout;
mod leftovers;
mod lifecycle;
mod manifests;
mod network;
mod pki;
mod probe;
mod process;
mod proxy;
mod scheduler;

pub use component::{Component, Health};
pub use lifecycle::{Local, Lock};
