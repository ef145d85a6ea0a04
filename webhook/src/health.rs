//! Whether this replica should get requests.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::certificates::{Moment, keeper::Outcome};

/// How long the authorities have been in both configurations before the API servers are taken to know: they hear of a
/// change by a watch, within milliseconds.
const HEARD: Moment = 1000;

/// What readiness depends on.
#[derive(Debug)]
pub struct Health {
    /// Since when the served leaf has been trusted; [`NEVER`] when it is not.
    trusted_since: AtomicI64,
    leaf_not_after: AtomicI64,
    draining: AtomicBool,
}

const NEVER: Moment = Moment::MAX;

impl Default for Health {
    fn default() -> Self {
        Self {
            trusted_since: AtomicI64::new(NEVER),
            leaf_not_after: AtomicI64::new(Moment::MIN),
            draining: AtomicBool::new(false),
        }
    }
}

impl Health {
    /// Takes note of what a pass over the certificates left.
    pub fn report(&self, outcome: &Outcome, now: Moment) {
        self.leaf_not_after.store(outcome.leaf_not_after.unwrap_or(Moment::MIN), Ordering::Relaxed);
        if outcome.trusted {
            self.trusted_since.fetch_min(now, Ordering::Relaxed);
        } else {
            self.trusted_since.store(NEVER, Ordering::Relaxed);
        }
    }

    /// Asks for no more requests: the process is about to end.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Why this replica should get no requests; none when it should.
    pub fn unready(&self, now: Moment) -> Option<&'static str> {
        let since = self.trusted_since.load(Ordering::Relaxed);
        if self.draining.load(Ordering::Relaxed) {
            Some("ending")
        } else if since == NEVER {
            Some("no certificate is served whose authority both webhook configurations carry")
        } else if self.leaf_not_after.load(Ordering::Relaxed) <= now {
            Some("the certificate has expired")
        } else if now.saturating_sub(since) < HEARD {
            Some("the API servers may not have heard of the authority yet")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_only_with_a_living_leaf_that_has_been_trusted_for_a_moment() {
        let health = Health::default();
        assert!(health.unready(0).is_some());
        let outcome = Outcome { trusted: true, leaf_not_after: Some(10_000), ..Outcome::default() };
        health.report(&outcome, 100);
        assert!(health.unready(1_099).is_some());
        assert_eq!(health.unready(1_100), None);
        health.report(&outcome, 1_000);
        assert_eq!(health.unready(1_100), None, "the first sight counts");
        assert_eq!(health.unready(10_000), Some("the certificate has expired"));
        health.report(&Outcome { trusted: false, ..outcome.clone() }, 1_200);
        assert!(health.unready(5_000).is_some());
        health.report(&outcome, 1_300);
        assert_eq!(health.unready(2_300), None);
        health.drain();
        assert_eq!(health.unready(2_300), Some("ending"));
    }
}
