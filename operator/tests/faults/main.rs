//! The operator against an API server in memory: faults at every write, strangers, and what is never written.

mod api;
mod controllers;
mod databases;
mod every_fault;
mod fault;
mod fields;
mod operator;
mod others;
mod reply;
mod routes;
mod watch;
