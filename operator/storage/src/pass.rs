//! One pass over one bucket: observe, decide, act, report.

use std::{sync::Arc, time::Duration};

use ankka_crds::{AnkkaBucket, resources::AnkkaBucketStatus};
use ankka_requests::{
    cache::{Cache, Key},
    place::{Elsewhere, project_of},
    report::{self, SOON, is_news},
};
use ankka_runtime::{
    metrics::Metrics,
    queue::Next,
    wire::Wire,
    workers::{self, Subject},
};
use jiff::Timestamp;
use kube::Client;

use crate::{
    error::Error,
    memory::Memory,
    names::Names,
    settings::Settings,
    status::{Outcome, told, with_times},
    store::{Census, Garage, StoreError},
    work::Work,
};

/// How long one pass may take.
const DEADLINE: Duration = Duration::from_mins(2);

/// How often what was found may differ from what was decided on before a pass gives up for now.
const ROUNDS: usize = 3;

/// What the document says of an installation without a store.
const NO_STORE: &str = "the installation has no object store";

/// The store that is fulfilled by another process.
const ELSEWHERE: &str = "gcs";

/// Name under which the controller writes.
pub const MANAGER: &str = "ankka-storage";

/// The store, and what services are told of it.
pub struct Store {
    /// The store itself.
    pub garage: Arc<Garage>,
    /// What is in it.
    pub census: Census,
    /// Its S3 address.
    pub endpoint: String,
    /// The region to sign for.
    pub region: String,
}

/// Passes over buckets.
pub struct Passes {
    prefix: String,
    own_namespace: String,
    pub(crate) grace: Duration,
    cache: Arc<Cache<AnkkaBucket>>,
    store: Option<Store>,
    pub(crate) memory: Memory,
    pub(crate) wire: Wire,
}

impl Passes {
    /// Passes over what is in `cache`, which write through `client` and to `store`.
    pub fn new(
        settings: &Settings,
        client: Client,
        store: Option<Store>,
        cache: &Arc<Cache<AnkkaBucket>>,
        metrics: &Arc<Metrics>,
    ) -> Self {
        Self {
            prefix: settings.prefix.clone(),
            own_namespace: settings.own_namespace.clone(),
            grace: settings.grace,
            cache: cache.clone(),
            store,
            memory: Memory::default(),
            wire: Wire { client, manager: MANAGER, metrics: metrics.clone() },
        }
    }

    async fn pass(&self, key: &Key) -> Result<Next, Error> {
        for _ in 0..ROUNDS {
            let Some(bucket) = self.cache.get(key).filter(|bucket| bucket.spec.store != ELSEWHERE) else {
                self.memory.forget(key);
                return Ok(Next::Forget);
            };
            if bucket.metadata.deletion_timestamp.is_some() {
                return Ok(Next::Resync);
            }
            let namespace = self.cache.namespace(&key.namespace);
            let names = match project_of(&self.prefix, &self.own_namespace, &key.namespace, namespace.as_ref()) {
                Ok(project) => Names::new(project, &key.name),
                Err(Elsewhere::Terminating) => return Ok(Next::Resync),
                Err(Elsewhere::NoProject(_)) if namespace.is_none() && is_news(&*bucket) => {
                    return Ok(Next::After(SOON));
                }
                Err(Elsewhere::NoProject(why)) => return self.refuse(&bucket, "NoProject", &why).await,
            };
            let store = match self.place(key, &bucket, &names) {
                Ok(store) => store,
                Err((reason, why)) => return self.refuse(&bucket, reason, &why).await,
            };
            match (Work { passes: self, store, key, names, bucket }).all().await {
                Ok(Some(())) => return Ok(Next::Resync),
                // The API server knows a newer state than the one that was judged: it is on its way here.
                Ok(None) => return Ok(Next::After(SOON)),
                Err((_, Error::Store(StoreError::Raced(_)))) => {}
                Err((bucket, error)) => return self.tell(key, &bucket, store, error).await,
            }
        }
        Err(Error::Unsteady(format!("bucket {} in {}", key.name, key.namespace)))
    }

