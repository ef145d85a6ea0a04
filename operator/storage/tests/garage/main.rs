//! The controller against a real Garage and an API server in memory: faults at every call, what a key reaches, and what is never
//! sent.

mod access;
mod controller;
mod every_fault;
mod garage;
mod keys;
mod outages;
mod proxy;
