//! The AnkkaService as the API server stores it: behind the real admission, with generations and resourceVersions.

use ankka_crds::resources::DatabaseCommands;
use ankka_crds::rules::supplies_database;
use ankka_crds::{AnkkaService, AnkkaServiceSpec};
use ankka_webhook::{review, services};
use serde_json::{Value, json};

use super::step::Command;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Stored,
    Unchanged,
    Conflict,
    Refused,
}

/// A change of the stored service: what it becomes.
pub(super) struct Change {
    /// The service as it is to be.
    pub(super) wanted: AnkkaService,
    /// The resourceVersion it was made from, where that is a condition.
    pub(super) version: Option<String>,
}

/// What a command makes of the service it has read; none when there is nothing to do.
pub(super) fn command(read: &AnkkaService, command: Command, in_place: Option<i64>) -> Option<Change> {
    let mut wanted = read.clone();
    commanded(&mut wanted.spec, command, in_place);
    let version = read.metadata.resource_version.clone();
    (wanted.spec != read.spec).then_some(Change { wanted, version })
}

/// The rule of each command. `in_place`: generation of the login that is in place, once there is one.
pub(super) fn commanded(spec: &mut AnkkaServiceSpec, command: Command, in_place: Option<i64>) {
    match command {
        Command::Pause => spec.paused = true,
        Command::Resume => spec.paused = false,
        Command::Restart => spec.restarts += 1,
        Command::Expose if spec.service.http != Some(false) => spec.exposed = true,
        Command::Expose => {}
        Command::Unexpose => spec.exposed = false,
        Command::Reissue => {
            if let Some(in_place) = in_place.filter(|_| !supplies_database(&spec.service)) {
                let asked = spec.database.as_ref().map_or(0, |database| database.credential_generation);
                spec.database = Some(DatabaseCommands { credential_generation: asked.max(in_place) + 1 });
            }
        }
    }
}

/// Stores the service unless admission refuses it. `tick` hands out the next resourceVersion, `now` the time.
pub(super) fn store(
    stored: &mut Option<AnkkaService>,
    change: Change,
    mut tick: impl FnMut() -> u64,
    now: &str,
) -> Answer {
    let Change { mut wanted, version } = change;
    let old = stored.as_ref();
    if version.is_some() && version != old.and_then(|old| old.metadata.resource_version.clone()) {
        return Answer::Conflict;
    }
    if old.is_some_and(|old| old.spec == wanted.spec) {
        return Answer::Unchanged;
    }
    if !admit(old, &mut wanted, now) {
        return Answer::Refused;
    }
    let number = tick();
    let metadata = &mut wanted.metadata;
    metadata.resource_version = Some(number.to_string());
    match old {
        None => {
            metadata.uid = Some(format!("uid-of-service-{number}"));
            metadata.generation = Some(1);
            metadata.creation_timestamp = serde_json::from_value(json!(now)).ok();
        }
        Some(old) => metadata.generation = old.metadata.generation.map(|generation| generation + 1),
    }
    *stored = Some(wanted);
    Answer::Stored
}

/// The webhook's own judgement and history.
fn admit(old: Option<&AnkkaService>, new: &mut AnkkaService, now: &str) -> bool {
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let body = json!({
        "request": {
            "uid": "1", "operation": operation, "userInfo": { "username": "team" }, "object": new, "oldObject": old,
        },
    });
    let request = review::read(body.to_string().as_bytes()).expect("a review");
    let history = ankka_webhook::history::keep(&request, now.parse().expect("a time"));
    if let review::Verdict::Admit { patch: Some(patch), .. } = history {
        let mut body = serde_json::to_value(&*new).expect("a service");
        patch.as_array().expect("a patch").iter().for_each(|operation| patched(&mut body, operation));
        *new = serde_json::from_value(body).expect("a service");
    }
    matches!(services::judge(&request, "ankka"), review::Verdict::Admit { .. })
}

/// The two operations that the history's patch has.
fn patched(body: &mut Value, operation: &Value) {
    let path = operation["path"].as_str().expect("a path");
    let (parent, key) = path.rsplit_once('/').expect("a path below the root");
    let key = key.replace("~1", "/");
    let parent = body.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object there");
    match operation["op"].as_str() {
        Some("add") => parent.insert(key, operation["value"].clone()),
        Some("remove") => parent.remove(&key),
        other => panic!("operation {other:?}"),
    };
}
