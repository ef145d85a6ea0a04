//! Repairs: writes that put right what somebody else has changed.
//!
//! A change made by hand is undone at once. A program that changes it again each time would have both of us write as fast
//! as we can, for ever: after some repairs in a row each further one waits longer.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{cache::Key, queue::Timing};

/// How many repairs in a row are made at once.
const AT_ONCE: u32 = 10;

/// How long after a repair that needed no wait, or after the wait of one that did, the next is no longer in a row with it.
const CALM: Duration = Duration::from_mins(1);

/// How many objects are remembered before those that have calmed down are forgotten.
const REMEMBERED: usize = 1024;

/// Which objects were put right lately, and how often in a row.
#[derive(Debug)]
pub struct Repairs {
    timing: Timing,
    rows: Mutex<HashMap<Key, Row>>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    count: u32,
    last: Instant,
}

impl Repairs {
    /// None yet. What has to wait waits as long as after a failure.
    pub fn new(timing: Timing) -> Self {
        Self { timing, rows: Mutex::default() }
    }

    /// How long the next repair of this object has to wait; zero when it may be made now.
    pub fn wait(&self, key: &Key) -> Duration {
        let row = self.lock().get(key).copied();
        row.map_or(Duration::ZERO, |row| self.pause(row).saturating_sub(row.last.elapsed()))
    }

    /// A repair was made.
    pub fn made(&self, key: Key) {
        let mut rows = self.lock();
        if rows.len() >= REMEMBERED {
            rows.retain(|_, row| !self.is_calm(*row));
        }
        let earlier = rows.get(&key).filter(|row| !self.is_calm(**row)).map_or(0, |row| row.count);
        rows.insert(key, Row { count: earlier.saturating_add(1), last: Instant::now() });
    }

    fn pause(&self, row: Row) -> Duration {
        match row.count.checked_sub(AT_ONCE) {
            None => Duration::ZERO,
            Some(further) => self.timing.backoff(further.saturating_add(1)),
        }
    }

    fn is_calm(&self, row: Row) -> bool {
        row.last.elapsed() > self.pause(row) + CALM
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing = Timing {
        resync: Duration::from_mins(5),
        min_backoff: Duration::from_secs(2),
        max_backoff: Duration::from_mins(5),
    };

    fn key(name: &str) -> Key {
        Key::Project(name.into())
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_are_made_at_once_and_each_further_one_waits_longer() {
        let repairs = Repairs::new(TIMING);
        for _ in 0..AT_ONCE {
            assert_eq!(repairs.wait(&key("a")), Duration::ZERO);
            repairs.made(key("a"));
        }
        for seconds in [2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            assert_eq!(repairs.wait(&key("a")), Duration::from_secs(seconds));
            assert_eq!(repairs.wait(&key("b")), Duration::ZERO, "another object has nothing to do with it");
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            assert_eq!(repairs.wait(&key("a")), Duration::ZERO);
            repairs.made(key("a"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_it_alone_for_a_while_is_undone_at_once_again() {
        let repairs = Repairs::new(TIMING);
        for _ in 0..AT_ONCE + 3 {
            repairs.made(key("a"));
        }
        tokio::time::sleep(Duration::from_secs(16) + CALM * 2).await;
        for _ in 0..AT_ONCE {
            assert_eq!(repairs.wait(&key("a")), Duration::ZERO);
            repairs.made(key("a"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_calmed_down_is_forgotten() {
        let repairs = Repairs::new(TIMING);
        for number in 0..REMEMBERED {
            repairs.made(key(&format!("p{number}")));
        }
        tokio::time::sleep(CALM * 2).await;
        repairs.made(key("a"));
        assert_eq!(repairs.lock().len(), 1);
    }
}
