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

use super::{Case, runner::Together};

/// Every case of the gate, in the order in which they run: those that take long and disturb nobody run beside each other. The one that
/// reads the audit log comes after those that use the platform and before those that take its permissions away by removing it.
pub fn all() -> Vec<Together> {
    let first = [
        admission::cases(),
        documents::cases(),
        environment::cases(),
        scaling::cases(),
        statuses::cases(),
        drift::cases(),
        failures::cases(),
        causes::cases(),
        bad_input::cases(),
    ];
    let beside = vec![
        database::logins(),
        [commands::cases(), history::cases(), logs::cases(), sessions::cases(), secrets::cases()]
            .into_iter()
            .flatten()
            .collect(),
    ];
    let last = [
        rollout::cases(2),
        exposure::cases(),
        database::cases(),
        overview::cases(),
        permissions::cases(),
        install::cases(),
    ];
    first.into_iter().map(alone).chain([beside]).chain(last.into_iter().map(alone)).collect()
}

fn alone(family: Vec<Case>) -> Together {
    vec![family]
}
