//! The serving certificate: where it comes from, and how it is replaced while requests go on.
//!
//! Usually this process is its own authority. Everything is in one Secret that all replicas share; what is done next
//! follows from that Secret, the two webhook configurations and the clock ([`protocol`]), so any replica may do it, and any
//! may die at any point. Told to, the process takes somebody else's certificate from a folder instead ([`directory`]).

pub mod cluster;
pub mod directory;
pub mod keeper;
pub mod material;
pub mod protocol;
pub mod secret;
pub mod serving;

pub use protocol::Lifetimes;

/// A point in time, in milliseconds since the epoch.
pub type Moment = i64;

/// The present.
pub fn now() -> Moment {
    jiff::Timestamp::now().as_millisecond()
}
