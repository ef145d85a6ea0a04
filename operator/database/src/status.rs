//! What is said about a database.

use std::collections::BTreeMap;

use ankka_crds::{
    AnkkaDatabase,
    resources::{AnkkaDatabaseStatus, Condition, FormerLogin},
};
use ankka_requests::report::transitions;

/// How many former logins are listed, the latest.
const LISTED: usize = 20;

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// It is being made; nothing is wrong.
    Making,
    /// The server is waited for, and why.
    Waiting(&'a str),
    /// Somebody has to act: a word for programs, and what is wrong.
    Failed(&'static str, &'a str),
    /// The Secret holds a login that the server accepts.
    Provisioned,
}

/// The phases that an AnkkaDatabase can be in.
pub mod phase {
    /// Not there yet.
    pub const WAITING: &str = "waiting for database";
    /// Made for this service.
    pub const PROVISIONED: &str = "provisioned";
    /// Found, with its data.
    pub const RECOVERED: &str = "recovered existing data";
    /// Refused.
    pub const FAILED: &str = "database provisioning failed";
}

/// `known` with what came of a pass over `database`. Times are filled in by [`with_times`].
pub fn told(database: &AnkkaDatabase, known: AnkkaDatabaseStatus, outcome: Outcome<'_>) -> AnkkaDatabaseStatus {
    let generation = database.metadata.generation;
    let (phase, detail) = match outcome {
        Outcome::Making => (phase::WAITING, None),
        Outcome::Waiting(why) => (phase::WAITING, Some(why)),
        Outcome::Failed(_, why) => (phase::FAILED, Some(why)),
        Outcome::Provisioned if known.recovered => (phase::RECOVERED, None),
        Outcome::Provisioned => (phase::PROVISIONED, None),
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
    let conditions = match outcome {
        Outcome::Making => vec![condition("Ready", "Unknown", "Making"), condition("Reconciling", "True", "Making")],
        Outcome::Waiting(_) => vec![
            condition("Ready", "Unknown", "WaitingForDatabase"),
            condition("Reconciling", "True", "WaitingForDatabase"),
        ],
        Outcome::Failed(reason, _) => vec![condition("Ready", "False", reason), condition("Stalled", "True", reason)],
        Outcome::Provisioned => vec![condition("Ready", "True", "Provisioned")],
    };
    AnkkaDatabaseStatus {
        observed_generation: generation,
        phase: Some(phase.to_owned()),
        detail: detail.map(str::to_owned),
        conditions,
        ..known
    }
}

/// Former logins as the status lists them, from their ends by generation.
pub fn former(ending: &BTreeMap<i64, String>, name: impl Fn(i64) -> String) -> Vec<FormerLogin> {
    let latest = ending.iter().skip(ending.len().saturating_sub(LISTED));
    latest.map(|(generation, ends_at)| FormerLogin { login: name(*generation), ends_at: ends_at.clone() }).collect()
}

/// `new` with the times of its conditions; none when it says nothing that `old` does not.
pub fn with_times(
    old: Option<&AnkkaDatabaseStatus>,
    mut new: AnkkaDatabaseStatus,
    now: &str,
) -> Option<AnkkaDatabaseStatus> {
    let before = old.map_or(&[][..], |old| &old.conditions);
    transitions(before, &mut new.conditions, now);
    (old != Some(&new)).then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(outcome: Outcome<'_>) -> AnkkaDatabaseStatus {
        told(&AnkkaDatabase::default(), AnkkaDatabaseStatus::default(), outcome)
    }

    fn told_of(status: &AnkkaDatabaseStatus) -> (String, Option<String>, Vec<String>) {
        let conditions = status.conditions.iter();
        let conditions = conditions.map(|c| format!("{}={} {}", c.type_, c.status, c.reason)).collect();
        (status.phase.clone().unwrap_or_default(), status.detail.clone(), conditions)
    }

    #[test]
    fn every_outcome_has_its_phrase_and_its_conditions() {
        let conditions = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            told_of(&status(Outcome::Waiting("refused"))),
            (
                "waiting for database".to_owned(),
                Some("refused".to_owned()),
                conditions(&["Ready=Unknown WaitingForDatabase", "Reconciling=True WaitingForDatabase"])
            )
        );
        assert_eq!(
            told_of(&status(Outcome::Failed("Refused", "no permission"))),
            (
                "database provisioning failed".to_owned(),
                Some("no permission".to_owned()),
                conditions(&["Ready=False Refused", "Stalled=True Refused"])
            )
        );
        assert_eq!(
            told_of(&status(Outcome::Provisioned)),
            ("provisioned".to_owned(), None, conditions(&["Ready=True Provisioned"]))
        );
        let known = AnkkaDatabaseStatus { recovered: true, ..AnkkaDatabaseStatus::default() };
        let recovered = told(&AnkkaDatabase::default(), known, Outcome::Provisioned);
        assert_eq!(recovered.phase.as_deref(), Some("recovered existing data"));
    }

    #[test]
    fn what_was_written_before_stays_while_the_server_is_down() {
        let known = AnkkaDatabaseStatus {
            secret: Some("cart-db".to_owned()),
            login: Some("shop.cart".to_owned()),
            ..AnkkaDatabaseStatus::default()
        };
        let down = told(&AnkkaDatabase::default(), known, Outcome::Waiting("down"));
        assert_eq!((down.secret.as_deref(), down.login.as_deref()), (Some("cart-db"), Some("shop.cart")));
    }

    #[test]
    fn a_status_that_says_nothing_new_is_not_written() {
        let first = with_times(None, status(Outcome::Waiting("a")), "1").expect("new");
        assert_eq!(with_times(Some(&first), status(Outcome::Waiting("a")), "2"), None);
        let second = with_times(Some(&first), status(Outcome::Waiting("b")), "2").expect("another reason");
        assert!(second.conditions.iter().all(|condition| condition.last_transition_time == "1"), "no transition");
        let third = with_times(Some(&first), status(Outcome::Provisioned), "3").expect("new");
        assert_eq!(third.conditions[0].last_transition_time, "3");
    }

    #[test]
    fn the_latest_former_logins_are_listed() {
        let ending = (0..30).map(|generation| (generation, "t".to_owned())).collect();
        let listed = former(&ending, |generation| format!("l{generation}"));
        assert_eq!((listed.len(), listed[0].login.as_str()), (20, "l10"));
    }
}
