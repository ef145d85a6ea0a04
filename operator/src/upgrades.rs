//! Upgrades: rollouts that the installation causes and nobody else asked for, a few at a time.
//!
//! Another sidecar is part of every process-hosted service. Rolled all at once, they would ask the cluster for twice the
//! room, and a sidecar that does not start would be everywhere before anybody sees it. A turn lasts until the rollout is
//! complete, or counts as failed.

use std::{
    collections::{BTreeSet, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    cache::{Cache, Key, ServiceId},
    queue::Queue,
};

/// Whose turn it is to be upgraded.
#[derive(Debug)]
pub struct Upgrades {
    limit: usize,
    cache: Arc<Cache>,
    queue: Arc<Queue<Key>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whose Deployment is being written.
    writing: HashSet<ServiceId>,
    /// Whose instances are being replaced.
    rolling: HashSet<ServiceId>,
    /// Who found no room.
    waiting: BTreeSet<ServiceId>,
}

/// One service's turn. It goes on after this is dropped for as long as instances are being replaced.
#[derive(Debug)]
pub struct Turn<'a> {
    upgrades: &'a Upgrades,
    id: &'a ServiceId,
}

impl Upgrades {
    /// At most `limit` at a time.
    pub fn new(limit: usize, cache: Arc<Cache>, queue: Arc<Queue<Key>>) -> Self {
        Self { limit, cache, queue, state: Mutex::default() }
    }

    /// A turn for a service that is to get this sidecar. Without one, a pass over it is asked for when there is room.
    pub fn begin<'a>(&'a self, id: &'a ServiceId, sidecar: &str) -> Option<Turn<'a>> {
        let mut state = self.lock();
        self.forget_ended(&mut state);
        if state.turns() == 0 {
            // Another process may have begun some, or this one before it started anew.
            state.rolling.extend(self.cache.rolling_with(sidecar));
        }
        if state.turns() >= self.limit && !state.rolling.contains(id) {
            state.waiting.insert(id.clone());
            return None;
        }
        state.rolling.remove(id);
        state.writing.insert(id.clone());
        Some(Turn { upgrades: self, id })
    }

    /// A pass over a service begins: its turn may be over, or it may need none any more.
    pub fn looked_at(&self, id: &ServiceId) {
        let mut state = self.lock();
        if state.waiting.remove(id) || state.rolling.contains(id) {
            self.forget_ended(&mut state);
            self.call(&state);
        }
    }

    fn end(&self, id: &ServiceId) {
        let mut state = self.lock();
        state.writing.remove(id);
        state.rolling.insert(id.clone());
        self.forget_ended(&mut state);
        self.call(&state);
    }

    fn forget_ended(&self, state: &mut State) {
        state.rolling.retain(|id| self.cache.is_rolling(id));
    }

    /// Asks for passes over as many as there is room for.
    fn call(&self, state: &State) {
        let room = self.limit.saturating_sub(state.turns());
        state.waiting.iter().take(room).for_each(|id| self.queue.add(Key::Service(id.clone())));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn turns(&self) -> usize {
        self.writing.len() + self.rolling.len()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.upgrades.end(self.id);
    }
}
