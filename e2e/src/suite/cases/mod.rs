//! The cases, one family a file.

pub mod admission;
pub mod bad_input;
pub mod causes;
pub mod commands;
pub mod database;
pub mod documents;
pub mod drift;
pub mod environment;
pub mod exposure;
pub mod failures;
pub mod history;
pub mod install;
pub mod logs;
pub mod overview;
pub mod permissions;
pub mod rollout;
pub mod scaling;
pub mod secrets;
pub mod sessions;
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
        causes::cases(),
        bad_input::cases(),
        commands::cases(),
        history::cases(),
        logs::cases(),
        sessions::cases(),
        secrets::cases(),
        rollout::cases(2),
        exposure::cases(),
        database::cases(),
        overview::cases(),
        permissions::cases(),
        install::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
