//! How the exporter's requests are sent.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;

/// How long one request may take.
const ANSWER: Duration = Duration::from_secs(10);

/// The largest answer that is read.
const LARGEST: usize = 1024 * 1024;

/// Sends requests on the runtime of tokio: the exporter has a thread of its own, which runs nothing that a connection needs.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    runtime: Handle,
    client: legacy::Client<HttpConnector, Full<Bytes>>,
}

impl Client {
    /// On the runtime that this is called in.
    pub(crate) fn here() -> Self {
        Self { runtime: Handle::current(), client: legacy::Client::builder(TokioExecutor::new()).build_http() }
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let answer = async move {
            let (head, body) = client.request(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, LARGEST).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        self.runtime.spawn(async move { tokio::time::timeout(ANSWER, answer).await }).await??
    }
}
