//! Passing requests on to the process, and its answers back.

use anyhow::Context;
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, StatusCode, Uri, Version,
        header::{
            CONNECTION, HOST, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING,
            UPGRADE,
        },
        uri::{Authority, PathAndQuery, Scheme},
    },
    response::{IntoResponse, Response},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

/// Headers that are about one connection, not about the message (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [HeaderName; 7] =
    [CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];
const KEEP_ALIVE: &str = "keep-alive";

#[derive(Clone)]
struct Process {
    address: Authority,
    client: Client<HttpConnector, Body>,
}

/// Every request, passed on to the process at `address`, `host:port`.
///
/// # Errors
/// An address that is none.
pub(crate) fn router(address: &str) -> anyhow::Result<Router> {
    let address = address
        .parse()
        .with_context(|| format!("ANKKA_PROCESS_ADDRESS is '{address}'; it must be an address and a port"))?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let process = Process { address, client: Client::builder(TokioExecutor::new()).build(connector) };
    Ok(Router::new().fallback(forward).with_state(process))
}

async fn forward(State(process): State<Process>, mut request: Request) -> Response {
    let host = request.uri().authority().map(|authority| HeaderValue::from_str(authority.as_str()));
    *request.uri_mut() = address(process.address.clone(), request.uri());
    // The process speaks HTTP/1.1, whatever the client speaks; HTTP/2 has the host in the address.
    *request.version_mut() = Version::HTTP_11;
    drop_hop_by_hop(request.headers_mut());
    if let Some(Ok(host)) = host {
        request.headers_mut().entry(HOST).or_insert(host);
    }
    match process.client.request(request).await {
        Ok(mut response) => {
            drop_hop_by_hop(response.headers_mut());
            response.map(Body::new)
        }
        Err(error) => {
            tracing::warn!(error = format!("{:#}", anyhow::Error::from(error)), "the process did not answer");
            (StatusCode::BAD_GATEWAY, "the process behind the sidecar did not answer\n").into_response()
        }
    }
}

/// Where a request goes: the same path and query, at the process.
fn address(process: Authority, asked: &Uri) -> Uri {
    let mut parts = asked.clone().into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(process);
    parts.path_and_query.get_or_insert(PathAndQuery::from_static("/"));
    Uri::from_parts(parts).expect("scheme, authority and path are all there")
}

/// Drops what is about one connection only, and what `Connection` says is.
fn drop_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    headers.remove(KEEP_ALIVE);
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test ends where it fails")]
mod tests {
    use axum::{body::Bytes, http::Method};
    use http_body_util::BodyExt;
    use tokio::net::TcpListener;
    use tower::ServiceExt;

    use super::*;

    /// A process that answers with what it was asked, at the address returned.
    async fn echo() -> String {
        let app = Router::new().fallback(|method: Method, uri: Uri, headers: HeaderMap, body: Bytes| async move {
            let mut answer = format!("{method} {uri}\n").into_bytes();
            for (name, value) in &headers {
                answer.extend_from_slice(format!("{name}: ").as_bytes());
                answer.extend_from_slice(value.as_bytes());
                answer.push(b'\n');
            }
            answer.push(b'\n');
            answer.extend_from_slice(&body);
            (StatusCode::IM_A_TEAPOT, [("connection", "close"), ("x-answer", "yes")], answer)
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    }

    async fn text(response: Response) -> String {
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_request_arrives_as_it_was_sent_without_what_is_about_the_connection() {
        let router = router(&echo().await).unwrap();
        let request = Request::builder()
            .method("PATCH")
            .uri("/a%2Fb/../c?q=1&q=%20")
            .header("host", "cart.example")
            .header("connection", "keep-alive, x-secret-hop")
            .header("x-secret-hop", "1")
            .header("x-kept", "2")
            .body(Body::from("body"))
            .unwrap();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::IM_A_TEAPOT);
        assert_eq!(response.headers()["x-answer"], "yes");
        assert_eq!(response.headers().get(CONNECTION), None);
        assert_eq!(
            text(response).await,
            "PATCH /a%2Fb/../c?q=1&q=%20\nhost: cart.example\nx-kept: 2\ncontent-length: 4\n\nbody"
        );
    }

    #[tokio::test]
    async fn the_host_of_an_http_2_request_is_passed_on_as_a_header() {
        let router = router(&echo().await).unwrap();
        let request =
            Request::builder().version(Version::HTTP_2).uri("http://cart.example/x").body(Body::empty()).unwrap();
        let answer = text(router.oneshot(request).await.unwrap()).await;
        assert_eq!(answer, "GET /x\nhost: cart.example\n\n");
    }

    #[tokio::test]
    async fn a_process_that_is_not_there_is_a_bad_gateway() {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
        let router = router(&closed).unwrap();
        let response = router.oneshot(Request::new(Body::empty())).await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
    }

    #[test]
    fn an_address_that_is_none_is_refused() {
        let error = router("not an address").unwrap_err().to_string();
        assert_eq!(error, "ANKKA_PROCESS_ADDRESS is 'not an address'; it must be an address and a port");
    }
}
