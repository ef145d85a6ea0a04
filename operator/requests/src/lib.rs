//! What the controllers that fulfil a service's requests have in common: an AnkkaDatabase or AnkkaBucket is watched, kept, judged
//! by its place, and reported on, whatever it asks for.

pub mod cache;
pub mod observe;
pub mod place;
pub mod process;
pub mod report;

use std::fmt::Debug;

use kube::Resource;
use serde::de::DeserializeOwned;

/// A kind of request: one of a service, in its project's namespace, under its name.
pub trait Request: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static {}

impl<T: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static> Request for T {}
