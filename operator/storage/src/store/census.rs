//! What is in the store, listed once for all passes and not asked for bucket by bucket.
//!
//! The lists are taken anew when they are older than the time between two looks at everything, and whenever a call went wrong, so
//! that nobody knows what it has done. What our own calls change is noted at once.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;

use super::{
    answers::{BucketListed, KeySeen},
    garage::Garage,
    refusal::StoreError,
};
use crate::names;

/// What the lists say of one service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Id of the bucket of its name.
    pub bucket: Option<String>,
    /// The access keys that the platform made for it, and the one that was asked for by its id.
    pub keys: Vec<KeySeen>,
}

/// Told of buckets that new lists say something else of.
type Changed = Box<dyn Fn(&str) + Send + Sync>;

/// The lists.
pub struct Census {
    /// How old they may get.
    age: Duration,
    changed: Changed,
    state: Mutex<State>,
    /// Held by whoever takes them anew.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    taken: Option<Instant>,
    /// Something has been done since that is not known.
    doubted: bool,
    lists: Lists,
    /// What our own calls have changed since new lists were asked for, which may not say so.
    meanwhile: Option<Vec<Change>>,
}

#[derive(Default)]
struct Lists {
    /// Ids of buckets by name.
    buckets: HashMap<String, String>,
    keys: HashMap<String, KeySeen>,
    /// Ids of the access keys of a bucket's service.
    of_bucket: HashMap<String, BTreeSet<String>>,
}

/// What a call of ours has changed.
#[derive(Clone, Debug)]
enum Change {
    Bucket { name: String, id: String },
    Key(KeySeen),
    Ends { key: String, at: Timestamp },
    Gone { key: String },
}