    /// The store that the bucket can be in, or why it can be in none.
    fn place(&self, key: &Key, bucket: &AnkkaBucket, names: &Names) -> Result<&Store, (&'static str, String)> {
        if !bucket.spec.credential {
            let why = "objectStorageCredential: a bucket in Garage is reached only with a storage credential";
            return Err(("NoCredential", why.to_owned()));
        }
        let problems = ankka_crds::rules::refused_by_garage(&names.bucket);
        if !problems.is_empty() {
            return Err(("NameRefused", problems.join("; ")));
        }
        if let Some(other) = self.same_secret(key, bucket) {
            let secret = ankka_crds::names::storage_secret(&key.name);
            let why = format!(
                "secret '{secret}' is that of service '{other}', whose bucket is older; another service name is the only fix"
            );
            return Err(("NameTaken", why));
        }
        self.store.as_ref().ok_or_else(|| ("NoObjectStore", NO_STORE.to_owned()))
    }

    /// The older service on Google Cloud Storage whose Secret has the same name.
    fn same_secret(&self, key: &Key, bucket: &AnkkaBucket) -> Option<Arc<str>> {
        let name: Arc<str> = key.name.strip_suffix("-cloud")?.into();
        let other = self.cache.get(&Key { namespace: key.namespace.clone(), name: name.clone() })?;
        let age = |bucket: &AnkkaBucket| {
            (bucket.metadata.creation_timestamp.as_ref().map(|time| time.0), bucket.metadata.uid.clone())
        };
        (other.spec.store == ELSEWHERE && age(&other) < age(bucket)).then_some(name)
    }

    /// Says that nothing can be made.
    async fn refuse(&self, bucket: &Arc<AnkkaBucket>, reason: &'static str, why: &str) -> Result<Next, Error> {
        let known = bucket.status.clone().unwrap_or_default();
        let status = told(bucket, known, Outcome::Failed(reason, why));
        Ok(self.report(bucket, status).await?.map_or(Next::After(SOON), |_| Next::Resync))
    }

    /// Says why a pass did not finish.
    async fn tell(&self, key: &Key, bucket: &Arc<AnkkaBucket>, store: &Store, error: Error) -> Result<Next, Error> {
        if matches!(error, Error::Store(StoreError::Unavailable(_))) {
            store.census.doubt();
        }
        report::unfinished(key, self.explain(bucket, &error).await, error)
    }

    /// Says why a pass did not finish, where that is of interest to whoever waits for the bucket. None when it was not the
    /// newest state that was judged.
    async fn explain(&self, bucket: &Arc<AnkkaBucket>, error: &Error) -> Result<Option<()>, Error> {
        let refusal;
        let outcome = match error {
            Error::Store(StoreError::Unavailable(why) | StoreError::Down(why)) => Outcome::Waiting(why),
            Error::Store(StoreError::Refused(why)) => Outcome::Failed("Refused", why),
            Error::Api(error) => match error.refusal() {
                Some(why) => {
                    refusal = why;
                    Outcome::Failed("WriteRefused", &refusal)
                }
                None => return Ok(Some(())),
            },
            _ => return Ok(Some(())),
        };
        let status = told(bucket, bucket.status.clone().unwrap_or_default(), outcome);
        Ok(self.report(bucket, status).await?.map(drop))
    }

    /// Writes a status, when it says something new. None when the state of the object that was judged is no longer the stored
    /// one; else the object with that status.
    pub(crate) async fn report(
        &self,
        bucket: &Arc<AnkkaBucket>,
        status: AnkkaBucketStatus,
    ) -> Result<Option<Arc<AnkkaBucket>>, Error> {
        let now = report::shown(Timestamp::now());
        let Some(status) = with_times(bucket.status.as_ref(), status, &now) else { return Ok(Some(bucket.clone())) };
        Ok(report::write(&self.wire, &self.cache, &**bucket, "AnkkaBucket/status", &status).await?)
    }
}

impl workers::Passes<Key> for Passes {
    async fn one(&self, key: &Key) -> Next {
        let subject = Subject { kind: "Bucket", namespace: Some(&key.namespace), name: &key.name };
        workers::reported(subject, &self.wire.metrics, DEADLINE, self.pass(key)).await
    }
}
