//! Which requests are sent again to a busy server, and how often.

use std::time::Duration;

use kube::client::Body;
use kube::client::retry::RetryPolicy;
use tower::BoxError;
use tower::retry::Policy;

/// How soon a busy server is asked again, how late at most, and how often.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);
const TIMES: u32 = 5;

/// What a server says of a request that it may have carried out and may not.
pub(super) const UNCERTAIN: [u16; 2] = [503, 504];

/// Sends a request again for seconds. One that would not mean the same the second time is sent again only when it is
/// certain that the first had no effect: a restart must not become two.
#[derive(Clone)]
pub(super) struct Patience(RetryPolicy);

impl Patience {
    /// A new one; each request gets its own.
    pub(super) fn new() -> kube::Result<Self> {
        let policy = RetryPolicy::new(FIRST, LONGEST, TIMES, true);
        policy.map(Self).map_err(|cause| kube::Error::Service(cause.into()))
    }
}

impl<Answer> Policy<http::Request<Body>, http::Response<Answer>, BoxError> for Patience {
    type Future = tokio::time::Sleep;

    fn retry(
        &mut self,
        request: &mut http::Request<Body>,
        result: &mut Result<http::Response<Answer>, BoxError>,
    ) -> Option<Self::Future> {
        let uncertain = result.as_ref().is_ok_and(|answer| UNCERTAIN.contains(&answer.status().as_u16()));
        if uncertain && !means_the_same_again(request) {
            return None;
        }
        self.0.retry(request, result)
    }

    fn clone_request(&mut self, request: &http::Request<Body>) -> Option<http::Request<Body>> {
        Policy::<_, http::Response<Answer>, _>::clone_request(&mut self.0, request)
    }
}

/// Reading changes nothing, and applying the same object again neither.
fn means_the_same_again<B>(request: &http::Request<B>) -> bool {
    let applies = request
        .headers()
        .get(http::header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/apply-patch"));
    request.method() == http::Method::GET || request.method() == http::Method::PATCH && applies
}
