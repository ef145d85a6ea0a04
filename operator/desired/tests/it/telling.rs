//! When there is something to write, and when something to tell.

use ankka_crds::AnkkaServiceStatus;
use ankka_crds::resources::Condition;
use ankka_desired::{EventType, event, with_times};
use serde_json::json;

use crate::support::World;

const NOW: &str = "2026-11-30T12:00:00Z";

fn ready() -> AnkkaServiceStatus {
    World::cart(json!({})).settled(1).decide().status
}

fn condition(status: &str, time: &str) -> Condition {
    Condition {
        type_: "Ready".to_owned(),
        status: status.to_owned(),
        reason: "Ready".to_owned(),
        message: String::new(),
        observed_generation: Some(1),
        last_transition_time: time.to_owned(),
    }
}

#[test]
fn a_first_status_is_written_with_the_present() {
    let written = with_times(None, ready(), NOW).expect("something to write");
    assert!(written.conditions.iter().all(|condition| condition.last_transition_time == NOW));
}

#[test]
fn nothing_is_written_when_only_time_has_passed() {
    let written = with_times(None, ready(), NOW).expect("something to write");
    assert_eq!(with_times(Some(&written), ready(), "2026-11-30T13:00:00Z"), None);
    assert_eq!(with_times(None, AnkkaServiceStatus::default(), NOW), None);
}

#[test]
fn a_condition_keeps_its_time_until_it_turns() {
    let old = AnkkaServiceStatus { conditions: vec![condition("True", "2026-01-01T00:00:00Z")], ..ready() };
    let same =
        AnkkaServiceStatus { detail: Some("new".to_owned()), conditions: vec![condition("True", "")], ..ready() };
    let written = with_times(Some(&old), same, NOW).expect("something to write");
    assert_eq!(written.conditions, [condition("True", "2026-01-01T00:00:00Z")]);
    let turned = AnkkaServiceStatus { conditions: vec![condition("False", "")], ..ready() };
    let written = with_times(Some(&old), turned, NOW).expect("something to write");
    assert_eq!(written.conditions, [condition("False", NOW)]);
}

fn status(lifecycle: &str, detail: Option<&str>) -> AnkkaServiceStatus {
    AnkkaServiceStatus {
        lifecycle: Some(lifecycle.to_owned()),
        detail: detail.map(str::to_owned),
        ..Default::default()
    }
}

#[test]
fn an_event_tells_each_change_of_word_or_of_detail_once() {
    let updating = status("UpdateInProgress", None);
    let told = event(None, &updating).expect("an event");
    assert_eq!((told.type_, told.reason), (EventType::Normal, "UpdateInProgress"));
    assert_eq!(event(Some(&updating), &updating), None);

    let stuck = status("UpdateInProgress", Some("ImagePullBackOff: manifest unknown"));
    let told = event(Some(&updating), &stuck).expect("an event");
    assert_eq!((told.type_, told.note.as_str()), (EventType::Warning, "ImagePullBackOff: manifest unknown"));
    assert_eq!(event(Some(&stuck), &updating), None, "that a problem is gone is told by what comes of it");

    let told = event(Some(&stuck), &status("Ready", None)).expect("an event");
    assert_eq!((told.type_, told.reason), (EventType::Normal, "Ready"));
    let told = event(Some(&updating), &status("Failed", Some("why"))).expect("an event");
    assert_eq!((told.type_, told.reason, told.note.as_str()), (EventType::Warning, "Failed", "why"));
}

#[test]
fn more_instances_becoming_ready_is_no_event() {
    let one = AnkkaServiceStatus { ready_instances: 1, ..status("PartiallyReady", None) };
    let two = AnkkaServiceStatus { ready_instances: 2, ..status("PartiallyReady", None) };
    assert_eq!(event(Some(&one), &two), None);
}

#[test]
fn a_note_fits_what_the_server_takes() {
    let told = event(None, &status("Failed", Some(&"é".repeat(3000)))).expect("an event");
    assert!(told.note.len() <= 1024);
}
