use ankka_crds::labels::CHANGES;
use serde_json::{Value, json};

use super::*;
use crate::review;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn object(spec: &Value, history: Option<&str>) -> Value {
    let mut object = json!({"metadata": {"name": "cart", "namespace": "ankka-shop", "generation": 7}, "spec": spec});
    if let Some(history) = history {
        object["metadata"]["annotations"] = json!({CHANGES: history});
    }
    object
}

fn kept(object: &Value, old: Option<&Value>) -> Option<Value> {
    let body = json!({"request": {
        "uid": "u", "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
        "userInfo": {"username": "ada"}, "object": object, "oldObject": old,
    }});
    match keep(&review::read(body.to_string().as_bytes()).unwrap(), NOW) {
        Verdict::Admit { warnings, patch } => {
            assert!(warnings.is_empty());
            patch
        }
        Verdict::Deny(problems) => panic!("denied: {problems:?}"),
    }
}

/// The annotation after the API server applied the patch.
fn after(object: &Value, old: Option<&Value>) -> Option<String> {
    let mut object = object.clone();
    for operation in kept(&object, old).iter().flat_map(|patch| patch.as_array().unwrap()) {
        let annotations = &mut object["metadata"]["annotations"];
        match (operation["op"].as_str().unwrap(), operation["path"].as_str().unwrap()) {
            ("add", "/metadata/annotations") => *annotations = operation["value"].clone(),
            ("add", "/metadata/annotations/ankka.dev~1changes") => {
                annotations.as_object_mut().unwrap().insert(CHANGES.to_owned(), operation["value"].clone());
            }
            ("remove", "/metadata/annotations/ankka.dev~1rolled-back-to") => {
                annotations.as_object_mut().unwrap().remove(ROLLED_BACK_TO).unwrap();
            }
            ("remove", "/metadata/annotations/ankka.dev~1changes") => {
                annotations.as_object_mut().unwrap().remove(CHANGES).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
    object["metadata"]["annotations"].get(CHANGES).map(|text| text.as_str().unwrap().to_owned())
}

fn changes(text: Option<String>) -> Vec<Change> {
    serde_json::from_str(&text.expect("a history")).unwrap()
}

fn kinds(object: &Value, old: &Value) -> Vec<Kind> {
    changes(after(object, Some(old))).into_iter().map(|change| change.kind).collect()
}

fn image(image: &str) -> Value {
    json!({"service": {"image": image}})
}

#[test]
fn a_new_service_was_applied_whatever_it_says_of_itself() {
    let forged = r#"[{"generation":9,"kind":"paused","who":"eve","at":"x","digest":"d"}]"#;
    for said in [None, Some(forged)] {
        let changes = changes(after(&object(&image("i:1"), said), None));
        let [only] = changes.as_slice() else { panic!("{changes:?}") };
        assert_eq!((only.generation, only.kind, only.who.as_str()), (1, Kind::Applied, "ada"));
        assert_eq!((only.at.as_str(), only.image.as_deref()), ("1970-01-01T00:00:00Z", Some("i:1")));
        assert_eq!(
            only.digest,
            digest::of_descriptor("cart", &serde_json::from_value(json!({"image": "i:1"})).unwrap())
        );
    }
}

#[test]
fn a_change_is_put_before_the_earlier_ones_with_the_generation_it_makes() {
    let first = after(&object(&image("i:1"), None), None).unwrap();
    let changes = changes(after(&object(&image("i:2"), Some(&first)), Some(&object(&image("i:1"), Some(&first)))));
    assert_eq!(changes.iter().map(|change| change.generation).collect::<Vec<_>>(), [8, 1]);
    assert_eq!(changes[0].image.as_deref(), Some("i:2"));
}

#[test]
fn nobody_forges_drops_or_adds_a_history() {
    let stored = after(&object(&image("i:1"), None), None).unwrap();
    let old = object(&image("i:1"), Some(&stored));
    for said in [None, Some("[]"), Some("forged")] {
        assert_eq!(after(&object(&image("i:1"), said), Some(&old)).as_deref(), Some(stored.as_str()), "{said:?}");
        let changed = changes(after(&object(&image("i:2"), said), Some(&old)));
        assert_eq!(changed.len(), 2, "{said:?}");
    }
    // What is right already needs no patch, and a service without history is given none by a label.
    assert_eq!(kept(&old, Some(&old)), None);
    assert_eq!(after(&object(&image("i:1"), Some("forged")), Some(&object(&image("i:1"), None))), None);
    let mut others = object(&image("i:1"), None);
    others["metadata"]["annotations"] = json!({"a": "b"});
    assert_eq!(after(&others, Some(&old)).as_deref(), Some(stored.as_str()));
}

#[test]
fn each_command_has_its_kind_and_several_at_once_several_entries() {
    let base = image("i:1");
    let with = |field: &str, value: Value| {
        let mut spec = base.clone();
        spec[field] = value;
        object(&spec, None)
    };
    let plain = object(&base, None);
    let (paused, exposed) = (with("paused", json!(true)), with("exposed", json!(true)));
    assert_eq!(kinds(&paused, &plain), [Kind::Paused]);
    assert_eq!(kinds(&plain, &paused), [Kind::Resumed]);
    assert_eq!(kinds(&exposed, &plain), [Kind::Exposed]);
    assert_eq!(kinds(&plain, &exposed), [Kind::Unexposed]);
    assert_eq!(kinds(&with("restarts", json!(1)), &plain), [Kind::Restarted]);
    let storage = |field: &str, value: Value| kinds(&with("storage", json!({field: value})), &plain);
    assert_eq!(storage("credentialGeneration", json!(1)), [Kind::StorageCredentialReissued]);
    assert_eq!(storage("settingsGeneration", json!(1)), [Kind::StorageSettingsReapplied]);
    assert_eq!(storage("move", json!({"generation": 1})), [Kind::StorageMoved]);
    let database = with("database", json!({"credentialGeneration": 1}));
    assert_eq!(kinds(&database, &plain), [Kind::DatabaseCredentialReissued]);
    let several = object(&json!({"service": {"image": "i:2"}, "restarts": 1, "exposed": true}), None);
    assert_eq!(kinds(&several, &plain), [Kind::Applied, Kind::Restarted, Kind::Exposed]);
    assert_eq!(
        serde_json::to_value([Kind::Applied, Kind::StorageCredentialReissued, Kind::DatabaseCredentialReissued])
            .unwrap(),
        json!(["applied", "storage-credential-reissued", "database-credential-reissued"])
    );
    // Saying a default is a change of no kind.
    assert_eq!(kept(&with("paused", json!(false)), Some(&plain)), None);
}

#[test]
fn the_last_fifty_are_kept() {
    let mut stored: Option<String> = None;
    for turn in 0..60 {
        let old = object(&image(&format!("i:{turn}")), stored.as_deref());
        stored = after(&object(&image(&format!("i:{}", turn + 1)), None), Some(&old));
    }
    let changes = changes(stored);
    assert_eq!(changes.len(), KEPT);
    assert_eq!(changes[0].image.as_deref(), Some("i:60"));
    assert_eq!(changes[49].image.as_deref(), Some("i:11"));
}

#[test]
fn no_history_makes_annotations_too_large() {
    let together = |object: &Value, text: Option<&str>| {
        let others = object["metadata"]["annotations"].as_object().into_iter().flatten();
        others.map(|(key, value)| key.len() + value.as_str().unwrap().len()).sum::<usize>()
            + text.map_or(0, |text| CHANGES.len() + text.len())
    };
    let long = "\u{1}".repeat(200_000);
    let mut stored: Option<String> = None;
    for turn in 0..55 {
        let old = object(&image(&format!("{turn}{long}")), stored.as_deref());
        stored = after(&object(&image(&format!("{}{long}", turn + 1)), None), Some(&old));
        assert!(stored.as_ref().unwrap().len() <= LARGEST);
    }
    let mut full = object(&image("i:1"), None);
    full["metadata"]["annotations"] = json!({"a": "x".repeat(LARGEST_TOGETHER - CHANGES.len() - 400)});
    let old = object(&image("i:0"), stored.as_deref());
    let one = after(&full, Some(&old));
    assert_eq!(changes(one.clone()).len(), 1);
    assert!(together(&full, one.as_deref()) <= LARGEST_TOGETHER);
    full["metadata"]["annotations"] = json!({"a": "x".repeat(LARGEST_TOGETHER)});
    assert_eq!(after(&full, Some(&old)), None);
}

#[test]
fn a_spec_that_cannot_be_read_leaves_the_stored_history() {
    let stored = after(&object(&image("i:1"), None), None).unwrap();
    let old = object(&image("i:1"), Some(&stored));
    let wrong = object(&json!({"service": {"image": 1}}), None);
    assert_eq!(after(&wrong, Some(&old)).as_deref(), Some(stored.as_str()));
    // Made right again, it is a change like any other.
    let mended = changes(after(&object(&image("i:1"), None), Some(&object(&json!({"service": 1}), Some(&stored)))));
    assert_eq!(mended.len(), 2);
}

#[test]
fn a_rollback_is_recorded_as_one_when_it_brings_that_descriptor_back() {
    let of = |spec: &Value| digest::of_descriptor("cart", &serde_json::from_value(spec["service"].clone()).unwrap());
    let change = |generation, image: &str| json!({"generation": generation, "kind": "applied", "who": "ada", "at": "", "digest": of(&self::image(image))});
    let stored = json!([change(7, "i:2"), change(3, "i:1")]).to_string();
    let newest = |to: &str, wanted: &str| {
        let mut object = object(&image(wanted), Some(&stored));
        object["metadata"]["annotations"][ROLLED_BACK_TO] = to.into();
        let old = self::object(&image("i:2"), Some(&stored));
        let patch = kept(&object, Some(&old)).unwrap();
        assert_eq!(
            patch.as_array().unwrap().last().unwrap()["path"],
            "/metadata/annotations/ankka.dev~1rolled-back-to"
        );
        let newest = changes(after(&object, Some(&old))).remove(0);
        (newest.kind, newest.rolled_back_to)
    };
    // Generation 5 had the descriptor of generation 3.
    assert_eq!(newest("5", "i:1"), (Kind::RolledBack, Some(5)));
    for (to, image) in [("3", "i:9"), ("2", "i:1"), ("7", "i:1"), ("x", "i:1")] {
        assert_eq!(newest(to, image), (Kind::Applied, None), "{to} {image}");
    }
}
