//! The controller against a real PostgreSQL and an API server in memory: faults at every call, what services can reach, and
//! what is never written.

mod access;
mod clusters;
mod controller;
mod every_fault;
mod outages;
mod postgres;
mod proxy;
mod reissue;
