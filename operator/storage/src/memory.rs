//! What is remembered between passes, and lost with the process. Nothing is wrong without it: it only spares calls, and keys.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ankka_requests::cache::Key;
use tokio::time::Instant;

use crate::store::NewKey;

/// How often a bucket that is settled is looked at itself, and not only for in the lists.
const DAY: Duration = Duration::from_hours(24);

/// An access key whose secret is known here and nowhere else, until the status says that the Secret holds it.
#[derive(Clone, Debug)]
pub struct Held {
    /// The name it was made under.
    pub name: String,
    /// The key itself.
    pub key: NewKey,
    /// The resourceVersion of the Secret that it was written to.
    pub written: Option<String>,
}

/// What is remembered of every bucket.
#[derive(Debug, Default)]
pub struct Memory(Mutex<HashMap<Key, Remembered>>);

#[derive(Debug)]
struct Remembered {
    settled: bool,
    look_at: Instant,
    held: Option<Held>,
}

impl Memory {
    /// Whether no pass over it has come to its end since this process began to act.
    pub fn is_starting(&self, key: &Key) -> bool {
        self.of(key, |remembered| !remembered.settled)
    }

    /// Whether a settled bucket is to be looked at itself. For the first time at some moment of the first day, so that those of a
    /// large installation are not looked at all at once.
    pub fn is_due(&self, key: &Key) -> bool {
        self.of(key, |remembered| remembered.look_at <= Instant::now())
    }

    /// The key whose secret is known here.
    pub fn held(&self, key: &Key) -> Option<Held> {
        self.of(key, |remembered| remembered.held.clone())
    }

    /// The bucket was looked at.
    pub fn looked(&self, key: &Key) {
        self.of(key, |remembered| remembered.look_at = Instant::now() + DAY);
    }

    /// A pass over it has come to its end: what it said is settled.
    pub fn settled(&self, key: &Key) {
        self.of(key, |remembered| (remembered.settled, remembered.held) = (true, None));
    }

    /// Keeps a key's secret.
    pub fn hold(&self, key: &Key, held: Held) {
        self.of(key, |remembered| remembered.held = Some(held));
    }

    /// Forgets everything about a bucket that nobody asks for any more.
    pub fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    fn of<R>(&self, key: &Key, read: impl FnOnce(&mut Remembered) -> R) -> R {
        let mut all = self.lock();
        let first = || Remembered { settled: false, look_at: Instant::now() + some_time_today(key), held: None };
        read(all.entry(key.clone()).or_insert_with(first))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Remembered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn some_time_today(key: &Key) -> Duration {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    Duration::from_secs(hasher.finish() % DAY.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_settled_bucket_is_looked_at_once_a_day() {
        let memory = Memory::default();
        let key = Key { namespace: "ankka-shop".into(), name: "cart".into() };
        assert!(memory.is_starting(&key));
        memory.settled(&key);
        assert!(!memory.is_starting(&key));
        tokio::time::advance(DAY).await;
        assert!(memory.is_due(&key));
        memory.looked(&key);
        tokio::time::advance(Duration::from_hours(23)).await;
        assert!(!memory.is_due(&key));
        tokio::time::advance(Duration::from_hours(1)).await;
        assert!(memory.is_due(&key));
    }
}
