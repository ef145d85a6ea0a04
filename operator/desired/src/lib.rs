//! From a validated service to the objects that run it, and from what is observed to a status. Pure: no client, no clock,
//! no environment.

pub mod cause;
pub mod child;
mod database;
pub mod decide;
mod digest;
pub mod events;
pub mod facts;
mod fields;
pub mod http_route;
mod logins;
mod merge;
pub mod objects;
mod pods;
pub mod project;
pub mod report;
pub mod revisions;
pub mod route;
pub mod settings;
mod status;
mod text;
mod workload;

pub use cause::{Cause, Missing, Place, Problem};
pub use child::{Child, ChildKind, merged, scaled};
pub use decide::{Action, Decision, decide};
pub use events::{Event, EventType, event};
pub use facts::{DatabaseState, Facts, Owner, PodState, ProjectFacts, Seen, WorkloadState};
pub use fields::OwnFields;
pub use http_route::HttpRoute;
pub use report::{project_with_times, with_times};
pub use route::{Claim, RouteFacts, RouteState};
pub use settings::{DatabaseServer, Gateway, Settings};
pub use status::LIFECYCLES;
