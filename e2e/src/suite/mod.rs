//! The tests that need a cluster: each case is one sentence about the product, run against real pods.

pub mod cases;
pub mod cluster;
pub mod database;
pub mod gate;
pub mod load;
pub mod report;
pub mod runner;
pub mod running;
pub mod terminal;
pub mod witness;
pub mod workbench;

pub use cluster::Cluster;
pub use runner::{Case, Tally};
pub use running::Running;
