//! The storage controller: from AnkkaBuckets to buckets and access keys in Garage, and to Secrets.
//!
//! `observe → decide → act → report`. [`ankka_requests::observe`] feeds the cache and asks the queue for passes. A pass ([`pass`])
//! looks at the store ([`store`]) and at the Secret ([`secret`]), has [`decide`] say what is missing, carries that out step by step and
//! reports the [`status`]. Secrets are never read and no bucket or object is ever deleted. The store tells a key's secret once, so
//! what it is for is written down before a key is made: whatever is lost on the way, the next pass finds it and makes it good.

pub mod decide;
pub mod error;
pub mod memory;
pub mod names;
pub mod pass;
pub mod run;
pub mod secret;
pub mod settings;
pub mod status;
pub mod store;
mod work;
