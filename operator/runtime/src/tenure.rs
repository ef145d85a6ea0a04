//! Until when this process may write, and a client that asks before it sends.
//!
//! A Lease does not fence: a process that was frozen wakes up believing that it still leads. So the deadline of our own
//! lease is checked on the boot-time clock before each write and before each repetition of one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{Method, Request, Response, StatusCode, header::RETRY_AFTER};
use kube::{Client, client::Body};
use tower::{BoxError, service_fn};

use crate::clock::boot_time;

/// How often a request is repeated that the API server turned away for the moment.
const REPETITIONS: u32 = 5;

/// The right to write, and when it ends.
#[derive(Debug, Default)]
pub struct Tenure {
    leading: AtomicBool,
    /// On the boot-time clock, in milliseconds.
    until: AtomicU64,
}

/// A write was not sent because this process no longer leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease is not held: nothing was sent; another replica goes on")]
pub struct LeaseLost;

impl Tenure {
    /// A tenure that does not end: for tests and tools that run without a Lease.
    pub fn unlimited() -> Self {
        Self { leading: AtomicBool::new(true), until: AtomicU64::new(u64::MAX) }
    }

    /// Notes whether this process leads.
    pub fn lead(&self, leading: bool) {
        self.leading.store(leading, Ordering::SeqCst);
    }

    /// Sets the time on the boot-time clock at which the right to write ends.
    pub fn extend(&self, until: Duration) {
        self.until.store(u64::try_from(until.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// Whether this process leads and its lease has not run out.
    pub fn holds(&self) -> bool {
        self.leads() && boot_time().as_millis() < u128::from(self.until.load(Ordering::SeqCst))
    }

    /// Whether this process leads, as far as it has been told.
    pub fn leads(&self) -> bool {
        self.leading.load(Ordering::SeqCst)
    }
}

/// A client that sends writes only while `tenure` holds. It repeats what the API server turned away as too much or
/// unavailable, checking again each time; so `inner` must not repeat requests on its own.
pub fn guarded(inner: Client, tenure: Arc<Tenure>) -> Client {
    let namespace = inner.default_namespace().to_owned();
    let service = service_fn(move |request| send(inner.clone(), tenure.clone(), request));
    Client::new(service, namespace)
}

async fn send(client: Client, tenure: Arc<Tenure>, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
    let mut attempt = 0;
    loop {
        if request.method() != Method::GET && !tenure.holds() {
            return Err(LeaseLost.into());
        }
        let repetition = (attempt < REPETITIONS).then(|| copy(&request)).flatten();
        let response = client.send(request).await?;
        let (Some(next), Some(pause)) = (repetition, pause(&response, attempt)) else { return Ok(response) };
        tokio::time::sleep(pause).await;
        request = next;
        attempt += 1;
    }
}

/// How long the API server wants to be left alone; none when it answered for good.
fn pause(response: &Response<Body>, attempt: u32) -> Option<Duration> {
    let busy = matches!(
        response.status(),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
    );
    let asked = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let own = Duration::from_millis(50 << attempt);
    busy.then(|| asked.map_or(own, Duration::from_secs).clamp(own, Duration::from_secs(10)))
}

fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    copy.headers_mut().clone_from(request.headers());
    copy.extensions_mut().clone_from(request.extensions());
    Some(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answering(status: StatusCode) -> (Client, Arc<AtomicU64>) {
        let sent = Arc::new(AtomicU64::new(0));
        let counter = sent.clone();
        let service = service_fn(move |_: Request<Body>| {
            let first = counter.fetch_add(1, Ordering::SeqCst) == 0;
            let status = if first { status } else { StatusCode::OK };
            async move {
                let mut response = Response::new(Body::from(b"{}".to_vec()));
                *response.status_mut() = status;
                Ok::<_, BoxError>(response)
            }
        });
        (Client::new(service, "default"), sent)
    }

    async fn post(client: &Client) -> Result<serde_json::Value, kube::Error> {
        let request = Request::post("/api/v1/namespaces").body(b"{}".to_vec()).expect("a request");
        client.request(request).await
    }

    #[tokio::test]
    async fn nothing_is_written_before_leading_and_after_the_lease_ran_out() {
        let (inner, sent) = answering(StatusCode::OK);
        let tenure = Arc::new(Tenure::default());
        let client = guarded(inner, tenure.clone());
        tenure.extend(boot_time() + Duration::from_mins(1));
        post(&client).await.expect_err("not leading");
        tenure.lead(true);
        post(&client).await.expect("leading");
        tenure.extend(boot_time());
        let error = post(&client).await.expect_err("the lease ran out");
        assert!(matches!(&error, kube::Error::Service(cause) if cause.is::<LeaseLost>()), "{error:?}");
        assert_eq!(sent.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn reading_needs_no_lease() {
        let (inner, sent) = answering(StatusCode::OK);
        let client = guarded(inner, Arc::default());
        let request = Request::get("/api/v1/namespaces").body(Vec::new()).expect("a request");
        client.request::<serde_json::Value>(request).await.expect("a read");
        assert_eq!(sent.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_server_is_asked_again_only_while_the_lease_holds() {
        let (inner, sent) = answering(StatusCode::TOO_MANY_REQUESTS);
        post(&guarded(inner, Arc::new(Tenure::unlimited()))).await.expect("the repetition succeeds");
        assert_eq!(sent.load(Ordering::SeqCst), 2);

        let (inner, sent) = answering(StatusCode::SERVICE_UNAVAILABLE);
        let tenure = Arc::new(Tenure::unlimited());
        let client = guarded(inner, tenure.clone());
        let posting = tokio::spawn(async move { post(&client).await });
        while sent.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        tenure.lead(false);
        posting.await.expect("no panic").expect_err("the lease was lost before the repetition");
        assert_eq!(sent.load(Ordering::SeqCst), 1);
    }
}
