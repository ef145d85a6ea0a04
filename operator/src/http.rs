//! Metrics and health over HTTP.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context;
use axum::{
    Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::get,
};

use crate::{
    cache::{Cache, Key},
    metrics::Metrics,
    observe::Synced,
    queue::Queue,
};

/// What is served.
#[derive(Clone, Debug)]
pub struct Health {
    /// Rendered at `/metrics`.
    pub metrics: Arc<Metrics>,
    /// Its depth is one of them.
    pub queue: Arc<Queue<Key>>,
    /// Its size is one of them.
    pub cache: Arc<Cache>,
    /// Decides about `/readyz`.
    pub synced: Synced,
}

/// Serves `/metrics`, `/healthz` and `/readyz` at `address`. A standby is ready too: it is, to take over.
pub async fn serve(address: SocketAddr, health: Health) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("failed to listen on {address}; set ANKKA_LISTEN"))?;
    axum::serve(listener, routes(health)).await.context("the health server ended")
}

/// The routes, for any server.
pub fn routes(health: Health) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(health)
}

async fn ready(State(health): State<Health>) -> impl IntoResponse {
    if health.synced.now() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the cluster has not been listed yet\n")
    }
}

async fn metrics(State(health): State<Health>) -> impl IntoResponse {
    let text = health.metrics.render(health.queue.depth(), health.cache.services());
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::{body::Body, http::Request};
    use tower::ServiceExt;

    use super::*;
    use crate::queue::Timing;

    async fn status(path: &str, synced: bool) -> StatusCode {
        let second = Duration::from_secs(1);
        let timing = Timing { resync: second, min_backoff: second, max_backoff: second };
        let health = Health {
            metrics: Arc::default(),
            queue: Arc::new(Queue::new(timing)),
            cache: Arc::new(Cache::new("ankka")),
            synced: Synced::known(synced),
        };
        let request = Request::get(path).body(Body::empty()).expect("a request");
        routes(health).oneshot(request).await.expect("an answer").status()
    }

    #[tokio::test]
    async fn a_replica_is_healthy_at_once_and_ready_when_everything_is_listed() {
        assert_eq!(status("/healthz", false).await, StatusCode::OK);
        assert_eq!(status("/readyz", false).await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(status("/readyz", true).await, StatusCode::OK);
        assert_eq!(status("/metrics", false).await, StatusCode::OK);
        assert_eq!(status("/", true).await, StatusCode::NOT_FOUND);
    }
}
