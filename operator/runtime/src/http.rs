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

use crate::{metrics::Metrics, synced::Synced};

/// How many there are of something now.
pub type Count = Arc<dyn Fn() -> usize + Send + Sync>;

/// What is served.
#[derive(Clone)]
pub struct Health {
    /// Rendered at `/metrics`.
    pub metrics: Arc<Metrics>,
    /// Objects that wait for a pass.
    pub waiting: Count,
    /// Objects that are known.
    pub known: Count,
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
    let text = health.metrics.render((health.waiting)(), (health.known)());
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::Request};
    use tower::ServiceExt;

    use super::*;

    async fn status(path: &str, synced: bool) -> StatusCode {
        let (sender, receiver) = Synced::channel();
        sender.send_replace(synced);
        let health = Health {
            metrics: Arc::new(Metrics::new("ankka", "objects")),
            waiting: Arc::new(|| 0),
            known: Arc::new(|| 0),
            synced: receiver,
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
