//! What was observed: requests of one kind, and the namespaces that are the platform's.
//!
//! Fed by watches and by the answers to our own writes. Of two states of an object the one with the higher resourceVersion is
//! kept, so that a watch event that was under way cannot undo what an answer has said.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use crate::{Request, place::NamespaceSeen};

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name, which is its service's.
    pub name: Arc<str>,
}

impl Key {
    /// The one of this object.
    pub fn of(metadata: &ObjectMeta) -> Self {
        Self {
            namespace: metadata.namespace.as_deref().unwrap_or_default().into(),
            name: metadata.name.as_deref().unwrap_or_default().into(),
        }
    }
}

/// Everything that is watched.
#[derive(Debug)]
pub struct Cache<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    requests: HashMap<Key, Listed<Arc<T>>>,
    namespaces: HashMap<String, Listed<NamespaceSeen>>,
    /// How many listings of requests, and of namespaces, have begun.
    listings: [u64; 2],
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Mutex::new(State { requests: HashMap::new(), namespaces: HashMap::new(), listings: [0; 2] }))
    }
}

/// An object, and the last listing that it was seen in or after.
#[derive(Debug)]
struct Listed<T> {
    object: T,
    listing: u64,
}

impl<T: Request> Cache<T> {
    /// Stores a request. True when it asks for something new: a change that only reports does not.
    pub fn put(&self, request: T) -> bool {
        let mut state = self.lock();
        let listing = state.listings[0];
        let key = Key::of(request.meta());
        let Some(known) = state.requests.get_mut(&key) else {
            state.requests.insert(key, Listed { object: Arc::new(request), listing });
            return true;
        };
        known.listing = listing;
        let same = known.object.uid() == request.uid();
        if same && version(known.object.meta()) >= version(request.meta()) {
            return false;
        }
        let asks = |request: &T| {
            let metadata = request.meta();
            (metadata.uid.clone(), metadata.generation, metadata.deletion_timestamp.is_some())
        };
        let new = asks(&known.object) != asks(&request);
        known.object = Arc::new(request);
        new
    }

    /// Forgets a request.
    pub fn remove(&self, key: &Key) {
        self.lock().requests.remove(key);
    }

    /// A request; none when it is gone.
    pub fn get(&self, key: &Key) -> Option<Arc<T>> {
        self.lock().requests.get(key).map(|known| known.object.clone())
    }

    /// A listing of requests begins.
    pub fn begin(&self) {
        self.lock().listings[0] += 1;
    }

    /// A listing of requests ends: those that it did not contain are gone.
    pub fn end(&self) {
        let mut state = self.lock();
        let listing = state.listings[0];
        state.requests.retain(|_, known| known.listing == listing);
    }

    /// Stores a namespace. True when what counts of it has changed.
    pub fn put_namespace(&self, metadata: &ObjectMeta) -> bool {
        let mut state = self.lock();
        let object = NamespaceSeen::of(metadata);
        let listing = state.listings[1];
        let name = metadata.name.clone().unwrap_or_default();
        let before = state.namespaces.insert(name, Listed { object: object.clone(), listing });
        before.is_none_or(|before| before.object != object)
    }

    /// Forgets a namespace, or one that is no longer labelled as the platform's.
    pub fn remove_namespace(&self, name: &str) {
        self.lock().namespaces.remove(name);
    }

    /// What is known of a namespace.
    pub fn namespace(&self, name: &str) -> Option<NamespaceSeen> {
        self.lock().namespaces.get(name).map(|known| known.object.clone())
    }

    /// A listing of namespaces begins.
    pub fn begin_namespaces(&self) {
        self.lock().listings[1] += 1;
    }

    /// A listing of namespaces ends: those that it did not contain are gone. Says which.
    pub fn end_namespaces(&self) -> Vec<String> {
        let mut state = self.lock();
        let listing = state.listings[1];
        state.namespaces.extract_if(|_, known| known.listing != listing).map(|(name, _)| name).collect()
    }

    /// All requests.
    pub fn keys(&self) -> Vec<Key> {
        self.lock().requests.keys().cloned().collect()
    }

    /// Those in one namespace.
    pub fn keys_in(&self, namespace: &str) -> Vec<Key> {
        self.lock().requests.keys().filter(|key| &*key.namespace == namespace).cloned().collect()
    }

    /// How many requests there are.
    pub fn len(&self) -> usize {
        self.lock().requests.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn version(metadata: &ObjectMeta) -> u64 {
    metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use ankka_crds::AnkkaDatabase;

    use super::*;

    fn database(uid: &str, version: u64, generation: i64) -> AnkkaDatabase {
        let mut database = AnkkaDatabase::default();
        database.metadata.name = Some("cart".to_owned());
        database.metadata.namespace = Some("ankka-shop".to_owned());
        database.metadata.uid = Some(uid.to_owned());
        database.metadata.resource_version = Some(version.to_string());
        database.metadata.generation = Some(generation);
        database
    }

    #[test]
    fn only_what_asks_for_something_new_asks_for_a_pass() {
        let cache = Cache::default();
        assert!(cache.put(database("a", 1, 1)));
        assert!(!cache.put(database("a", 3, 1)), "a report of ours");
        assert!(!cache.put(database("a", 2, 2)), "older than what is known");
        assert!(cache.put(database("a", 4, 2)));
        assert!(cache.put(database("b", 3, 2)), "another object of that name");
    }

    #[test]
    fn what_a_new_listing_does_not_contain_is_gone() {
        let cache = Cache::default();
        cache.put(database("a", 1, 1));
        cache.begin();
        cache.put(database("a", 1, 1));
        cache.end();
        assert_eq!(cache.len(), 1);
        cache.begin();
        cache.end();
        assert!(cache.is_empty());
    }
}
