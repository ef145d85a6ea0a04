//! What one pass does about one bucket.
//!
//! The order of the steps is what makes each of them safe to be the last. What is about to be made is in the status before it is made,
//! on the condition that nobody else has written there. A key is let in before it is written into the Secret, so that one that is not
//! let in is in no Secret. The Secret is looked at first and written on the condition that it is still that: two writers that overlap
//! do not undo each other. The status says when a key of before ends before the store is told to end it, so that an end is the same
//! however often it is set.

use std::sync::Arc;

use ankka_crds::{
    AnkkaBucket,
    names::storage_secret,
    resources::{AnkkaBucketStatus, FormerKey},
};
use ankka_requests::{cache::Key, report};
use jiff::Timestamp;

use crate::{
    decide::{Credential, End, Facts, Intent, Plan, Seen, decide, must_look},
    error::Error,
    memory::Held,
    names::{self, Names},
    pass::{Passes, Store},
    secret::{Place, SecretSeen, Written},
    status::{Outcome, told},
    store::{BucketSeen, Listing},
};

/// How many former keys are listed, the latest.
const LISTED: usize = 20;

/// What one pass is at.
pub(crate) struct Work<'a> {
    pub(crate) passes: &'a Passes,
    pub(crate) store: &'a Store,
    pub(crate) key: &'a Key,
    pub(crate) names: Names,
    /// As it was judged, or as our own last report has left it.
    pub(crate) bucket: Arc<AnkkaBucket>,
}

