//! Constant requests against a service, counted to the last one: what was refused, reset or answered wrongly.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinSet, time::timeout};

use super::cluster::eventually;

/// The longest one request may take: longer than any pause of a healthy service.
const PATIENCE: Duration = Duration::from_secs(10);

/// Requests under way against one address.
pub struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    faults: Arc<Mutex<Vec<String>>>,
    clients: JoinSet<()>,
}

/// How many requests were answered, and what went wrong with the others.
#[derive(Debug)]
pub struct Outcome {
    /// Requests answered with 200.
    pub answered: u64,
    /// One line for each request that was not.
    pub faults: Vec<String>,
}

impl Load {
    /// Starts `kept` clients that keep their connection and `fresh` clients that open one for each request, each with
    /// about 25 requests a second. Waits for the first answer before: a node learns of a service's first endpoint up to a
    /// second after it is ready.
    pub async fn start(address: SocketAddr, kept: usize, fresh: usize) -> Result<Self> {
        eventually("the service to answer", Duration::from_secs(30), async || {
            Ok(Ok(Client::fresh(address).request("/").await?))
        })
        .await?;
        let stop = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicU64::new(0));
        let faults = Arc::new(Mutex::new(Vec::new()));
        let mut clients = JoinSet::new();
        for keep in [true].repeat(kept).into_iter().chain([false].repeat(fresh)) {
            let (stop, answered, faults) = (stop.clone(), answered.clone(), faults.clone());
            clients.spawn(async move {
                let mut client = Client { address, keep, sender: None };
                while !stop.load(Ordering::Relaxed) {
                    match timeout(PATIENCE, client.request("/")).await {
                        Ok(Ok(_)) => _ = answered.fetch_add(1, Ordering::Relaxed),
                        Ok(Err(error)) => faults.lock().expect("no client panics").push(format!("{} {error:#}", now())),
                        Err(_) => faults.lock().expect("no client panics").push(format!("{} no answer", now())),
                    }
                    tokio::time::sleep(Duration::from_millis(40)).await;
                }
            });
        }
        Ok(Self { stop, answered, faults, clients })
    }

    /// Ends the load and tells what became of it.
    pub async fn stop(mut self) -> Outcome {
        self.stop.store(true, Ordering::Relaxed);
        while self.clients.join_next().await.is_some() {}
        let faults = std::mem::take(&mut *self.faults.lock().expect("no client panics"));
        Outcome { answered: self.answered.load(Ordering::Relaxed), faults }
    }
}

impl Outcome {
    /// Fails unless at least `least` requests were answered and none was refused, reset or answered wrongly.
    pub fn flawless(&self, least: u64) -> Result<()> {
        ensure!(
            self.faults.is_empty(),
            "{} of {} requests failed: {}",
            self.faults.len(),
            self.answered + self.faults.len() as u64,
            self.faults.iter().take(5).cloned().collect::<Vec<_>>().join("; ")
        );
        ensure!(self.answered >= least, "only {} requests were made, {least} were wanted", self.answered);
        Ok(())
    }
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}

/// A client that speaks HTTP/1.1 and notices each fault.
pub struct Client {
    address: SocketAddr,
    keep: bool,
    sender: Option<http1::SendRequest<Empty<Bytes>>>,
}

impl Client {
    /// A client with a connection for each request.
    pub fn fresh(address: SocketAddr) -> Self {
        Self { address, keep: false, sender: None }
    }

    /// One GET; anything but 200 is an error.
    pub async fn request(&mut self, path: &str) -> Result<Bytes> {
        let mut sender = match self.sender.take().filter(|sender| !sender.is_closed()) {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        let request = Request::get(path)
            .header(header::HOST, self.address.to_string())
            .body(Empty::new())
            .context("failed to build the request")?;
        let answer = sender.send_request(request).await.context("failed to send the request")?;
        let status = answer.status();
        let close = answer.headers().get(header::CONNECTION).is_some_and(|value| value == "close");
        let body = answer.into_body().collect().await.context("failed to read the answer")?.to_bytes();
        ensure!(status == StatusCode::OK, "answered {status}");
        if self.keep && !close {
            self.sender = Some(sender);
        }
        Ok(body)
    }

    async fn connect(&self) -> Result<http1::SendRequest<Empty<Bytes>>> {
        let stream = TcpStream::connect(self.address).await.context("failed to connect")?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.context("failed to speak HTTP")?;
        tokio::spawn(connection);
        Ok(sender)
    }
}
