//! The local platform: a real Kubernetes on one machine without downloads of images or programs, what installs Ankka on it,
//! and what tests of a running cluster share.

pub mod audit;
pub mod binaries;
pub mod cluster;
mod digest;
pub mod install;
pub mod packages;
pub mod paths;
pub mod platform;
pub mod progress;
pub mod prove;
pub mod run;
pub mod stages;
pub mod suite;
pub mod tools;
pub mod web;

pub use cluster::Platform;