impl Census {
    /// Lists that get as old as `age`. `changed` is told the name of each bucket that new ones say something else of.
    pub fn new(age: Duration, changed: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { age, changed: Box::new(changed), state: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    /// What the lists say of this bucket and its keys, and of the key with the id `recorded`.
    ///
    /// # Errors
    /// When they have to be taken anew and cannot be.
    pub async fn of(&self, store: &Garage, bucket: &str, recorded: Option<&str>) -> Result<Listing, StoreError> {
        if let Some(listing) = self.current(bucket, recorded) {
            return Ok(listing);
        }
        let _turn = self.turn.lock().await;
        if let Some(listing) = self.current(bucket, recorded) {
            return Ok(listing);
        }
        let asked = Instant::now();
        {
            let mut state = self.lock();
            state.meanwhile = Some(Vec::new());
            state.doubted = false;
        }
        let listed = async { Ok((store.buckets().await?, store.keys().await?)) }.await;
        let meanwhile = self.lock().meanwhile.take().unwrap_or_default();
        let (buckets, keys) = listed.inspect_err(|_| self.doubt())?;
        let mut lists = Lists::of(buckets, keys);
        for change in meanwhile {
            lists.apply(change);
        }
        let listing = lists.listing(bucket, recorded);
        let differing = {
            let mut state = self.lock();
            let differing = state.taken.map(|_| lists.differing(&state.lists)).unwrap_or_default();
            state.lists = lists;
            state.taken = Some(asked);
            differing
        };
        for name in differing.iter().filter(|name| *name != bucket) {
            (self.changed)(name);
        }
        Ok(listing)
    }

    /// A call went wrong: what it has done is not known.
    pub fn doubt(&self) {
        self.lock().doubted = true;
    }

    /// A bucket was made.
    pub fn made(&self, name: &str, id: &str) {
        self.note(Change::Bucket { name: name.to_owned(), id: id.to_owned() });
    }

    /// An access key was made.
    pub fn issued(&self, id: &str, name: &str) {
        let key = KeySeen { id: id.to_owned(), name: name.to_owned(), ends_at: None, expired: false };
        self.note(Change::Key(key));
    }

    /// An access key was given an end; none when it was gone.
    pub fn ends(&self, key: &str, at: Option<Timestamp>) {
        let key = key.to_owned();
        self.note(at.map_or(Change::Gone { key: key.clone() }, |at| Change::Ends { key, at }));
    }

    /// An access key was deleted.
    pub fn deleted(&self, key: &str) {
        self.note(Change::Gone { key: key.to_owned() });
    }

    fn current(&self, bucket: &str, recorded: Option<&str>) -> Option<Listing> {
        let state = self.lock();
        let fresh = !state.doubted && state.taken.is_some_and(|taken| taken.elapsed() < self.age);
        fresh.then(|| state.lists.listing(bucket, recorded))
    }

    fn note(&self, change: Change) {
        let mut state = self.lock();
        if let Some(meanwhile) = &mut state.meanwhile {
            meanwhile.push(change.clone());
        }
        state.lists.apply(change);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lists {
    fn of(buckets: Vec<BucketListed>, keys: Vec<KeySeen>) -> Self {
        let mut lists = Self::default();
        for BucketListed { id, global_aliases } in buckets {
            for name in global_aliases {
                lists.buckets.insert(name, id.clone());
            }
        }
        for key in keys {
            lists.apply(Change::Key(key));
        }
        lists
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Bucket { name, id } => drop(self.buckets.insert(name, id)),
            Change::Key(key) => {
                if let Some((bucket, _)) = names::of_key(&key.name) {
                    self.of_bucket.entry(bucket.to_owned()).or_default().insert(key.id.clone());
                }
                self.keys.insert(key.id.clone(), key);
            }
            Change::Ends { key, at } => {
                if let Some(key) = self.keys.get_mut(&key) {
                    key.ends_at = Some(at);
                }
            }
            Change::Gone { key } => {
                if let Some(gone) = self.keys.remove(&key)
                    && let Some((bucket, _)) = names::of_key(&gone.name)
                    && let Some(keys) = self.of_bucket.get_mut(bucket)
                {
                    keys.remove(&key);
                }
            }
        }
    }

    fn listing(&self, bucket: &str, recorded: Option<&str>) -> Listing {
        let mut ids: BTreeSet<&str> = recorded.into_iter().collect();
        ids.extend(self.of_bucket.get(bucket).into_iter().flatten().map(String::as_str));
        let keys = ids.into_iter().filter_map(|id| self.keys.get(id).cloned()).collect();
        Listing { bucket: self.buckets.get(bucket).cloned(), keys }
    }

    /// Names of the buckets that `old` says something else of.
    fn differing(&self, old: &Self) -> HashSet<String> {
        let names =
            |lists: &Self| -> HashSet<String> { lists.buckets.keys().chain(lists.of_bucket.keys()).cloned().collect() };
        let all: HashSet<String> = names(self).into_iter().chain(names(old)).collect();
        all.into_iter().filter(|name| self.listing(name, None) != old.listing(name, None)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str, name: &str) -> KeySeen {
        KeySeen { id: id.to_owned(), name: name.to_owned(), ends_at: None, expired: false }
    }

    fn lists(buckets: &[(&str, &str)], keys: Vec<KeySeen>) -> Lists {
        let listed =
            |(name, id): &(&str, &str)| BucketListed { id: (*id).to_owned(), global_aliases: vec![(*name).to_owned()] };
        Lists::of(buckets.iter().map(listed).collect(), keys)
    }

    #[test]
    fn a_service_is_told_of_its_own_keys_and_of_the_one_it_asks_for() {
        let keys = vec![
            key("1", "shop.cart#0.aaaaaaaa"),
            key("2", "shop.cart#1.bbbbbbbb"),
            key("3", "shop.mail#0.cccccccc"),
            key("4", "renamed"),
        ];
        let lists = lists(&[("shop.cart", "b")], keys);
        let ids = |listing: Listing| listing.keys.into_iter().map(|key| key.id).collect::<Vec<_>>();
        assert_eq!(lists.listing("shop.cart", None).bucket.as_deref(), Some("b"));
        assert_eq!(ids(lists.listing("shop.cart", Some("4"))), ["1", "2", "4"]);
        assert_eq!(ids(lists.listing("shop.cart", Some("1"))), ["1", "2"]);
        assert_eq!(lists.listing("shop.other", Some("gone")), Listing::default());
    }

    #[test]
    fn our_own_changes_are_known_at_once() {
        let census = Census::new(Duration::from_mins(1), |_| {});
        census.lock().taken = Some(Instant::now());
        census.made("shop.cart", "b");
        census.issued("1", "shop.cart#0.aaaaaaaa");
        census.issued("2", "shop.cart#1.bbbbbbbb");
        let at = Timestamp::UNIX_EPOCH;
        census.ends("1", Some(at));
        let listing = census.current("shop.cart", None).expect("current");
        assert_eq!((listing.bucket.as_deref(), listing.keys.len()), (Some("b"), 2));
        assert_eq!(listing.keys[0].ends_at, Some(at));
        census.deleted("1");
        census.ends("2", None);
        assert_eq!(census.current("shop.cart", None).expect("current").keys, []);
        census.doubt();
        assert_eq!(census.current("shop.cart", None), None);
    }

    #[test]
    fn what_new_lists_say_differently_is_named() {
        let old = lists(&[("shop.cart", "b"), ("shop.mail", "c")], vec![key("1", "shop.cart#0.aaaaaaaa")]);
        let new = lists(&[("shop.cart", "b")], vec![key("1", "shop.cart#0.aaaaaaaa"), key("2", "shop.x#0.aaaaaaaa")]);
        assert_eq!(new.differing(&old), HashSet::from(["shop.mail".to_owned(), "shop.x".to_owned()]));
    }
}
