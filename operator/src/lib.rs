//! The service controller: from AnkkaServices and AnkkaProjects to running instances.
//!
//! `observe → decide → act → report`. [`observe`] feeds the [`cache`] and asks the queue for passes; a pass
//! ([`service`], [`project`]) has `ankka-desired` decide, [`act`] write the children, and [`report`] write the status.
//! `ankka-runtime` sees to it that one replica writes, and that the end of any part ends the process.

pub use ankka_runtime::{error, metrics, queue, tenure, wire};

pub mod act;
pub mod cache;
pub mod observe;
pub mod passes;
pub mod project;
pub mod repairs;
pub mod report;
pub mod revisions;
pub mod run;
pub mod service;
pub mod settings;
pub mod upgrades;
