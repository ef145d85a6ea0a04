//! The process: three tasks, and the end of any of them ends it.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    pin::pin,
    time::Duration,
};

use anyhow::Context;
use axum_server::{Handle, accept::NoDelayAcceptor};
use futures::StreamExt;
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};

use crate::{
    certificates::{
        self,
        cluster::Real,
        directory,
        keeper::{Keeper, Outcome},
        material::Minter,
        serving::Serving,
    },
    server::{self, App},
    settings::Settings,
};

/// How long requests that are being answered may take after the process stopped taking new ones.
const FINISHING: Duration = Duration::from_secs(10);
/// The longest time between two passes over the certificates.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The longest time while something is due soon, or went wrong.
const SOON: Duration = Duration::from_secs(1);
/// How long one pass may take.
const PASS: Duration = Duration::from_secs(20);

/// Serves until SIGTERM or SIGINT, or until a task that must not end ends, which is an error.
pub async fn run(settings: Settings) -> anyhow::Result<()> {
    let app = App::new(settings);
    let serving = Serving::default();
    let handle = Handle::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(plain(app.clone()));
    tasks.spawn(admission(app.clone(), serving.clone(), handle.clone()));
    tasks.spawn(certificate(app.clone(), serving));

    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        ended = tasks.join_next() => return ended.context("no task is running")?.context("a task panicked")?,
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    // Requests still come until every API server has heard that this endpoint is gone: they are answered as before.
    tracing::info!("ending");
    app.health.drain();
    tokio::time::sleep(Duration::from_secs(app.settings.drain_seconds)).await;
    handle.graceful_shutdown(Some(FINISHING));
    while handle.connection_count() > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

async fn plain(app: App) -> anyhow::Result<()> {
    let listener = listen(app.settings.health_port)?;
    axum_server::from_tcp(listener)?
        .serve(server::plain(app).into_make_service())
        .await
        .context("failed to serve health and metrics")?;
    anyhow::bail!("health and metrics are no longer served")
}

async fn admission(app: App, serving: Serving, handle: Handle<SocketAddr>) -> anyhow::Result<()> {
    let config = serving.first().await;
    let listener = listen(app.settings.port)?;
    tracing::info!(port = app.settings.port, "serving admission");
    axum_server::from_tcp_rustls(listener, config)?
        .map(|tls| tls.acceptor(NoDelayAcceptor::new()))
        .handle(handle)
        .serve(server::admission(app).into_make_service())
        .await
        .context("failed to serve admission")?;
    // Ends as asked: the process waits for the connections.
    std::future::pending().await
}

/// Listens on every address: of both families where the node has IPv6, else of IPv4.
fn listen(port: u16) -> anyhow::Result<TcpListener> {
    TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
        .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))
        .with_context(|| format!("failed to listen on port {port}"))
}

async fn certificate(app: App, serving: Serving) -> anyhow::Result<()> {
    let report = |outcome: &Outcome| {
        app.health.report(outcome, certificates::now());
        app.metrics.passed(Some(outcome));
    };
    if let Some(folder) = &app.settings.certificate_dir {
        directory::keep(folder, &serving, report).await;
        return Ok(());
    }
    let client = kube::Client::try_default().await.context("failed to find the API server")?;
    let cluster = Real::new(client, &app.settings.namespace);
    let mut changes = pin!(cluster.changes().ready_chunks(64).fuse());
    let minter = Minter { dns_names: app.settings.dns_names() };
    let mut keeper = Keeper::new(cluster.clone(), app.settings.lifetimes, minter, serving);
    // Often enough to see every step of the shortest rotation, and hardly ever with the usual lifetimes.
    let shortest = app.settings.lifetimes.overlap.min(app.settings.lifetimes.leaf / 3) / 4;
    let pause = Duration::from_millis(u64::try_from(shortest).unwrap_or_default())
        .clamp(Duration::from_millis(100), LONGEST_PAUSE);
    loop {
        let again = match tokio::time::timeout(PASS, keeper.pass(certificates::now())).await {
            Ok(Ok(outcome)) => {
                report(&outcome);
                match outcome {
                    Outcome { wrote: true, .. } => Duration::from_millis(20),
                    Outcome { replacing: true, .. } => pause.min(SOON),
                    _ => pause,
                }
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "failed to look after the certificate; trying again");
                app.metrics.passed(None);
                pause.min(SOON)
            }
            Err(_) => {
                tracing::warn!(seconds = PASS.as_secs(), "the API server did not answer in time; trying again");
                app.metrics.passed(None);
                pause.min(SOON)
            }
        };
        tokio::select! {
            () = tokio::time::sleep(again) => {}
            _ = changes.next() => {}
        }
    }
}
