//! The decision: what is missing in the store, which access key the Secret is to hold, and which others are to end.

use std::collections::BTreeMap;

use ankka_crds::{AnkkaBucket, resources::AnkkaBucketStatus};
use jiff::Timestamp;

use crate::{
    memory::Held,
    names::Names,
    secret::SecretSeen,
    status::is_settled,
    store::{BucketSeen, KeySeen, Listing},
};

/// How many access keys of others are listed.
const LISTED: usize = 20;

/// Everything one decision rests on.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// What is asked for.
    pub bucket: &'a AnkkaBucket,
    /// The names of what belongs to it.
    pub names: &'a Names,
    /// What the store's lists say.
    pub listing: &'a Listing,
    /// The bucket itself, where it was looked at.
    pub seen: Seen<'a>,
    /// What there is of the Secret.
    pub secret: &'a SecretSeen,
    /// No pass over it has come to its end since this process began to act.
    pub starting: bool,
    /// A key whose secret is known, and which the status does not know yet.
    pub held: Option<&'a Held>,
    /// Tells a key that has to be made from all others.
    pub mark: &'a str,
}

/// The bucket itself.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// The lists were enough.
    NotLookedAt,
    /// There is none.
    Absent,
    /// There it is.
    There(&'a BucketSeen),
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What is about to be made, for the status to say before it is.
    pub intent: Option<Intent>,
    /// The bucket was there before this record of it.
    pub recovered: bool,
    /// Keys whose making nobody heard of: they are in no Secret.
    pub orphans: Vec<String>,
    /// The bucket is missing.
    pub make_bucket: bool,
    /// The origins that the bucket's CORS rule is to admit, where it says something else.
    pub origins: Option<Vec<String>>,
    /// Keys that are to be let into a bucket that was made anew.
    pub allow: Vec<String>,
    /// The key that the Secret is to hold.
    pub credential: Credential,
    /// The keys before it, and when each ends.
    pub former: BTreeMap<String, End>,
    /// Keys that the store does not accept any more.
    pub expired: Vec<String>,
    /// Keys of others that are let in, where the bucket was looked at.
    pub others: Option<Vec<String>>,
    /// What is to be known about a bucket that is as the platform has left it.
    pub note: Option<String>,
}

/// What is about to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The key's name, where one is made.
    pub issuing: Option<String>,
    /// The bucket that is there.
    pub bucket_id: Option<String>,
}

/// The key that the Secret is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// It holds this one.
    Keep {
        /// Its id.
        key: String,
        /// Its generation.
        generation: i64,
    },
    /// It holds this one, which the store has lost.
    Lost {
        /// Its id.
        key: String,
        /// Its generation.
        generation: i64,
    },
    /// A new one, made under this name.
    Issue {
        /// The name.
        name: String,
        /// Its generation.
        generation: i64,
    },
    /// The one whose secret is known.
    Resume {
        /// Its generation.
        generation: i64,
    },
}

/// When a key of before ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Then: the store keeps it.
    Kept(Timestamp),
    /// Then: the status says so, and the store does not know yet.
    Recorded(Timestamp),
    /// A grace from now.
    Open,
}

/// Whether the bucket itself has to be looked at: the lists say little of it. `due` when that was long ago.
pub fn must_look(bucket: &AnkkaBucket, listing: &Listing, secret: &SecretSeen, starting: bool, due: bool) -> bool {
    let Some(status) = &bucket.status else { return true };
    let missing = status.access_key.as_ref().is_none_or(|key| !listing.keys.iter().any(|seen| seen.id == *key));
    due || bucket.spec.exposed
        || status.observed_generation != bucket.metadata.generation
        || !is_settled(status)
        || status.issuing.is_some()
        || listing.bucket.is_none()
        || listing.bucket != status.bucket_id
        || !matches!(secret, SecretSeen::Ours(_))
        || (missing && starting)
}

