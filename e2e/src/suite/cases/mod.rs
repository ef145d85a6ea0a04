//! The cases, one family a file.

pub mod admission;
pub mod bad_input;
pub mod commands;
pub mod database;
pub mod documents;
pub mod drift;
pub mod environment;
pub mod exposure;
pub mod failures;
pub mod history;
pub mod install;
pub mod permissions;
pub mod rollout;
pub mod scaling;
pub mod statuses;

use super::Case;

/// Every case of the gate, in the order in which they run. The one that reads the audit log comes after those that use the
/// platform and before those that take its permissions away by removing it.
pub fn all() -> Vec<Case> {
    [
        admission::cases(),
        documents::cases(),
        environment::cases(),
        scaling::cases(),
        statuses::cases(),
        drift::cases(),
        failures::cases(),
        bad_input::cases(),
        commands::cases(),
        history::cases(),
        rollout::cases(2),
        exposure::cases(),
        database::cases(),
        permissions::cases(),
        install::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
