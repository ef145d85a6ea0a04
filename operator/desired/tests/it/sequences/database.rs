//! A model of the database controller and its server, one step a turn: the server first, then the Secret, then the status.

use std::collections::BTreeMap;

use ankka_crds::AnkkaDatabase;
use ankka_crds::resources::AnkkaDatabaseStatus;
use serde_json::Value;

/// The server, the Secret and what the controller says.
#[derive(Clone, Debug)]
pub(super) struct Databases {
    /// The server answers.
    pub(super) up: bool,
    /// The login in the Secret, while that is there.
    pub(super) secret: Option<i64>,
    made: bool,
    /// Logins by generation, and whether each has an end.
    logins: BTreeMap<i64, bool>,
    /// What is said of the AnkkaDatabase with this UID.
    said: Option<(String, AnkkaDatabaseStatus)>,
}

impl Default for Databases {
    fn default() -> Self {
        Self { up: true, secret: None, made: false, logins: BTreeMap::new(), said: None }
    }
}

impl Databases {
    /// The stored request with its status.
    pub(super) fn stored(&self, request: &Value) -> AnkkaDatabase {
        let mut database: AnkkaDatabase = serde_json::from_value(request.clone()).expect("an AnkkaDatabase");
        let said = self.said.as_ref().filter(|(uid, _)| request["metadata"]["uid"] == **uid);
        database.status = said.map(|(_, status)| status.clone());
        database
    }

    /// One step. False when there is nothing to do.
    pub(super) fn turn(&mut self, request: Option<&Value>) -> bool {
        let Some(request) = request else { return false };
        let database = self.stored(request);
        let known = database.status.clone().unwrap_or_default();
        if !self.up {
            return self.say(&database, "waiting for database", Some("no answer"), known);
        }
        if known.database.is_none() {
            let intent = AnkkaDatabaseStatus { database: Some("shop.cart".to_owned()), recovered: self.made, ..known };
            return self.say(&database, "waiting for database", None, intent);
        }
        let wanted = self.wanted(&database, &known);
        if !std::mem::replace(&mut self.made, true) || self.logins.insert(wanted, false).is_none() {
            return true;
        }
        if self.secret != Some(wanted) {
            self.secret = Some(wanted);
            return true;
        }
        if let Some(ends) = self.logins.iter_mut().find(|(login, ends)| **login != wanted && !**ends) {
            *ends.1 = true;
            return true;
        }
        let phase = if known.recovered { "recovered existing data" } else { "provisioned" };
        let done = AnkkaDatabaseStatus {
            secret: Some("cart-db".to_owned()),
            login: Some(format!("shop.cart#{wanted}")),
            credential_generation: wanted,
            ..known
        };
        self.say(&database, phase, None, done)
    }

    /// Which login the Secret is to hold: the latest one asked for, in use or made, but none that has an end.
    fn wanted(&self, database: &AnkkaDatabase, known: &AnkkaDatabaseStatus) -> i64 {
        let in_place = known.secret.as_ref().map_or(0, |_| known.credential_generation);
        let made = self.logins.keys().max().copied().unwrap_or_default();
        let mut wanted = database.spec.credential_generation.max(in_place).max(made);
        while self.logins.get(&wanted) == Some(&true) {
            wanted += 1;
        }
        wanted
    }

    fn say(&mut self, about: &AnkkaDatabase, phase: &str, detail: Option<&str>, known: AnkkaDatabaseStatus) -> bool {
        let status = AnkkaDatabaseStatus {
            observed_generation: about.metadata.generation,
            phase: Some(phase.to_owned()),
            detail: detail.map(str::to_owned),
            ..known
        };
        let changed = about.status.as_ref() != Some(&status);
        self.said = Some((about.metadata.uid.clone().unwrap_or_default(), status));
        changed
    }

    /// At the end one login is accepted for ever, and it is the one in the Secret and in the status.
    pub(super) fn check(&self, request: &Value) {
        let database = self.stored(request);
        let status = database.status.unwrap_or_default();
        let lasting: Vec<_> = self.logins.iter().filter(|(_, ends)| !**ends).map(|(login, _)| *login).collect();
        assert_eq!(lasting, [status.credential_generation], "logins without an end");
        assert_eq!(self.secret, Some(status.credential_generation), "the login in the Secret");
        assert!(status.credential_generation >= database.spec.credential_generation, "what was asked for is done");
    }
}
