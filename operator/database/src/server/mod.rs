//! The PostgreSQL server: what is there, what can be done to it, and why not.

mod connect;
mod facts;
mod postgres;
mod refusal;
mod statements;

pub use self::{
    connect::{Connection, Tls},
    facts::{DatabaseSeen, Observed, RoleSeen},
    postgres::{Acceptance, Postgres},
    refusal::ServerError,
    statements::Step,
};
