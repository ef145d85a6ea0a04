//! The endpoints: admission behind TLS, health and metrics in the clear.

use std::{sync::Arc, time::Instant};

use ankka_crds::{AnkkaServiceSpec, resources::AnkkaProjectSpec};
use ankka_telemetry::SPANS;
use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{StatusCode, header::CONTENT_TYPE},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::{Deserialize, de::DeserializeOwned};
use tracing::field::Empty;

use crate::{
    certificates,
    health::Health,
    history,
    metrics::Metrics,
    projects,
    review::{self, NotAReview, Request, Verdict},
    room::{Room, take_turns},
    services,
    settings::Settings,
};

/// A review holds the old and the new object, each of which etcd takes up to about 1.5 MiB of, plus their managed fields.
pub const LARGEST_BODY: usize = 7 * 1024 * 1024;

/// How many refused fields of one request are logged; the answer names all.
const LOGGED: usize = 20;

/// How many bytes of one field's path are logged: it may hold a map's key of any length.
const LOGGED_LENGTH: usize = 200;

/// What every endpoint needs.
#[derive(Clone, Debug)]
pub struct App {
    /// The installation's settings.
    pub settings: Arc<Settings>,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Readiness.
    pub health: Arc<Health>,
}

impl App {
    /// An app that has seen nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self { settings: Arc::new(settings), metrics: Arc::default(), health: Arc::default() }
    }
}

/// What the API server calls.
pub fn admission(app: App) -> Router {
    let mut router = Router::new()
        .route("/validate/services", post(validate_service))
        .route("/validate/projects", post(validate_project))
        .route("/mutate/services", post(keep_history));
    if app.settings.benchmark {
        router = router.route("/allow", post(allow));
    }
    router
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(middleware::from_fn_with_state(Room::default(), take_turns))
        .with_state(app)
}

/// What the kubelet and Prometheus call.
pub fn plain(app: App) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(app)
}

async fn validate_service(State(app): State<App>, body: Bytes) -> Response {
    respond::<AnkkaServiceSpec>(&app, "services", "AnkkaService", &body, |request| {
        services::judge(request, &app.settings.prefix)
    })
}

async fn validate_project(State(app): State<App>, body: Bytes) -> Response {
    respond::<AnkkaProjectSpec>(&app, "projects", "AnkkaProject", &body, |request| {
        projects::judge(request, &app.settings.prefix, &app.settings.namespace)
    })
}

async fn keep_history(State(app): State<App>, body: Bytes) -> Response {
    respond::<AnkkaServiceSpec>(&app, "changes", "AnkkaService", &body, |request| {
        history::keep(request, jiff::Timestamp::now())
    })
}

fn respond<S>(
    app: &App,
    endpoint: &'static str,
    kind: &'static str,
    body: &[u8],
    judge: impl FnOnce(&Request<S>) -> Verdict,
) -> Response
where
    S: DeserializeOwned + Default,
{
    let began = Instant::now();
    let span = tracing::info_span!(target: SPANS, "review", endpoint, namespace = Empty, name = Empty, outcome = Empty);
    let _entered = span.enter();
    let request = match review::read::<S>(body) {
        Ok(request) => request,
        Err(error) => {
            app.metrics.reviewed(endpoint, None, began.elapsed().as_secs_f64());
            return unreadable(&error);
        }
    };
    let verdict = judge(&request);
    let (new, old) = (request.object.as_ref(), request.old.as_ref());
    let metadata = new.map(|new| &new.metadata).or(old.map(|old| &old.metadata));
    let name = metadata.and_then(|metadata| metadata.name.as_deref()).unwrap_or_default();
    span.record("namespace", metadata.and_then(|metadata| metadata.namespace.as_deref()));
    span.record("name", name);
    span.record("outcome", Metrics::outcome(Some(&verdict)));
    if let Verdict::Deny(problems) = &verdict {
        // Fields only: what a user wrote in them may be a secret.
        let fields = logged(problems.iter().map(|problem| problem.path.as_str()));
        let namespace = metadata.and_then(|metadata| metadata.namespace.as_deref()).unwrap_or_default();
        tracing::info!(endpoint, uid = request.uid, namespace, name, problems = problems.len(), fields, "denied");
    }
    let answer = review::answer(&request.uid, kind, name, &verdict);
    app.metrics.reviewed(endpoint, Some(&verdict), began.elapsed().as_secs_f64());
    json(answer)
}

/// Fields as they are logged: the first few, none longer than a line bears.
fn logged<'a>(paths: impl Iterator<Item = &'a str>) -> String {
    let short = |path: &'a str| &path[..path.floor_char_boundary(LOGGED_LENGTH)];
    paths.take(LOGGED).map(short).collect::<Vec<_>>().join(" ")
}

/// Admits everything: what serving a review costs at least. Only served for benchmarks.
async fn allow(body: Bytes) -> Response {
    #[derive(Deserialize)]
    struct Review {
        request: Uid,
    }
    #[derive(Deserialize)]
    struct Uid {
        uid: String,
    }
    match serde_json::from_slice::<Review>(&body) {
        Ok(review) => json(review::answer(&review.request.uid, "", "", &Verdict::admit())),
        Err(error) => unreadable(&NotAReview::from(error)),
    }
}

fn json(body: Vec<u8>) -> Response {
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

fn unreadable(error: &NotAReview) -> Response {
    tracing::warn!(%error, "refused a request");
    (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response()
}

async fn ready(State(app): State<App>) -> Response {
    match app.health.unready(certificates::now()) {
        None => "ok".into_response(),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")).into_response(),
    }
}

async fn metrics(State(app): State<App>) -> Response {
    match app.metrics.text() {
        Ok(text) => {
            ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
        }
        Err(error) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("failed to write the metrics: {error}\n")).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_with_thousands_of_problems_takes_one_short_line() {
        let paths: Vec<_> =
            (0..10_000).map(|number| format!("spec.service.labels[\"{number}{}\"]", "é".repeat(5000))).collect();
        let line = logged(paths.iter().map(String::as_str));
        assert!(line.len() <= LOGGED * (LOGGED_LENGTH + 1), "{}", line.len());
        assert!(line.starts_with("spec.service.labels[\"0é"), "{line}");
        assert_eq!(logged(["a", "b"].into_iter()), "a b");
    }
}