impl Work<'_> {
    /// Makes the bucket what it should be and says how it is. None when it was not the newest state that was judged. An error comes
    /// with the bucket as our own last report has left it.
    pub(crate) async fn all(mut self) -> Result<Option<()>, (Arc<AnkkaBucket>, Error)> {
        let done = self.steps().await;
        if matches!(done, Ok(Some(()))) {
            self.passes.memory.settled(self.key);
        }
        done.map_err(|error| (self.bucket, error))
    }

    async fn steps(&mut self) -> Result<Option<()>, Error> {
        let secret = self.place().look(&self.passes.wire).await?;
        if let SecretSeen::Stranger(why) = &secret {
            return self.fail("NameTaken", why.clone()).await;
        }
        let (plan, found) = self.plan(&secret).await?;
        if let Some(intent) = &plan.intent
            && self.intend(intent, plan.recovered).await?.is_none()
        {
            return Ok(None);
        }
        for key in &plan.orphans {
            self.store.garage.delete_key(key).await?;
            self.store.census.deleted(key);
        }
        let bucket = self.prepare(&plan, found).await?;
        let (key, generation) = match &plan.credential {
            Credential::Keep { key, generation } => (key.clone(), *generation),
            Credential::Lost { key, .. } => {
                let why = format!(
                    "the object store no longer has access key {key}, which secret '{}' holds; to have another one: \
                     ankka services storage reissue {}",
                    storage_secret(&self.key.name),
                    self.names.service()
                );
                return self.fail("KeyLost", why).await;
            }
            Credential::Issue { name, generation } => {
                let key = self.store.garage.make_key(name).await?;
                self.store.census.issued(&key.id, name);
                let held = Held { name: name.clone(), key, written: None };
                let Some(key) = self.hand_over(&bucket, &secret, held).await? else { return Ok(None) };
                (key, *generation)
            }
            Credential::Resume { generation } => {
                let Some(held) = self.passes.memory.held(self.key) else { return Ok(None) };
                let Some(key) = self.hand_over(&bucket, &secret, held).await? else { return Ok(None) };
                (key, *generation)
            }
        };
        let ends = self.ends(&plan);
        if self.provisioned(&plan, bucket, key, generation, &ends).await?.is_none() {
            return Ok(None);
        }
        self.end(&plan, &ends).await.map(Some)
    }

    fn place(&self) -> Place<'_> {
        Place { namespace: &self.key.namespace, names: &self.names }
    }

    /// Looks at the store and decides.
    async fn plan(&self, secret: &SecretSeen) -> Result<(Plan, Option<BucketSeen>), Error> {
        let Store { garage, census, .. } = self.store;
        let memory = &self.passes.memory;
        let recorded = self.bucket.status.as_ref().and_then(|status| status.access_key.as_deref());
        let mut listing = census.of(garage, &self.names.bucket, recorded).await?;
        let starting = memory.is_starting(self.key);
        let (mut found, mut seen) = (None, Seen::NotLookedAt);
        if must_look(&self.bucket, &listing, secret, starting, memory.is_due(self.key)) {
            found = garage.bucket(&self.names.bucket).await?;
            memory.looked(self.key);
            seen = found.as_ref().map_or(Seen::Absent, Seen::There);
            if let Some(found) = &found {
                census.made(&self.names.bucket, &found.id);
                if self.is_news(found, &listing) {
                    census.doubt();
                    listing = census.of(garage, &self.names.bucket, recorded).await?;
                }
            }
        }
        let held = memory.held(self.key);
        let plan = decide(&Facts {
            bucket: &self.bucket,
            names: &self.names,
            listing: &listing,
            seen,
            secret,
            starting,
            held: held.as_ref(),
            mark: &names::mark(),
        });
        Ok((plan, found))
    }

    /// Whether the bucket lets in a key that the platform has made and the lists do not know: another process was at work.
    fn is_news(&self, found: &BucketSeen, listing: &Listing) -> bool {
        let ours = found.keys.iter().filter(|allowed| self.names.generation(&allowed.name).is_some());
        ours.map(|allowed| &allowed.access_key_id).any(|id| !listing.keys.iter().any(|key| key.id == *id))
    }

    /// Writes down what is about to be made, before it is made.
    async fn intend(&mut self, intent: &Intent, recovered: bool) -> Result<Option<()>, Error> {
        let known = AnkkaBucketStatus {
            bucket: Some(self.names.bucket.clone()),
            bucket_id: intent.bucket_id.clone(),
            issuing: intent.issuing.clone(),
            recovered,
            ..self.known()
        };
        // What is in the Secret is as good as it was: only what is said besides is new.
        let status = if known.secret.is_some() { known } else { told(&self.bucket, known, Outcome::Making) };
        let Some(stored) = self.passes.report(&self.bucket, status).await? else { return Ok(None) };
        self.bucket = stored;
        Ok(Some(()))
    }

    /// Makes of the bucket what it should be. Its id.
    async fn prepare(&self, plan: &Plan, found: Option<BucketSeen>) -> Result<String, Error> {
        let Store { garage, census, .. } = self.store;
        let id = match found {
            Some(found) => found.id,
            None if plan.make_bucket => {
                let made = garage.make_bucket(&self.names.bucket).await?;
                census.made(&self.names.bucket, &made.id);
                made.id
            }
            None => self.known().bucket_id.unwrap_or_default(),
        };
        if let Some(origins) = &plan.origins {
            garage.admit(&id, origins).await?;
        }
        for key in &plan.allow {
            garage.allow(&id, key).await?;
        }
        Ok(id)
    }

    /// Lets a key into the bucket and writes it into the Secret. Its id; none when somebody else has written there meanwhile.
    async fn hand_over(&self, bucket: &str, seen: &SecretSeen, mut held: Held) -> Result<Option<String>, Error> {
        self.passes.memory.hold(self.key, held.clone());
        self.store.garage.allow(bucket, &held.key.id).await?;
        let there = match seen {
            SecretSeen::Ours(version) => Some(version),
            _ => None,
        };
        if held.written.is_none() || held.written.as_ref() != there {
            let Written::Done(version) = self.place().write(&self.passes.wire, seen, &held.key).await? else {
                return Ok(None);
            };
            held.written = Some(version);
        }
        let id = held.key.id.clone();
        self.passes.memory.hold(self.key, held);
        Ok(Some(id))
    }

    /// When each of the keys of before ends.
    fn ends(&self, plan: &Plan) -> Vec<(String, Timestamp)> {
        let later = Timestamp::now() + self.passes.grace;
        // In whole seconds, which the status keeps, and not before the grace is over.
        let later = Timestamp::from_second(later.as_second() + 1).unwrap_or(later);
        let at = |end: &End| match end {
            End::Kept(at) | End::Recorded(at) => *at,
            End::Open => later,
        };
        plan.former.iter().map(|(key, end)| (key.clone(), at(end))).collect()
    }

    /// Says that the Secret holds this key.
    async fn provisioned(
        &mut self,
        plan: &Plan,
        bucket_id: String,
        access_key: String,
        generation: i64,
        ends: &[(String, Timestamp)],
    ) -> Result<Option<()>, Error> {
        let mut former: Vec<_> = ends.iter().map(|(key, at)| (*at, key.clone())).collect();
        former.sort_unstable();
        let latest = former.into_iter().rev().take(LISTED).rev();
        let known = self.known();
        let known = AnkkaBucketStatus {
            bucket: Some(self.names.bucket.clone()),
            bucket_id: Some(bucket_id),
            recovered: plan.recovered,
            endpoint: Some(self.store.endpoint.clone()),
            region: Some(self.store.region.clone()),
            secret: Some(storage_secret(&self.key.name)),
            access_key: Some(access_key),
            credential_generation: generation,
            issuing: None,
            former_keys: latest.map(|(at, access_key)| FormerKey { access_key, ends_at: report::shown(at) }).collect(),
            other_keys: plan.others.clone().unwrap_or(known.other_keys),
            ..known
        };
        let status = told(&self.bucket, known, Outcome::Provisioned(plan.note.as_deref()));
        let Some(stored) = self.passes.report(&self.bucket, status).await? else { return Ok(None) };
        self.bucket = stored;
        Ok(Some(()))
    }

    /// Has the store end what the status says ends, and clears away what has ended.
    async fn end(&self, plan: &Plan, ends: &[(String, Timestamp)]) -> Result<(), Error> {
        let Store { garage, census, .. } = self.store;
        for (key, at) in ends.iter().filter(|(key, _)| !matches!(plan.former[key], End::Kept(_))) {
            census.ends(key, garage.end(key, *at).await?);
        }
        for key in &plan.expired {
            garage.delete_key(key).await?;
            census.deleted(key);
        }
        Ok(())
    }

    /// Says that somebody has to act.
    async fn fail(&self, reason: &'static str, why: String) -> Result<Option<()>, Error> {
        let status = told(&self.bucket, self.known(), Outcome::Failed(reason, &why));
        self.passes.report(&self.bucket, status).await?;
        Err(Error::Obstacle(why))
    }

    fn known(&self) -> AnkkaBucketStatus {
        self.bucket.status.clone().unwrap_or_default()
    }
}
