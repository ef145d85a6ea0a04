//! Whether the server can be reached at all: one connection asks, so that not every pass has to find out by itself.

use std::{sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};

use super::{
    postgres::{Postgres, Session},
    refusal::ServerError,
};

/// How often the server is asked.
const PERIOD: Duration = Duration::from_secs(1);

/// How long an answer may take before a new connection is tried. Only when that fails, too, the server counts as down.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks the server again and again, over a connection of its own.
pub struct Monitor {
    server: Arc<Postgres>,
    session: Option<Session>,
}

impl Monitor {
    /// One that asks `server`, and lets it know.
    pub fn new(server: Arc<Postgres>) -> Self {
        Self { server, session: None }
    }

    /// Asks for ever, and calls `changed` whenever the server went down or came back.
    ///
    /// # Errors
    /// Never.
    pub async fn watch(mut self, changed: impl Fn() + Send) -> anyhow::Result<()> {
        loop {
            let unreachable = self.unreachable().await;
            if self.server.found(unreachable) {
                changed();
            }
            sleep(PERIOD).await;
        }
    }

    /// Why the server cannot be reached; none when it can. One that refuses has been reached: passes say what it refuses.
    async fn unreachable(&mut self) -> Option<String> {
        if let Some(session) = self.session.take()
            && let Ok(Ok(())) = timeout(PATIENCE, session.ask("SELECT 1")).await
        {
            self.session = Some(session);
            return None;
        }
        match self.server.connect_to_own().await {
            Ok(session) => {
                self.session = Some(session);
                None
            }
            Err(ServerError::Unavailable(why)) => Some(why),
            Err(_) => None,
        }
    }
}
