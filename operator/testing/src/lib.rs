//! For the tests of controllers: an API server in memory, with faults on demand.

pub mod api;
mod controllers;
pub mod fault;
mod fields;
mod reply;
mod watch;
