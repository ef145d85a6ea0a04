//! The work queue: which object is looked at next, and when again.
//!
//! Level-triggered: a key says *that* something is to be looked at, never why. However often a key is added, it waits once;
//! it is never handed to two workers at a time; what is added while it runs makes it run once more.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Debug,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
    registry::Unit,
};
use rand::RngExt;
use tokio::{sync::Notify, time::Instant};

/// What a finished pass asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The object is gone.
    Forget,
    /// All is as it should be: look again at the next resync. Forgets earlier failures.
    Resync,
    /// Look again after this time, which is no failure.
    After(Duration),
    /// It did not work: try again, later each time.
    Retry,
}

/// When things are looked at again.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Between two passes over a settled object, give or take a fifth.
    pub resync: Duration,
    /// After the first failure, doubled by each further one.
    pub min_backoff: Duration,
    /// The longest wait after a failure.
    pub max_backoff: Duration,
}

impl Timing {
    /// How long to wait after so many failures in a row, at least one.
    pub fn backoff(&self, failures: u32) -> Duration {
        let factor = 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
        self.min_backoff.saturating_mul(factor).min(self.max_backoff)
    }
}

/// A queue of keys, for any number of workers.
#[derive(Debug)]
pub struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    timing: Timing,
}

type Due = (Instant, u64);

#[derive(Debug)]
struct State<K> {
    /// What waits, by the time it is due; the number keeps keys of one instant apart and in order.
    waiting: BTreeMap<Due, K>,
    slots: HashMap<K, Slot>,
    sequence: u64,
}

#[derive(Debug, Default)]
struct Slot {
    /// When it is due. While it runs, it is not in `waiting`.
    due: Option<Due>,
    running: bool,
    failures: u32,
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// An empty queue.
    pub fn new(timing: Timing) -> Self {
        let state = State { waiting: BTreeMap::new(), slots: HashMap::new(), sequence: 0 };
        Self { state: Mutex::new(state), changed: Notify::new(), timing }
    }

    /// Asks for a pass now.
    pub fn add(&self, key: K) {
        self.lock().schedule(key, Instant::now());
        self.changed.notify_one();
    }

    /// Waits for a key that is due and not running, and marks it running. [`Self::done`] must follow.
    pub async fn next(&self) -> K {
        loop {
            let due = {
                let mut state = self.lock();
                match state.waiting.first_key_value().map(|(due, _)| due.0) {
                    Some(at) if at <= Instant::now() => {
                        let key = state.start();
                        if !state.waiting.is_empty() {
                            // Another worker may be asleep until a later time than the one that is first now.
                            self.changed.notify_one();
                        }
                        if let Some(key) = key {
                            return key;
                        }
                        continue;
                    }
                    at => at,
                }
            };
            match due {
                Some(at) => {
                    let _ = tokio::time::timeout_at(at, self.changed.notified()).await;
                }
                None => self.changed.notified().await,
            }
        }
    }

