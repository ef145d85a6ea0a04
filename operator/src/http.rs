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
