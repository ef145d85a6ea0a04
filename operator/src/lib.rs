//! The service controller: from AnkkaServices and AnkkaProjects to running instances.
//!
//! `observe → decide → act → report`. [`observe`] feeds the [`cache`] and asks the [`queue`] for passes; a pass
//! ([`service`], [`project`]) has `ankka-desired` decide, [`act`] write the children, and [`report`] write the status.
//! [`leader`] and [`tenure`] see to it that one replica writes, and [`run`] that the end of any part ends the process.

pub mod act;
pub mod cache;
pub mod clock;
pub mod error;
pub mod http;
pub mod leader;
pub mod metrics;
pub mod observe;
pub mod passes;
pub mod project;
pub mod queue;
pub mod repairs;
pub mod report;
pub mod run;
pub mod service;
pub mod settings;
pub mod tenure;
pub mod wire;
