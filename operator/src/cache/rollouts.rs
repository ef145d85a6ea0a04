//! Whose instances are being replaced.

use super::{Cache, ServiceId};

impl Cache {
    /// Whether a service's instances are being replaced at this moment.
    pub fn is_rolling(&self, id: &ServiceId) -> bool {
        let state = self.lock();
        let entry = state.namespaces.get(&id.namespace).and_then(|content| content.services.get(&id.name));
        entry.is_some_and(|entry| entry.is_rolling(None))
    }

    /// The services whose instances are being replaced by ones with this sidecar.
    pub fn rolling_with(&self, sidecar: &str) -> Vec<ServiceId> {
        let state = self.lock();
        let entries = state.namespaces.iter().flat_map(|(namespace, content)| {
            content.services.iter().map(move |(name, entry)| (namespace, name, entry))
        });
        let rolling = entries.filter(|(.., entry)| entry.is_rolling(Some(sidecar)));
        rolling.map(|(namespace, name, _)| ServiceId { namespace: namespace.clone(), name: name.clone() }).collect()
    }
}
