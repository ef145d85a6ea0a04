//! The database controller: from AnkkaDatabases to databases, roles and logins in PostgreSQL, and to Secrets.
//!
//! `observe → decide → act → report`. [`ankka_requests::observe`] feeds the cache and asks the queue for passes. A pass ([`pass`]) looks at
//! the server ([`server`]), has [`decide`] say what is missing, carries that out step by step, writes the [`secret`] and
//! reports the [`status`]. Nothing is ever dropped, deleted or read from a Secret: passwords are derived ([`password`]), so a
//! crash between any two steps is made good by the next pass.

pub mod administrator;
pub mod cluster;
pub mod decide;
pub mod error;
pub mod names;
pub mod pass;
pub mod password;
pub mod run;
pub mod secret;
pub mod server;
pub mod settings;
pub mod status;
