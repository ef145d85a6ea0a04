//! Plain HTTP requests to addresses of this machine.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// How long one request may take, connection included.
const LIMIT: Duration = Duration::from_secs(5);

/// Gets `url` (`http://host:port/path`) over a connection of its own.
///
/// # Errors
/// When no answer came within 5 seconds. An answer of any status is none.
pub async fn get(url: &str) -> Result<Response<Bytes>> {
    tokio::time::timeout(LIMIT, request(url))
        .await
        .with_context(|| format!("no answer from {url}"))?
        .with_context(|| url.to_owned())
}

/// Gets `url` and wants status 200.
///
/// # Errors
/// As [`get`], and for any other status.
pub async fn expect_ok(url: &str) -> Result<()> {
    let response = get(url).await?;
    if response.status() != StatusCode::OK {
        bail!("{url} answered {}: {}", response.status(), String::from_utf8_lossy(response.body()));
    }
    Ok(())
}

async fn request(url: &str) -> Result<Response<Bytes>> {
    let request = Request::get(url).body(Empty::<Bytes>::new()).context("not a URL")?;
    let authority = request.uri().authority().context("no host in it")?.clone();
    let stream = TcpStream::connect((authority.host(), authority.port_u16().unwrap_or(80))).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let (mut parts, body) = request.into_parts();
    parts.headers.insert(http::header::HOST, authority.as_str().parse()?);
    parts.uri = parts.uri.path_and_query().map_or("/", |path| path.as_str()).parse()?;
    let (head, body) = sender.send_request(Request::from_parts(parts, body)).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    drop(sender);
    connection.abort();
    Ok(Response::from_parts(head, body))
}
