//! The webhook's judging of a service, against a handler of the same server that allows everything.

use std::{
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Bytes, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use serde_json::json;
use tokio::{net::TcpStream, task::JoinSet};
use tokio_rustls::TlsConnector;

use super::rows::{Row, quantile};
use crate::{
    binaries::Binaries,
    suite::{Cluster, cluster::eventually},
};

const CONNECTIONS: usize = 50;
const ROUNDS: usize = 6;
const REQUESTS: usize = 200;
const PORT: u16 = 19443;

/// Ends the server with the measurement.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only for a server that has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures both handlers in turn over the same kept connections.
pub async fn measure(_cluster: &Cluster) -> Result<Vec<Row>> {
    let binaries = Binaries::build(&["ankka-webhook"]).await?;
    let folder = tempfile::tempdir()?;
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["localhost".to_owned()])?.self_signed(&key)?;
    std::fs::write(folder.path().join("tls.crt"), certificate.pem())?;
    std::fs::write(folder.path().join("tls.key"), key.serialize_pem())?;
    let server = Command::new(binaries.get("ankka-webhook")?)
        .env("POD_NAMESPACE", "ankka-system")
        .env("ANKKA_WEBHOOK_PORT", PORT.to_string())
        .env("ANKKA_WEBHOOK_HEALTH_PORT", (PORT + 1).to_string())
        .env("ANKKA_WEBHOOK_CERTIFICATE_DIR", folder.path())
        .env("ANKKA_WEBHOOK_BENCHMARK", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("failed to start the webhook")?;
    let _server = Server(server);
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone())?;
    let tls = TlsConnector::from(Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()));

    eventually("the webhook to serve", Duration::from_secs(20), async || Ok(Ok(connect(&tls).await?))).await?;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(connect(&tls).await?);
    }
    let body = Bytes::from(review());
    let (mut judged, mut allowed) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (path, times) in [("/allow", &mut allowed), ("/validate/services", &mut judged)] {
            let mut clients = JoinSet::new();
            for connection in connections.drain(..) {
                clients.spawn(ask(connection, path, body.clone()));
            }
            while let Some(client) = clients.join_next().await {
                let (connection, taken) = client??;
                connections.push(connection);
                times.extend(taken);
            }
        }
    }
    let (judged_99, allowed_99) = (quantile(&mut judged, 0.99), quantile(&mut allowed, 0.99));
    Ok(vec![
        Row::at_most("webhook: p99 at 50 connections, against allowing everything", judged_99 / allowed_99, 1.3, "×"),
        Row::figure(
            "webhook: p50 and p99 of a review",
            format!(
                "{:.2} ms, {judged_99:.2} ms (allowing: {:.2} ms, {allowed_99:.2} ms)",
                quantile(&mut judged, 0.5),
                quantile(&mut allowed, 0.5)
            ),
        ),
    ])
}

type Connection = SendRequest<Full<Bytes>>;

async fn connect(tls: &TlsConnector) -> Result<Connection> {
    let stream = TcpStream::connect(("127.0.0.1", PORT)).await?;
    stream.set_nodelay(true)?;
    let stream = tls.connect(ServerName::try_from("localhost")?, stream).await?;
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// Asks `REQUESTS` times in a row, and returns the milliseconds of each.
async fn ask(mut connection: Connection, path: &'static str, body: Bytes) -> Result<(Connection, Vec<f64>)> {
    let mut taken = Vec::with_capacity(REQUESTS);
    for _ in 0..REQUESTS {
        let request = Request::post(path)
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body.clone()))?;
        let started = Instant::now();
        let answer = connection.send_request(request).await?;
        ensure!(answer.status().is_success(), "{path} answered {}", answer.status());
        let answer = answer.into_body().collect().await?.to_bytes();
        taken.push(started.elapsed().as_secs_f64() * 1e3);
        ensure!(answer.windows(14).any(|part| part == b"\"allowed\":true"), "{path} did not allow it: {answer:?}");
    }
    Ok((connection, taken))
}

/// An update of a service of ordinary size, as the API server sends it.
fn review() -> Vec<u8> {
    let service = |revision: u32| {
        let env: Vec<_> = (0..12).map(|number| json!({ "name": format!("SETTING_{number}"), "value": format!("value {revision} of {number}") })).collect();
        json!({
            "apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaService",
            "metadata": { "name": "cart", "namespace": "ankka-shop", "uid": "5f6f5a9e-0b1f-4b5e-9c3a-2f5d7c1f9a10", "generation": revision, "resourceVersion": "1234" },
            "spec": { "service": { "image": "registry.example.com/acme/cart:1.4.2", "runtime": "0.2.0", "env": env, "labels": { "team": "checkout" },
                "resources": { "instanceType": "medium", "autoscaling": { "minInstances": 3 } } } },
            "status": { "lifecycle": "Ready", "readyInstances": 3, "desiredInstances": 3 }
        })
    };
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": { "group": "ankka.dev", "version": "v1alpha1", "kind": "AnkkaService" },
            "resource": { "group": "ankka.dev", "version": "v1alpha1", "resource": "ankkaservices" },
            "name": "cart", "namespace": "ankka-shop", "operation": "UPDATE", "dryRun": false,
            "userInfo": { "username": "jane@example.com", "groups": ["system:authenticated"] },
            "object": service(2), "oldObject": service(1), "options": { "apiVersion": "meta.k8s.io/v1", "kind": "UpdateOptions" }
        }
    })
    .to_string()
    .into_bytes()
}
