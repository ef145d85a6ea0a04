//! Plain HTTP requests to addresses of this machine, and HTTPS ones to its gateway.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use http::{Request, Response, StatusCode, uri::Authority};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use crate::platform::Gateway;

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

/// Gets an `https` URL from the gateway, whose certificate has to be for the URL's host.
///
/// # Errors
/// When no answer came within 5 seconds, or the certificate is not right. An answer of any status is none.
pub async fn get_exposed(gateway: &Gateway, url: &str) -> Result<Response<Bytes>> {
    let asked = async {
        let (request, authority) = prepare(url)?;
        let pem = std::fs::read(&gateway.authority).context("failed to read the gateway's authority")?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&pem).context("the gateway's authority is no certificate")?)?;
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let host = ServerName::try_from(authority.host().to_owned()).context("the host is no name")?;
        let stream = TcpStream::connect(gateway.address).await?;
        ask(TlsConnector::from(Arc::new(config)).connect(host, stream).await?, request, &authority).await
    };
    tokio::time::timeout(LIMIT, asked)
        .await
        .with_context(|| format!("no answer from {url}"))?
        .with_context(|| url.to_owned())
}

async fn request(url: &str) -> Result<Response<Bytes>> {
    let (request, authority) = prepare(url)?;
    let stream = TcpStream::connect((authority.host(), authority.port_u16().unwrap_or(80))).await?;
    ask(stream, request, &authority).await
}

fn prepare(url: &str) -> Result<(Request<Empty<Bytes>>, Authority)> {
    let request = Request::get(url).body(Empty::<Bytes>::new()).context("not a URL")?;
    let authority = request.uri().authority().context("no host in it")?.clone();
    Ok((request, authority))
}

async fn ask(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Empty<Bytes>>,
    authority: &Authority,
) -> Result<Response<Bytes>> {
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
