//! The object store: what is there, what can be done to it, and why not.

mod answers;
mod census;
mod garage;
mod monitor;
mod refusal;

pub use self::{
    answers::{Allowed, BucketSeen, KeySeen, NewKey, Permissions, SecretKey},
    census::{Census, Listing},
    garage::{Garage, Token},
    monitor::Monitor,
    refusal::StoreError,
};
