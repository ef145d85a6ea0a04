//! What the service answers.

use std::{env, os::unix::ffi::OsStringExt, sync::Arc, time::Duration};

use ankka_example_common::Cluster;
use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, State},
    http::{StatusCode, Uri},
    routing::get,
};
use serde_json::{Value, json};

use crate::database;

/// Longest answer that may be asked for, in milliseconds.
const SLOWEST: u64 = 20_000;

/// What the service knows about itself.
pub(crate) struct Cart {
    /// The service's name.
    pub(crate) service: String,
    /// Which instance answers: the pod's address, or the host's name.
    pub(crate) instance: String,
    /// Names of the environment variables that may be asked for.
    pub(crate) shown: Vec<String>,
    pub(crate) cluster: Cluster,
}

/// The routes of the service's own port.
pub(crate) fn public(cart: Arc<Cart>) -> Router {
    Router::new()
        .route("/", get(about))
        .route("/env/{name}", get(variable))
        .route("/slow", get(slow))
        .route("/database", get(database))
        .with_state(cart)
}

/// The routes of the management port.
pub(crate) fn management(cart: Arc<Cart>) -> Router {
    Router::new().route("/ready", get(ready)).with_state(cart)
}

async fn about(State(cart): State<Arc<Cart>>) -> Json<Value> {
    let peers = cart.cluster.state().peers;
    Json(json!({ "service": cart.service, "instance": cart.instance, "peers": peers }))
}

async fn ready(State(cart): State<Arc<Cart>>) -> (StatusCode, String) {
    cart.cluster.state().answer()
}

/// One environment variable, byte for byte.
async fn variable(State(cart): State<Arc<Cart>>, Path(name): Path<String>) -> Result<Bytes, StatusCode> {
    if !cart.shown.contains(&name) {
        return Err(StatusCode::NOT_FOUND);
    }
    env::var_os(&name).map(|value| Bytes::from(value.into_vec())).ok_or(StatusCode::NOT_FOUND)
}

/// A login of its own, and what the database says to it.
async fn database() -> Result<Json<Value>, (StatusCode, String)> {
    database::visit().await.map(Json).map_err(|error| {
        let error = format!("{error:#}");
        tracing::warn!(error, "the database did not answer");
        (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n"))
    })
}

/// An answer that takes as long as `?ms=` says.
async fn slow(uri: Uri) -> (StatusCode, String) {
    let asked = uri.query().and_then(|query| query.strip_prefix("ms=")).and_then(|ms| ms.parse().ok());
    let Some(ms) = asked.filter(|ms| *ms <= SLOWEST) else {
        return (StatusCode::BAD_REQUEST, format!("ask for /slow?ms=N with N from 0 to {SLOWEST}\n"));
    };
    tokio::time::sleep(Duration::from_millis(ms)).await;
    (StatusCode::OK, format!("{ms} ms\n"))
}
