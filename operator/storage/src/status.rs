//! What is said about a bucket.

use ankka_crds::{
    AnkkaBucket,
    resources::{AnkkaBucketStatus, Condition},
};
use ankka_requests::report::transitions;

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// It is being made; nothing is wrong.
    Making,
    /// The store is waited for, and why.
    Waiting(&'a str),
    /// Somebody has to act: a word for programs, and what is wrong.
    Failed(&'static str, &'a str),
    /// The Secret holds a key that the store accepts. There may be something to know about it.
    Provisioned(Option<&'a str>),
}

/// The phases that an AnkkaBucket can be in.
pub mod phase {
    /// Not there yet.
    pub const WAITING: &str = "waiting for object storage";
    /// Made for this service.
    pub const PROVISIONED: &str = "provisioned";
    /// Found, with its objects.
    pub const RECOVERED: &str = "recovered existing bucket";
    /// Refused.
    pub const FAILED: &str = "object storage provisioning failed";
}

/// Whether this is said of a bucket that is as it should be.
pub fn is_settled(status: &AnkkaBucketStatus) -> bool {
    matches!(status.phase.as_deref(), Some(phase::PROVISIONED | phase::RECOVERED)) && status.detail.is_none()
}

/// `known` with what came of a pass over `bucket`. Times are filled in by [`with_times`].
pub fn told(bucket: &AnkkaBucket, known: AnkkaBucketStatus, outcome: Outcome<'_>) -> AnkkaBucketStatus {
    let generation = bucket.metadata.generation;
    let (phase, detail) = match outcome {
        Outcome::Making => (phase::WAITING, None),
        Outcome::Waiting(why) => (phase::WAITING, Some(why)),
        Outcome::Failed(_, why) => (phase::FAILED, Some(why)),
        Outcome::Provisioned(note) if known.recovered => (phase::RECOVERED, note),
        Outcome::Provisioned(note) => (phase::PROVISIONED, note),
    };
    let message = detail.unwrap_or(phase);
    let condition = |type_: &str, status: &str, reason: &str| Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: generation,
        last_transition_time: String::new(),
    };
    let under_way = |reason| vec![condition("Ready", "Unknown", reason), condition("Reconciling", "True", reason)];
    let conditions = match outcome {
        Outcome::Making => under_way("Making"),
        Outcome::Waiting(_) => under_way("WaitingForObjectStorage"),
        Outcome::Failed(reason, _) => vec![condition("Ready", "False", reason), condition("Stalled", "True", reason)],
        Outcome::Provisioned(_) => vec![condition("Ready", "True", "Provisioned")],
    };
    AnkkaBucketStatus {
        observed_generation: generation,
        phase: Some(phase.to_owned()),
        detail: detail.map(str::to_owned),
        conditions,
        ..known
    }
}

/// `new` with the times of its conditions; none when it says nothing that `old` does not.
pub fn with_times(old: Option<&AnkkaBucketStatus>, mut new: AnkkaBucketStatus, now: &str) -> Option<AnkkaBucketStatus> {
    let before = old.map_or(&[][..], |old| &old.conditions);
    transitions(before, &mut new.conditions, now);
    (old != Some(&new)).then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(outcome: Outcome<'_>) -> AnkkaBucketStatus {
        told(&AnkkaBucket::default(), AnkkaBucketStatus::default(), outcome)
    }

    fn told_of(status: &AnkkaBucketStatus) -> String {
        let conditions = status.conditions.iter();
        let conditions: Vec<_> = conditions.map(|c| format!("{}={} {}", c.type_, c.status, c.reason)).collect();
        let detail = status.detail.as_deref().unwrap_or("-");
        format!("{}: {detail}: {}", status.phase.as_deref().unwrap_or("-"), conditions.join(", "))
    }

    #[test]
    fn every_outcome_has_its_phrase_and_its_conditions() {
        let expected = [
            (Outcome::Making, "waiting for object storage: -: Ready=Unknown Making, Reconciling=True Making"),
            (
                Outcome::Waiting("down"),
                "waiting for object storage: down: Ready=Unknown WaitingForObjectStorage, Reconciling=True WaitingForObjectStorage",
            ),
            (
                Outcome::Failed("Refused", "no"),
                "object storage provisioning failed: no: Ready=False Refused, Stalled=True Refused",
            ),
            (Outcome::Provisioned(None), "provisioned: -: Ready=True Provisioned"),
        ];
        for (outcome, said) in expected {
            assert_eq!(told_of(&status(outcome)), said);
        }
        let known = AnkkaBucketStatus { recovered: true, ..AnkkaBucketStatus::default() };
        let recovered = told(&AnkkaBucket::default(), known, Outcome::Provisioned(None));
        assert_eq!(told_of(&recovered), "recovered existing bucket: -: Ready=True Provisioned");
    }

    #[test]
    fn what_was_written_before_stays_while_the_store_is_down() {
        let known = AnkkaBucketStatus {
            secret: Some("reports-storage".to_owned()),
            access_key: Some("GK1".to_owned()),
            ..AnkkaBucketStatus::default()
        };
        let down = told(&AnkkaBucket::default(), known, Outcome::Waiting("down"));
        assert_eq!((down.secret.as_deref(), down.access_key.as_deref()), (Some("reports-storage"), Some("GK1")));
        assert!(!is_settled(&down));
    }

    #[test]
    fn a_status_that_says_nothing_new_is_not_written() {
        let first = with_times(None, status(Outcome::Waiting("a")), "1").expect("new");
        assert_eq!(with_times(Some(&first), status(Outcome::Waiting("a")), "2"), None);
        let second = with_times(Some(&first), status(Outcome::Waiting("b")), "2").expect("another reason");
        assert!(second.conditions.iter().all(|condition| condition.last_transition_time == "1"), "no transition");
        let third = with_times(Some(&first), status(Outcome::Provisioned(None)), "3").expect("new");
        assert_eq!(third.conditions[0].last_transition_time, "3");
    }
}