/// Decides about one bucket.
pub fn decide(facts: &Facts<'_>) -> Plan {
    let none = AnkkaBucketStatus::default();
    let judged = Judged { facts, status: facts.bucket.status.as_ref().unwrap_or(&none) };
    let credential = judged.credential();
    let orphans = match credential {
        Credential::Issue { .. } => judged.orphans(),
        _ => Vec::new(),
    };
    let chosen = match &credential {
        Credential::Keep { key, .. } | Credential::Lost { key, .. } => Some(key.as_str()),
        Credential::Resume { .. } => facts.held.map(|held| held.key.id.as_str()),
        Credential::Issue { .. } => None,
    };
    let before =
        || facts.listing.keys.iter().filter(|key| Some(key.id.as_str()) != chosen && !orphans.contains(&key.id));
    let former: BTreeMap<String, End> =
        before().filter(|key| !key.expired).map(|key| (key.id.clone(), judged.end(key))).collect();
    let make_bucket = matches!(facts.seen, Seen::Absent);
    let known = judged.status.bucket.is_some();
    Plan {
        intent: judged.intent(&credential, make_bucket),
        recovered: if known { judged.status.recovered } else { !make_bucket },
        make_bucket,
        origins: judged.origins(),
        allow: judged.allow(&credential, &former),
        expired: before().filter(|key| key.expired).map(|key| key.id.clone()).collect(),
        others: judged.others(),
        note: judged.note(&credential),
        orphans,
        credential,
        former,
    }
}

struct Judged<'a> {
    facts: &'a Facts<'a>,
    status: &'a AnkkaBucketStatus,
}

