//! How certificates are replaced with no moment at which a replica serves one that the API server does not trust. Pure:
//! the Secret's content, the configurations' content and the time go in, the Secret's next content comes out.
//!
//! An authority is replaced in steps, each of which needs only that the one before it is visible:
//!
//! 1. `next` is made. From then on it is in the bundle, beside `current`.
//! 2. Both configurations carry it: the time is written down.
//! 3. After the overlap, when every API server has long seen it, it becomes `current` and signs the leaf. The former one
//!    stays in the bundle.
//! 4. When the last leaf it signed has expired, the former authority is dropped. A replica that has seen nothing of all this
//!    serves an expired leaf by then, and says itself that it is not ready.
//!
//! A leaf is replaced by one of the same authority at any time: both are trusted while replicas pick it up.

use std::collections::BTreeSet;

use super::Moment;

/// Identifies an authority: hex SHA-256 of its certificate.
pub type Id = String;

/// API servers hear of a change by a watch, within milliseconds; this is ample.
const HEARD: Moment = 2000;

/// How long things are good for, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    /// An authority; the next one is made when a third is left.
    pub authority: Moment,
    /// A leaf; replaced when a third is left.
    pub leaf: Moment,
    /// How long a new authority is in both configurations before it signs what is served.
    pub overlap: Moment,
}

impl Lifetimes {
    /// The same in whole seconds.
    pub fn of_seconds(authority: i64, leaf: i64, overlap: i64) -> Self {
        Self { authority: authority * 1000, leaf: leaf * 1000, overlap: overlap * 1000 }
    }
}

/// A certificate authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// Digest of the certificate.
    pub id: Id,
    /// When it expires.
    pub not_after: Moment,
    /// The certificate, PEM.
    pub certificate: String,
    /// Its private key, PEM. Empty where the authority no longer signs.
    pub key: String,
}

/// A serving certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The authority that signed it.
    pub issuer: Id,
    /// When it expires.
    pub not_after: Moment,
    /// The certificate, PEM.
    pub certificate: String,
    /// Its private key, PEM.
    pub key: String,
}

/// A former authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Former {
    /// The authority, without its key.
    pub authority: Authority,
    /// Until when it stays trusted.
    pub until: Moment,
}

/// What the Secret holds. Only sound parts: what is broken there is absent here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The authority that signs leaves.
    pub current: Option<Authority>,
    /// The authority that will.
    pub next: Option<Authority>,
    /// Since when `next` has been in both configurations.
    pub next_trusted_at: Option<Moment>,
    /// Authorities that no longer sign and are still trusted.
    pub former: Vec<Former>,
    /// The leaf to serve, signed by `current` or a former authority.
    pub leaf: Option<Leaf>,
}

impl State {
    /// Every authority to trust, the signing one first.
    pub fn trusted(&self) -> impl Iterator<Item = &Authority> {
        self.current.iter().chain(&self.next).chain(self.former.iter().map(|former| &former.authority))
    }

    /// What both configurations must carry as `caBundle`.
    pub fn bundle(&self) -> String {
        self.trusted().map(|authority| authority.certificate.as_str()).collect()
    }
}

/// The authorities in each `caBundle` of both configurations, as last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// One list for each webhook.
    pub bundles: Vec<Vec<Authority>>,
}

impl Seen {
    /// Whether every webhook trusts `id`.
    pub fn everywhere(&self, id: &str) -> bool {
        !self.bundles.is_empty() && self.bundles.iter().all(|bundle| bundle.iter().any(|found| found.id == id))
    }

    fn anywhere(&self) -> impl Iterator<Item = &Authority> {
        self.bundles.iter().flatten()
    }
}

/// Makes key pairs and certificates.
pub trait Mint {
    /// Why nothing was made.
    type Error;
    /// A new authority, good until `not_after`.
    fn authority(&mut self, now: Moment, not_after: Moment) -> Result<Authority, Self::Error>;
    /// A new leaf signed by `authority`, good until `not_after`.
    fn leaf(&mut self, authority: &Authority, now: Moment, not_after: Moment) -> Result<Leaf, Self::Error>;
}

/// What the Secret should hold next; none when it is right as it is.
pub fn step<M: Mint>(
    stored: &State,
    seen: &Seen,
    now: Moment,
    lifetimes: &Lifetimes,
    mint: &mut M,
) -> Result<Option<State>, M::Error> {
    let mut state = stored.clone();
    forget_expired(&mut state, now);
    distrust_unseen(&mut state, seen, now, lifetimes);
    begin(&mut state, seen, now, lifetimes, mint)?;
    advance(&mut state, seen, now, lifetimes);
    renew(&mut state, now, lifetimes, mint)?;
    Ok((state != *stored).then_some(state))
}

fn forget_expired(state: &mut State, now: Moment) {
    let lives = |authority: &Authority| authority.not_after > now;
    state.current = state.current.take().filter(lives);
    state.next = state.next.take().filter(lives);
    state.former.retain(|former| former.until > now && lives(&former.authority));
    state.leaf = state.leaf.take().filter(|leaf| leaf.not_after > now);
}

