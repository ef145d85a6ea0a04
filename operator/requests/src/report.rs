//! Reporting: a request's status, written when it says something new.

use std::{sync::Arc, time::Duration};

use ankka_crds::resources::Condition;
use ankka_runtime::{
    error::Error,
    queue::Next,
    wire::{Target, Wire},
    workers::Unfinished,
};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use crate::{
    Request,
    cache::{Cache, Key},
};

/// For how long the namespace of a new request may be unknown, in seconds: the two come by different watches.
const NEWS: i64 = 10;

/// How long until an object is judged again whose newest state, or namespace, has not been seen yet.
pub const SOON: Duration = Duration::from_millis(500);

/// Whether the request was made a moment ago, so that its namespace may not have been seen yet.
pub fn is_news<T: Request>(request: &T) -> bool {
    let created = request.meta().creation_timestamp.as_ref();
    created.is_some_and(|created| Timestamp::now().duration_since(created.0).as_secs() < NEWS)
}

/// A time as statuses and conditions have it: RFC 3339 in whole seconds.
pub fn shown(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Gives each of the `new` conditions the time of its last transition, which is `now` unless its status was the same in `old`.
pub fn transitions(old: &[Condition], new: &mut [Condition], now: &str) {
    for condition in new {
        let before = old.iter().find(|before| before.type_ == condition.type_);
        condition.last_transition_time = match before {
            Some(before) if before.status == condition.status => before.last_transition_time.clone(),
            _ => now.to_owned(),
        };
    }
}

/// Writes the status of `request`, which metrics count as of `kind`. None when the state of the object that was judged is no
/// longer the stored one; else the object with that status.
///
/// # Errors
/// When the API server refused or did not answer.
pub async fn write<T: Request>(
    wire: &Wire,
    cache: &Cache<T>,
    request: &T,
    kind: &'static str,
    status: &impl Serialize,
) -> Result<Option<Arc<T>>, Error> {
    let metadata = request.meta();
    let namespace = metadata.namespace.as_deref();
    let body = json!({
        "apiVersion": T::api_version(&()),
        "kind": T::kind(&()),
        "metadata": {
            "name": metadata.name,
            "namespace": namespace,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        },
        "status": status,
    });
    let collection = T::url_path(&(), namespace);
    let name = metadata.name.as_deref().unwrap_or_default();
    let target = Target { collection: &collection, kind, name, namespace };
    match wire.update_status::<T>(target, &body).await {
        Ok(stored) => {
            cache.put(stored.clone());
            Ok(Some(Arc::new(stored)))
        }
        Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What follows on a pass that did not finish, after its status was to say why: `told` none when that was of a state that is no longer
/// the newest.
///
/// # Errors
/// What is to be counted and logged of the pass.
pub fn unfinished<E: Unfinished>(key: &Key, told: Result<Option<()>, E>, error: E) -> Result<Next, E> {
    match told {
        // No further pass is asked for until what is down is back, so this one has to have said so.
        Ok(None) if error.is_down() => Ok(Next::After(SOON)),
        Err(untold) if error.is_down() => Err(untold),
        Err(untold) => {
            let (namespace, name) = (&*key.namespace, &*key.name);
            tracing::warn!(namespace, name, error = %untold, "the status could not say why a pass did not finish");
            Err(error)
        }
        Ok(_) => Err(error),
    }
}
