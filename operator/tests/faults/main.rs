//! The operator against an API server in memory: faults at every write, strangers, and what is never written.

mod databases;
mod every_fault;
mod history;
mod operator;
mod others;
mod routes;
mod traces;
mod upgrades;

use ankka_testing::{api, fault};