/// A signing authority that no configuration carries, while they carry others, came here past the protocol (somebody
/// wrote the Secret by hand, or took another installation's): it starts over as the next one.
fn distrust_unseen(state: &mut State, seen: &Seen, now: Moment, lifetimes: &Lifetimes) {
    let unseen = |current: &Authority| {
        seen.anywhere().any(|found| found.not_after > now) && seen.anywhere().all(|found| found.id != current.id)
    };
    let Some(current) = state.current.take_if(|current| unseen(current)) else {
        return;
    };
    if state.next.is_some() {
        retire(state, current, now, lifetimes);
    } else {
        state.leaf = state.leaf.take().filter(|leaf| leaf.issuer != current.id);
        state.next = Some(current);
        state.next_trusted_at = None;
    }
}

/// Makes the authority that is missing.
///
/// Where nothing is trusted yet nothing can break, so the first authority signs at once. Where the Secret was lost,
/// replicas go on serving the leaf they have: what is trusted stays so, and the new authority waits like any other.
fn begin<M: Mint>(
    state: &mut State,
    seen: &Seen,
    now: Moment,
    lifetimes: &Lifetimes,
    mint: &mut M,
) -> Result<(), M::Error> {
    let due = state.current.as_ref().is_none_or(|current| is_due(current.not_after, now, lifetimes.authority));
    if due && state.next.as_ref().is_none_or(|next| is_due(next.not_after, now, lifetimes.authority)) {
        state.next = Some(mint.authority(now, in_seconds(now + lifetimes.authority))?);
        state.next_trusted_at = None;
    }
    if state.current.is_some() {
        return Ok(());
    }
    let known: BTreeSet<Id> = state.trusted().map(|authority| authority.id.clone()).collect();
    let mut adopted: Vec<&Authority> =
        seen.anywhere().filter(|found| found.not_after > now && !known.contains(&found.id)).collect();
    adopted.sort_by(|one, other| one.id.cmp(&other.id));
    adopted.dedup_by(|one, other| one.id == other.id);
    for authority in adopted {
        retire(state, authority.clone(), now, lifetimes);
    }
    if state.former.is_empty() && seen.anywhere().all(|found| found.not_after <= now) {
        state.current = state.next.take();
        state.next_trusted_at = None;
    }
    Ok(())
}

/// Takes the next authority one step on, if what the step needs is visible.
fn advance(state: &mut State, seen: &Seen, now: Moment, lifetimes: &Lifetimes) {
    let Some(next) = &state.next else { return };
    // An authority that ends within the overlap (the installation asked for shorter lives until now) is not waited for
    // any longer than the API servers need to hear of the next one.
    let ending = state.current.as_ref().is_some_and(|current| current.not_after - now <= lifetimes.overlap);
    let wait = if ending { lifetimes.overlap.min(HEARD) } else { lifetimes.overlap };
    match (seen.everywhere(&next.id), state.next_trusted_at) {
        (false, _) => state.next_trusted_at = None,
        (true, None) => state.next_trusted_at = Some(now),
        (true, Some(since)) if since + wait <= now => {
            let next = state.next.take();
            state.next_trusted_at = None;
            if let Some(former) = std::mem::replace(&mut state.current, next) {
                retire(state, former, now, lifetimes);
            }
        }
        (true, Some(_)) => {}
    }
}

/// Keeps trusting `authority`, until the last leaf it may have signed has expired.
fn retire(state: &mut State, authority: Authority, now: Moment, lifetimes: &Lifetimes) {
    let signed = state.leaf.as_ref().map_or(now, |leaf| leaf.not_after);
    let until = signed.max(now + lifetimes.leaf.max(lifetimes.overlap));
    state.former.push(Former { authority: Authority { key: String::new(), ..authority }, until });
}

/// Issues the leaf, where there is none, the signer is another one by now, or a third of its life is left.
fn renew<M: Mint>(state: &mut State, now: Moment, lifetimes: &Lifetimes, mint: &mut M) -> Result<(), M::Error> {
    let Some(current) = &state.current else {
        return Ok(());
    };
    // A leaf does not outlive its authority; one that could not live longer than the one there is, is not made.
    let not_after = in_seconds(now + lifetimes.leaf).min(current.not_after);
    let good = state.leaf.as_ref().is_some_and(|leaf| {
        let better = not_after > leaf.not_after || is_overlong(leaf.not_after, now, lifetimes.leaf);
        leaf.issuer == current.id && !(better && is_due(leaf.not_after, now, lifetimes.leaf))
    });
    if !good {
        state.leaf = Some(mint.leaf(current, now, not_after)?);
    }
    Ok(())
}

/// Whether it is time for another one: a third of `lifetime` or less is left, or so much more that it was made when the
/// installation asked for a longer one.
fn is_due(not_after: Moment, now: Moment, lifetime: Moment) -> bool {
    let left = not_after - now;
    left <= lifetime / 3 || is_overlong(not_after, now, lifetime)
}

/// With room for clocks that differ.
fn is_overlong(not_after: Moment, now: Moment, lifetime: Moment) -> bool {
    not_after - now > lifetime + lifetime / 3
}

/// Certificates know whole seconds.
fn in_seconds(moment: Moment) -> Moment {
    moment.div_euclid(1000) * 1000
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test ends where it fails")]
mod tests;
