//! Admission of Ankka's own resources: the rules of `ankka-crds` behind the API server, the history of each service, and
//! the certificates this takes.
//!
//! What is decided is decided in pure functions ([`services`], [`projects`], [`history`], [`certificates::protocol`]); the
//! rest carries bytes in and out.

pub mod certificates;
pub mod health;
pub mod history;
pub mod metrics;
pub mod projects;
pub mod review;
pub mod room;
mod run;
pub mod server;
pub mod services;
pub mod settings;

pub use run::run;
pub use settings::Settings;
