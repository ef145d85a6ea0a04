//! When conditions changed, and whether there is anything to write.

use ankka_crds::resources::Condition;
use ankka_crds::{AnkkaServiceStatus as Status, resources::AnkkaProjectStatus};

/// The status to write at `now` (RFC 3339); none when it says nothing that the old one does not.
///
/// A condition keeps its time until its `status` changes.
pub fn with_times(old: Option<&Status>, mut new: Status, now: &str) -> Option<Status> {
    let old = old.cloned().unwrap_or_default();
    keep_times(&old.conditions, &mut new.conditions, now);
    (new != old).then_some(new)
}

/// [`with_times`] for a project.
pub fn project_with_times(
    old: Option<&AnkkaProjectStatus>,
    mut new: AnkkaProjectStatus,
    now: &str,
) -> Option<AnkkaProjectStatus> {
    let old = old.cloned().unwrap_or_default();
    keep_times(&old.conditions, &mut new.conditions, now);
    (new != old).then_some(new)
}

fn keep_times(old: &[Condition], new: &mut [Condition], now: &str) {
    for condition in new {
        let before = old.iter().find(|old| old.type_ == condition.type_ && old.status == condition.status);
        let time = before.map_or(now, |before| before.last_transition_time.as_str());
        time.clone_into(&mut condition.last_transition_time);
    }
}
