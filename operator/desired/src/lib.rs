//! From a validated service to the objects that run it, and from what is observed to a status. Pure: no client, no clock,
//! no environment.

pub mod child;
pub mod decide;
pub mod facts;
pub mod settings;

pub use child::{Child, ChildKind};
pub use decide::{Action, Decision, decide};
pub use facts::{Facts, PodState, ProjectFacts, Seen, WorkloadState};
pub use settings::Settings;