impl Judged<'_> {
    fn credential(&self) -> Credential {
        let Facts { bucket, names, listing, .. } = self.facts;
        let asked = bucket.spec.credential_generation.max(0);
        let interrupted = self.status.issuing.as_deref().and_then(|name| names.generation(name));
        let is_ours = matches!(self.facts.secret, SecretSeen::Ours(_));
        let Some(key) = &self.status.access_key else {
            return match interrupted {
                Some(generation) => self.issue(generation.max(asked)),
                None if is_ours => self.adopt(asked),
                None => self.issue(self.latest().max(asked)),
            };
        };
        let generation = self.status.credential_generation;
        let listed = listing.keys.iter().any(|seen| seen.id == *key);
        match interrupted {
            Some(begun) => self.issue(begun.max(asked).max(generation)),
            None if asked > generation => self.issue(asked),
            // Instances may run with the one that was in it, which ends: they have to be replaced.
            None if !is_ours => self.issue(generation.saturating_add(1)),
            None if listed => Credential::Keep { key: key.clone(), generation },
            None if self.facts.starting => self.issue(generation),
            None => Credential::Lost { key: key.clone(), generation },
        }
    }

    /// The key of a Secret that is there although nothing is recorded: the only one that it can hold.
    fn adopt(&self, asked: i64) -> Credential {
        let can_be_it = |key: &&KeySeen| {
            let reaches = match self.facts.seen {
                Seen::There(bucket) => bucket.lets_in(&key.id),
                _ => true,
            };
            key.ends_at.is_none() && !key.expired && reaches
        };
        let mut candidates = self.facts.listing.keys.iter().filter(can_be_it);
        let latest = self.latest().max(asked);
        match (candidates.next(), candidates.next()) {
            (Some(only), None) => match self.facts.names.generation(&only.name) {
                Some(generation) if generation >= asked => Credential::Keep { key: only.id.clone(), generation },
                _ => self.issue(latest),
            },
            _ => self.issue(latest),
        }
    }

    /// The latest generation that a key was made of.
    fn latest(&self) -> i64 {
        let all = self.facts.listing.keys.iter().filter_map(|key| self.facts.names.generation(&key.name));
        all.max().unwrap_or_default()
    }

    /// A key of this generation: the one that was begun and whose secret is known, or a new one.
    fn issue(&self, generation: i64) -> Credential {
        let Facts { names, listing, held, mark, .. } = self.facts;
        let begun = held.is_some_and(|held| {
            self.status.issuing.as_deref() == Some(&held.name)
                && names.generation(&held.name) == Some(generation)
                && listing.keys.iter().any(|key| key.id == held.key.id)
        });
        if begun {
            Credential::Resume { generation }
        } else {
            Credential::Issue { name: names.key(generation, mark), generation }
        }
    }

    /// Keys that were made under the name that the status says, and that nobody has ever let in: a key is let in before it is written
    /// into the Secret. Not where the bucket was made anew meanwhile, which lets nobody in.
    fn orphans(&self) -> Vec<String> {
        let (Some(name), Seen::There(bucket)) = (&self.status.issuing, self.facts.seen) else { return Vec::new() };
        let same = match &self.status.bucket_id {
            Some(id) => *id == bucket.id,
            None => self.status.secret.is_none(),
        };
        let orphans =
            self.facts.listing.keys.iter().filter(|key| same && key.name == *name && !bucket.lets_in(&key.id));
        orphans.map(|key| key.id.clone()).collect()
    }

    fn end(&self, key: &KeySeen) -> End {
        let recorded = || {
            let known = self.status.former_keys.iter().find(|former| former.access_key == key.id)?;
            known.ends_at.parse().ok()
        };
        key.ends_at.map(End::Kept).or_else(|| recorded().map(End::Recorded)).unwrap_or(End::Open)
    }

    fn intent(&self, credential: &Credential, make_bucket: bool) -> Option<Intent> {
        let issuing = match credential {
            Credential::Issue { name, .. } => Some(name.clone()),
            _ => None,
        };
        let first = make_bucket && self.status.bucket.is_none();
        let there = match self.facts.seen {
            Seen::There(bucket) => Some(bucket.id.clone()),
            _ => None,
        };
        (issuing.is_some() || first).then(|| Intent {
            issuing: issuing.or_else(|| self.status.issuing.clone()),
            // One that differs from what was recorded was made anew, which is not to be forgotten before its keys are let in.
            bucket_id: self.status.bucket_id.clone().or(there),
        })
    }

    fn origins(&self) -> Option<Vec<String>> {
        let spec = &self.facts.bucket.spec;
        let wanted = if spec.exposed { spec.origins.clone() } else { Vec::new() };
        let differs = match self.facts.seen {
            Seen::There(bucket) => !bucket.admits(&wanted),
            Seen::Absent => !wanted.is_empty(),
            Seen::NotLookedAt => false,
        };
        differs.then_some(wanted)
    }

    /// The keys that are in use and are let into a bucket that was made anew.
    fn allow(&self, credential: &Credential, former: &BTreeMap<String, End>) -> Vec<String> {
        let anew = match self.facts.seen {
            Seen::There(bucket) => self.status.bucket_id.as_ref().is_some_and(|id| *id != bucket.id),
            Seen::Absent => true,
            Seen::NotLookedAt => false,
        };
        let kept = match credential {
            Credential::Keep { key, .. } => Some(key.clone()),
            _ => None,
        };
        let in_use = kept.into_iter().chain(former.keys().cloned());
        in_use.filter(|_| anew).filter(|key| !self.is_open_to(key)).collect()
    }

    fn is_open_to(&self, key: &str) -> bool {
        matches!(self.facts.seen, Seen::There(bucket) if bucket.is_open_to(key))
    }

    fn others(&self) -> Option<Vec<String>> {
        let Seen::There(bucket) = self.facts.seen else { return None };
        let ours = |id: &str| self.facts.listing.keys.iter().any(|key| key.id == id);
        let ids = bucket.keys.iter().map(|allowed| &allowed.access_key_id);
        let mut others: Vec<String> = ids.filter(|id| bucket.lets_in(id) && !ours(id)).cloned().collect();
        others.sort_unstable();
        others.truncate(LISTED);
        Some(others)
    }

    /// What somebody has done to the key in the Secret, which is left as it is.
    fn note(&self, credential: &Credential) -> Option<String> {
        let (Credential::Keep { key, .. }, Seen::There(bucket)) = (credential, self.facts.seen) else { return None };
        let reissue = format!("to have another one: ankka services storage reissue {}", self.facts.names.service());
        let listed = self.facts.listing.keys.iter().find(|listed| listed.id == *key);
        if let Some(at) = listed.and_then(|listed| listed.ends_at) {
            return Some(format!("somebody has given access key {key} an end, {at}; {reissue}"));
        }
        let same = self.status.bucket_id.as_ref().is_none_or(|id| *id == bucket.id);
        (same && !bucket.is_open_to(key)).then(|| {
            let name = &self.facts.names.bucket;
            format!("somebody has taken from access key {key} what it may do with bucket '{name}'; give it back, or, {reissue}")
        })
    }
}

#[cfg(test)]
mod tests;