    /// Ends the pass that [`Self::next`] began.
    pub fn done(&self, key: K, next: Next) {
        let mut state = self.lock();
        let Some(slot) = state.slots.get_mut(&key) else { return };
        slot.running = false;
        let added = slot.due.take().map(|due| due.0);
        slot.failures = if next == Next::Retry { slot.failures.saturating_add(1) } else { 0 };
        let failures = slot.failures;
        let now = Instant::now();
        let planned = match next {
            Next::Forget => None,
            Next::Resync => Some(now + jittered(self.timing.resync)),
            Next::After(wait) => Some(now + wait),
            Next::Retry => Some(now + jittered(self.timing.backoff(failures))),
        };
        match planned.into_iter().chain(added).min() {
            Some(at) => state.schedule(key, at),
            None => {
                state.slots.remove(&key);
            }
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Whether a key is due and waits for a worker.
    pub fn is_busy(&self) -> bool {
        self.lock().waiting.first_key_value().is_some_and(|(due, _)| due.0 <= Instant::now())
    }

    /// How long until a key is due; none when none waits.
    pub fn until_next(&self) -> Option<Duration> {
        self.lock().waiting.first_key_value().map(|(due, _)| due.0.saturating_duration_since(Instant::now()))
    }

    /// How many keys are due and wait for a worker.
    pub fn depth(&self) -> usize {
        self.lock().waiting.range(..=(Instant::now(), u64::MAX)).count()
    }

    /// How long the first key has been due; nothing when none is.
    pub fn overdue(&self) -> Duration {
        let first = self.lock().waiting.first_key_value().map(|(due, _)| due.0);
        first.map_or(Duration::ZERO, |due| Instant::now().saturating_duration_since(due))
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells how late the queue is.
#[derive(Debug)]
pub struct Lateness<K>(pub Arc<Queue<K>>);

impl<K: Clone + Debug + Eq + Hash + Send + Sync + 'static> Collector for Lateness<K> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let overdue = ConstGauge::new(self.0.overdue().as_secs_f64());
        let help = "How long the first object of the queue has been due";
        overdue.encode(encoder.encode_descriptor("queue_overdue", help, Some(&Unit::Seconds), overdue.metric_type())?)
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    /// Makes a key due at `at`, unless it is due earlier already.
    fn schedule(&mut self, key: K, at: Instant) {
        self.sequence += 1;
        let due = (at, self.sequence);
        let slot = self.slots.entry(key.clone()).or_default();
        if slot.due.is_some_and(|(earlier, _)| earlier <= at) {
            return;
        }
        let replaced = slot.due.replace(due);
        if slot.running {
            return;
        }
        if let Some(replaced) = replaced {
            self.waiting.remove(&replaced);
        }
        self.waiting.insert(due, key);
    }

    fn start(&mut self) -> Option<K> {
        let (_, key) = self.waiting.pop_first()?;
        let slot = self.slots.get_mut(&key)?;
        slot.due = None;
        slot.running = true;
        Some(key)
    }
}

/// Between four and six fifths of `period`, so that what began together does not stay together.
fn jittered(period: Duration) -> Duration {
    period.mul_f64(rand::rng().random_range(0.8..1.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing = Timing {
        resync: Duration::from_mins(5),
        min_backoff: Duration::from_secs(2),
        max_backoff: Duration::from_mins(5),
    };

    async fn idle(queue: &Queue<&'static str>, wait: Duration) -> bool {
        tokio::time::timeout(wait, queue.next()).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_added_often_waits_once() {
        let queue = Queue::new(TIMING);
        queue.add("a");
        queue.add("a");
        queue.add("b");
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!((queue.depth(), queue.is_busy(), queue.overdue()), (2, true, Duration::from_secs(3)));
        assert_eq!(queue.next().await, "a");
        assert_eq!(queue.next().await, "b");
        assert_eq!((queue.depth(), queue.is_busy(), queue.overdue()), (0, false, Duration::ZERO));
        assert!(idle(&queue, Duration::from_secs(10)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_running_key_is_not_handed_out_again_until_it_is_done() {
        let queue = Queue::new(TIMING);
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        assert!(idle(&queue, Duration::from_secs(10)).await);
        queue.done("a", Next::Resync);
        assert_eq!(queue.next().await, "a");
        queue.done("a", Next::Resync);
        assert!(idle(&queue, Duration::from_secs(200)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_settled_key_comes_again_within_a_fifth_of_the_resync() {
        let queue = Queue::new(TIMING);
        queue.add("a");
        let key = queue.next().await;
        queue.done(key, Next::Resync);
        let start = Instant::now();
        assert_eq!(queue.next().await, "a");
        let waited = start.elapsed();
        assert!(waited >= Duration::from_secs(239) && waited <= Duration::from_secs(361), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_wait_longer_each_time_and_success_forgets_them() {
        let queue = Queue::new(TIMING);
        queue.add("a");
        let mut key = queue.next().await;
        for expected in [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0] {
            queue.done(key, Next::Retry);
            let start = Instant::now();
            key = queue.next().await;
            let waited = start.elapsed().as_secs_f64();
            assert!(waited >= expected * 0.79 && waited <= expected * 1.21, "{waited} for {expected}");
        }
        queue.done(key, Next::After(Duration::from_secs(1)));
        let key = queue.next().await;
        queue.done(key, Next::Retry);
        let start = Instant::now();
        queue.next().await;
        assert!(start.elapsed() <= Duration::from_millis(2500));
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_comes_before_a_planned_pass() {
        let queue = Queue::new(TIMING);
        queue.add("a");
        let key = queue.next().await;
        queue.done(key, Next::Resync);
        let waiting = queue.next();
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut waiting).await.is_err());
        let start = Instant::now();
        queue.add("a");
        assert_eq!(waiting.await, "a");
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_forgotten_key_leaves_nothing_unless_it_was_added_meanwhile() {
        let queue = Queue::new(TIMING);
        queue.add("a");
        let key = queue.next().await;
        queue.done(key, Next::Forget);
        assert!(queue.lock().slots.is_empty());
        queue.add("a");
        let key = queue.next().await;
        queue.add("a");
        queue.done(key, Next::Forget);
        assert_eq!(queue.next().await, "a");
    }

    #[tokio::test(start_paused = true)]
    async fn every_key_is_handed_out_when_many_workers_sleep() {
        let queue = std::sync::Arc::new(Queue::new(TIMING));
        let (sender, mut handled) = tokio::sync::mpsc::unbounded_channel();
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (queue, sender) = (queue.clone(), sender.clone());
            workers.spawn(async move {
                loop {
                    let key = queue.next().await;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    let _ = sender.send(key);
                    queue.done(key, Next::Forget);
                }
            });
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        for key in 0..100 {
            queue.add(key);
        }
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < 100 {
            let key = tokio::time::timeout(Duration::from_secs(1), handled.recv()).await.expect("in time");
            seen.extend(key);
        }
        assert!(queue.lock().slots.len() <= 8);
    }
}
