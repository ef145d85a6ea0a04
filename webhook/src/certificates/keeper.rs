//! One pass over Secret and configurations: read both, take the step that is due, write what differs, serve the leaf.
//!
//! Every write carries the version that was read, so that of two replicas one writes and the other reads again. The
//! configurations are read *before* the Secret: a bundle is then never put where a newer one was, because whoever put the
//! newer one there changed the version this pass holds.

use std::{future::Future, time::Duration};

use k8s_openapi::api::core::v1::Secret;
use tokio::time::Instant;

use super::{
    Moment, material,
    protocol::{Authority, Leaf, Lifetimes, Seen, State, step},
    secret::{self, Data},
    serving::Serving,
};

/// Where Secret and configurations are kept.
pub trait Cluster {
    /// Why a call did not do what was asked.
    type Error: std::fmt::Display;
    /// Reads both configurations.
    fn configurations(&self) -> impl Future<Output = Result<Vec<Configuration>, Self::Error>> + Send;
    /// Reads the Secret.
    fn secret(&self) -> impl Future<Output = Result<Stored, Self::Error>> + Send;
    /// Replaces the Secret's content if it is still the one that was read. False when it is not.
    fn put_secret(&self, read: &Stored, data: Data) -> impl Future<Output = Result<bool, Self::Error>> + Send;
    /// Sets every `caBundle` of a configuration if it is still the one that was read. False when it is not.
    fn put_bundle(&self, read: &Configuration, bundle: &str) -> impl Future<Output = Result<bool, Self::Error>> + Send;
}

/// The Secret as it was read.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its version.
    pub version: String,
    /// Its content.
    pub data: Data,
    /// The object it came in, where there is one.
    pub object: Option<Box<Secret>>,
}

/// A webhook configuration as it was read.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Which of both it is.
    pub kind: &'static str,
    /// Its version.
    pub version: String,
    /// Each webhook in it by name, with its `caBundle`.
    pub bundles: Vec<(String, Vec<u8>)>,
}

/// What a pass left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Whether something was written: there may be more to do.
    pub wrote: bool,
    /// Whether an authority is being replaced: the next step is due soon.
    pub replacing: bool,
    /// Whether a leaf is served whose authority every webhook trusts.
    pub trusted: bool,
    /// When the served leaf expires.
    pub leaf_not_after: Option<Moment>,
    /// When the signing authority expires.
    pub authority_not_after: Option<Moment>,
}

/// Why a pass did not finish.
#[derive(Debug, thiserror::Error)]
pub enum Error<E> {
    /// The API server did not do what was asked.
    #[error("{0}")]
    Cluster(E),
    /// No key or certificate could be made.
    #[error("failed to make a certificate: {0}")]
    Mint(#[from] rcgen::Error),
    /// The leaf in the Secret cannot be served.
    #[error("failed to load the certificate of the webhook: {0}")]
    Load(#[from] std::io::Error),
}

/// Keeps one replica's certificate.
#[derive(Debug)]
pub struct Keeper<C> {
    cluster: C,
    lifetimes: Lifetimes,
    minter: material::Minter,
    serving: Serving,
    /// The leaf that is served.
    leaf: Option<Leaf>,
}

impl<C: Cluster> Keeper<C> {
    /// A keeper that has done nothing yet. `minter` says the names leaves are good for.
    pub fn new(cluster: C, lifetimes: Lifetimes, minter: material::Minter, serving: Serving) -> Self {
        Self { cluster, lifetimes, minter, serving, leaf: None }
    }

    /// One pass at `now`.
    pub async fn pass(&mut self, now: Moment) -> Result<Outcome, Error<C::Error>> {
        let began = Instant::now();
        let configurations = self.cluster.configurations().await.map_err(Error::Cluster)?;
        let seen = seen(&configurations);
        let stored = self.cluster.secret().await.map_err(Error::Cluster)?;
        if began.elapsed() > self.stale() {
            // What was seen first may be old by now (the process was frozen, say): look again before deciding.
            return Ok(self.outcome(&seen, None, true));
        }
        let state = secret::read(&stored.data, &self.minter.dns_names[0]);
        if let Some(wanted) = step(&state, &seen, now, &self.lifetimes, &mut self.minter)? {
            let data = secret::write(&wanted, &stored.data);
            let won = self.cluster.put_secret(&stored, data).await.map_err(Error::Cluster)?;
            if won {
                log(&state, &wanted);
            }
            return Ok(self.outcome(&seen, Some(&wanted), true));
        }
        let bundle = state.bundle();
        let mut wrote = false;
        for configuration in &configurations {
            if configuration.bundles.iter().any(|(_, found)| found != bundle.as_bytes()) {
                wrote = true;
                let won = self.cluster.put_bundle(configuration, &bundle).await.map_err(Error::Cluster)?;
                tracing::info!(kind = configuration.kind, won, "wrote the authorities to trust");
            }
        }
        self.load(&state)?;
        Ok(self.outcome(&seen, Some(&state), wrote))
    }

    fn stale(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.lifetimes.overlap / 2).unwrap_or_default())
    }

    /// Serves the leaf in the Secret. Where that one is broken or missing, the one before stays in use.
    fn load(&mut self, state: &State) -> std::io::Result<()> {
        if let Some(leaf) = state.leaf.as_ref().filter(|leaf| self.leaf.as_ref() != Some(leaf)) {
            self.serving.load(leaf.certificate.as_bytes(), leaf.key.as_bytes())?;
            tracing::info!(
                issuer = &leaf.issuer[..16],
                not_after = rfc3339(leaf.not_after),
                "serving a new certificate"
            );
            self.leaf = Some(leaf.clone());
        }
        Ok(())
    }

    fn outcome(&self, seen: &Seen, state: Option<&State>, wrote: bool) -> Outcome {
        Outcome {
            wrote,
            replacing: state.is_some_and(|state| state.next.is_some()),
            trusted: self.leaf.as_ref().is_some_and(|leaf| seen.everywhere(&leaf.issuer)),
            leaf_not_after: self.leaf.as_ref().map(|leaf| leaf.not_after),
            authority_not_after: state.and_then(|state| Some(state.current.as_ref()?.not_after)),
        }
    }
}

fn seen(configurations: &[Configuration]) -> Seen {
    let bundles = configurations.iter().flat_map(|configuration| &configuration.bundles);
    Seen { bundles: bundles.map(|(_, bundle)| material::authorities(bundle)).collect() }
}

fn rfc3339(moment: Moment) -> String {
    jiff::Timestamp::from_millisecond(moment).map(|time| time.to_string()).unwrap_or_default()
}

fn log(before: &State, after: &State) {
    let id = |authority: &Option<Authority>| {
        authority.as_ref().map(|authority| authority.id[..16].to_owned()).unwrap_or_default()
    };
    tracing::info!(
        authority = id(&after.current),
        next = id(&after.next),
        former = after.former.len(),
        issued = before.leaf != after.leaf,
        "wrote the certificate's Secret"
    );
}
