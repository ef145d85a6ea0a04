//! Whether the cluster has been listed.

use tokio::sync::watch;

/// Says when every stream has been listed once.
#[derive(Clone, Debug)]
pub struct Synced(watch::Receiver<bool>);

impl Synced {
    /// One that says what is sent to it.
    pub fn channel() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Whether every stream has been listed once.
    pub fn now(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until every stream has been listed once. False when observing ended before.
    pub async fn wait(&mut self) -> bool {
        self.0.wait_for(|synced| *synced).await.is_ok()
    }
}
