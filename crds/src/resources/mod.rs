//! The four resource types, group `ankka.dev`, version `v1alpha1`. Data only.
//!
//! The schema says types and nothing else: no bounds, patterns, required fields or defaults where a documented message
//! exists, because the API server checks the schema before it asks the webhook and would answer in its own words, with
//! part of the problems. Integers are 64 bits wide for the same reason.

#![expect(clippy::duplicated_attributes, reason = "clippy takes printer columns of one type for repetitions")]

mod bucket;
mod condition;
mod database;
mod project;
mod service;

pub use bucket::{AnkkaBucket, AnkkaBucketSpec, AnkkaBucketStatus, FormerKey};
pub use condition::Condition;
pub use database::{AnkkaDatabase, AnkkaDatabaseSpec, AnkkaDatabaseStatus, FormerLogin};
pub use project::{AnkkaProject, AnkkaProjectSpec, AnkkaProjectStatus, Subject};
pub use service::{
    AnkkaService, AnkkaServiceSpec, AnkkaServiceStatus, Autoscaling, DatabaseCommands, EnvEntry, ProvisioningStatus,
    ResourcesSpec, SecretKeyRef, ServiceSpec, StorageCommands, StorageMove,
};

/// `status.observedGeneration` of an object that no controller has looked at: the only default of the schema. Without it kstatus,
/// and so Flux and Argo CD, would take an object that nobody has looked at for one that is as it should be.
pub const NOT_OBSERVED: i64 = -1;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(value: &i64) -> bool {
    *value == 0
}
