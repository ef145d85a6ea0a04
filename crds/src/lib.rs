//! Resources, descriptor, rules, names and messages of Ankka: everything that is the same in the CLI, the webhook and the
//! controllers. No client, no clock and no I/O in here.

pub mod compat;
#[cfg(feature = "corpus")]
pub mod corpus;
pub mod descriptor;
pub mod digest;
pub mod exposure;
pub mod history;
pub mod labels;
pub mod names;
pub mod problem;
pub mod project;
pub mod resources;
pub mod rules;
pub mod secrets;
pub mod settings;
pub mod validated;

pub use problem::{Located, Problem};
pub use resources::{
    AnkkaBucket, AnkkaDatabase, AnkkaProject, AnkkaService, AnkkaServiceSpec, AnkkaServiceStatus, ServiceSpec,
};
pub use rules::{Context, Installation, Store, validate};
pub use validated::ValidatedService;

/// Group of all resources, and prefix of every label and annotation of ours.
pub const GROUP: &str = "ankka.dev";

/// Version of all resources.
pub const VERSION: &str = "v1alpha1";
