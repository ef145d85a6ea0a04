//! One stored service that answers as the API server does: it counts versions, refuses a change made from an older one,
//! merges, and applies.

use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

use super::objects::SERVICES;
use super::{Fake, Reply, Request};

const APPLY: &str = "application/apply-patch+yaml";

/// A service in the store of a fake API server.
#[derive(Clone)]
pub(crate) struct Stored {
    object: Arc<Mutex<Value>>,
}

impl Stored {
    pub(crate) fn new(service: Value) -> Self {
        Self { object: Arc::new(Mutex::new(service)) }
    }

    /// The service as it is stored now.
    pub(crate) fn now(&self) -> Value {
        self.object.lock().expect("no test has panicked in it").clone()
    }

    /// What the operator writes: a new version of the object, no new generation.
    pub(crate) fn report(&self, status: Value) {
        let mut object = self.object.lock().expect("no test has panicked in it");
        object["status"] = status;
        raise(&mut object, "resourceVersion");
    }

    /// Sets an annotation of it.
    pub(crate) fn annotate(&self, key: &str, value: &str) {
        self.object.lock().expect("no test has panicked in it")["metadata"]["annotations"][key] = json!(value);
    }

    /// A server that holds it, and answers everything else by this function.
    pub(crate) fn serve(&self, otherwise: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) -> Fake {
        let stored = self.clone();
        Fake::start(move |request| {
            otherwise(request).unwrap_or_else(|| match request.line() {
                line if line == format!("GET {SERVICES}/cart") => Reply::ok(stored.now()),
                line if line == format!("PATCH {SERVICES}/cart") => stored.patch(request),
                _ => Reply::status(404, "NotFound", "not found", &json!({})),
            })
        })
    }

    /// Changes it as a request asks.
    pub(crate) fn patch(&self, request: &Request) -> Reply {
        let mut object = self.object.lock().expect("no test has panicked in it");
        let made_from = &request.body["metadata"]["resourceVersion"];
        if !made_from.is_null() && *made_from != object["metadata"]["resourceVersion"] {
            return Reply::status(
                409,
                "Conflict",
                "Operation cannot be fulfilled on ankkaservices.ankka.dev \"cart\": the object has been modified; please apply your changes to the latest version and try again",
                &json!({ "name": "cart", "group": "ankka.dev", "kind": "ankkaservices" }),
            );
        }
        let mut changed = object.clone();
        if request.content_type == APPLY {
            changed["spec"]["service"] = request.body["spec"]["service"].clone();
        } else {
            merge(&mut changed["spec"], &request.body["spec"]);
        }
        if changed != *object {
            raise(&mut changed, "resourceVersion");
            raise(&mut changed, "generation");
            if request.content_type == APPLY {
                changed["metadata"]["managedFields"][0]["time"] =
                    json!(jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
            }
        }
        if !request.query.contains("dryRun=All") {
            object.clone_from(&changed);
        }
        Reply::ok(changed)
    }
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (key, value) in fields {
        if value.is_null() {
            target.as_object_mut().expect("made one").remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}

fn raise(object: &mut Value, field: &str) {
    let field = &mut object["metadata"][field];
    *field = match &*field {
        Value::String(text) => json!((text.parse::<i64>().expect("a number") + 1).to_string()),
        number => json!(number.as_i64().expect("a number") + 1),
    };
}
