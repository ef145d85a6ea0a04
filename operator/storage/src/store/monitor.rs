//! Whether the store can be reached at all: somebody asks, so that not every pass has to find out by itself.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use super::garage::Garage;

/// How often the store is asked.
const PERIOD: Duration = Duration::from_secs(1);

/// How long an answer may take. Only when a second one takes as long, too, the store counts as down.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks the store again and again.
pub struct Monitor(Arc<Garage>);

impl Monitor {
    /// One that asks `store`, and lets it know.
    pub fn new(store: Arc<Garage>) -> Self {
        Self(store)
    }

    /// Asks for ever, and calls `changed` whenever the store went down or came back.
    ///
    /// # Errors
    /// Never.
    pub async fn watch(self, changed: impl Fn() + Send) -> anyhow::Result<()> {
        loop {
            let mut unreachable = self.0.unreachable(PATIENCE).await;
            if unreachable.is_some() {
                unreachable = self.0.unreachable(PATIENCE).await;
            }
            if self.0.found(unreachable) {
                changed();
            }
            sleep(PERIOD).await;
        }
    }
}
