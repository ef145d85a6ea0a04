//! Stopping without refusing anybody: answer everything, say `Connection: close`, leave once nobody asks any more.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, header::CONNECTION},
    middleware::{self, Next},
    response::Response,
};
use http_body_util::BodyExt;
use tokio::time::{Instant, sleep};

/// How long an instance that was told to stop goes on.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Leaves after this long without a request or a new connection.
    pub idle: Duration,
    /// Leaves after this long in any case; it must fit in the pod's grace period, less the five seconds before SIGTERM.
    pub longest: Duration,
}

/// What a server is busy with.
#[derive(Clone, Default)]
pub struct Activity(Arc<Inner>);

#[derive(Default)]
struct Inner {
    draining: AtomicBool,
    requests: Mutex<Requests>,
}

#[derive(Default)]
struct Requests {
    in_flight: usize,
    /// When a request or a connection last came or went; none before the first.
    last: Option<Instant>,
}

/// Counts as a request until it is dropped.
struct InFlight(Activity);

impl Activity {
    /// `router`, with every request counted from its head to the last byte of the answer.
    pub fn watch(&self, router: Router) -> Router {
        router.layer(middleware::from_fn_with_state(self.clone(), count))
    }

    /// Something happened, such as a new connection, from which a request is to be expected.
    pub fn touch(&self) {
        self.requests().last = Some(Instant::now());
    }

    /// Answers with `Connection: close` from now on, and returns once idle (true) or out of time (false).
    pub async fn drain(&self, limits: Limits) -> bool {
        let started = Instant::now();
        self.0.draining.store(true, Ordering::Release);
        self.touch();
        loop {
            let left = self.busy_for(limits.idle);
            if left.is_zero() {
                return true;
            }
            if started.elapsed() >= limits.longest {
                return false;
            }
            sleep(left.min(Duration::from_millis(50))).await;
        }
    }

    /// Time until the server counts as idle, if nothing else happens.
    fn busy_for(&self, idle: Duration) -> Duration {
        let requests = self.requests();
        match requests.last {
            _ if requests.in_flight > 0 => idle,
            Some(last) => idle.saturating_sub(last.elapsed()),
            None => Duration::ZERO,
        }
    }

    fn begin(&self) -> InFlight {
        let mut requests = self.requests();
        requests.in_flight += 1;
        requests.last = Some(Instant::now());
        InFlight(self.clone())
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        // Two plain numbers are never half-changed.
        self.0.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut requests = self.0.requests();
        requests.in_flight -= 1;
        requests.last = Some(Instant::now());
    }
}

async fn count(State(activity): State<Activity>, request: Request, next: Next) -> Response {
    let guard = activity.begin();
    let mut response = next.run(request).await;
    if activity.0.draining.load(Ordering::Acquire) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    // The body holds the guard, because an answer is given only once its body has been sent.
    response.map(|body| {
        Body::new(body.map_err(move |error| {
            let _held = &guard;
            error
        }))
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test ends where it fails")]
mod tests {
    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;

    const LIMITS: Limits = Limits { idle: Duration::from_secs(1), longest: Duration::from_secs(20) };

    fn app(activity: &Activity) -> Router {
        activity.watch(Router::new().route("/", get(|| async { "hello" })))
    }

    async fn ask(app: Router) -> Response {
        app.oneshot(Request::new(Body::empty())).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_server_leaves_after_the_idle_time() {
        let started = Instant::now();
        assert!(Activity::default().drain(LIMITS).await);
        assert_eq!(started.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_until_its_last_byte_is_taken() {
        let activity = Activity::default();
        let answer = ask(app(&activity)).await;
        let drain = tokio::spawn({
            let activity = activity.clone();
            async move { activity.drain(LIMITS).await }
        });
        sleep(Duration::from_secs(10)).await;
        assert!(!drain.is_finished());
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(&body[..], b"hello");
        assert!(drain.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_never_ends_is_left_behind_at_the_bound() {
        let activity = Activity::default();
        let _answer = ask(app(&activity)).await;
        let started = Instant::now();
        assert!(!activity.drain(LIMITS).await);
        assert_eq!(started.elapsed(), LIMITS.longest);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_connection_extends_the_idle_time() {
        let activity = Activity::default();
        let started = Instant::now();
        let (idle, ()) = tokio::join!(activity.drain(LIMITS), async {
            sleep(Duration::from_millis(900)).await;
            activity.touch();
        });
        assert!(idle);
        assert_eq!(started.elapsed(), Duration::from_millis(1900));
    }

    #[tokio::test(start_paused = true)]
    async fn answers_ask_for_the_connection_to_be_closed_only_while_draining() {
        let activity = Activity::default();
        assert_eq!(ask(app(&activity)).await.headers().get(CONNECTION), None);
        let (_, answer) = tokio::join!(activity.drain(LIMITS), ask(app(&activity)));
        assert_eq!(answer.headers()[CONNECTION], "close");
    }
}
