//! Tests of the decision and of what it renders, through the crate's public face.

mod causes;
mod database;
mod faults;
mod hold;
mod logins;
mod merging;
mod pods;
mod project;
mod properties;
mod recorded;
mod rendering;
mod revisions;
mod route;
mod sequences;
mod status;
mod support;
mod telling;
mod upgrade;
