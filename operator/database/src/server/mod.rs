//! The PostgreSQL server: what is there, what can be done to it, and why not.

mod connect;
mod facts;
mod monitor;
mod postgres;
mod refusal;
mod statements;

pub use self::{
    connect::{Connection, Tls},
    facts::{DatabaseSeen, Observed, RoleSeen},
    monitor::Monitor,
    postgres::{Acceptance, Postgres},
    refusal::ServerError,
    statements::{Claim, Step},
};
