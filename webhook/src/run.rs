//! The process: three tasks, and the end of any of them ends it.

use std::{
    net::{Ipv6Addr, SocketAddr},
    pin::pin,
    time::Duration,
};

use anyhow::Context;
use axum_server::Handle;
use futures::StreamExt;
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};

use crate::{
    certificates::{self, cluster::Real, directory, keeper::Keeper, material::Minter, serving::Serving},
    server::{self, App},
    settings::Settings,
};

/// How long requests that are being answered may take after the process stopped taking new ones.
const FINISHING: Duration = Duration::from_secs(10);
/// The longest time between two passes over the certificates.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
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
    let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, app.settings.health_port));
    axum_server::bind(address)
        .serve(server::plain(app).into_make_service())
        .await
        .with_context(|| format!("failed to serve health and metrics on {address}"))?;
    anyhow::bail!("health and metrics are no longer served")
}

async fn admission(app: App, serving: Serving, handle: Handle<SocketAddr>) -> anyhow::Result<()> {
    let config = serving.first().await;
    let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, app.settings.port));
    tracing::info!(%address, "serving admission");
    axum_server::bind_rustls(address, config)
        .handle(handle)
        .serve(server::admission(app).into_make_service())
        .await
        .with_context(|| format!("failed to serve admission on {address}"))?;
    // Ends as asked: the process waits for the connections.
    std::future::pending().await
}

async fn certificate(app: App, serving: Serving) -> anyhow::Result<()> {
    let report = |outcome: &certificates::keeper::Outcome| {
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
                if outcome.wrote { Duration::from_millis(20) } else { pause }
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "failed to look after the certificate; trying again");
                app.metrics.passed(None);
                pause.min(Duration::from_secs(2))
            }
            Err(_) => {
                tracing::warn!(seconds = PASS.as_secs(), "the API server did not answer in time; trying again");
                app.metrics.passed(None);
                pause.min(Duration::from_secs(2))
            }
        };
        tokio::select! {
            () = tokio::time::sleep(again) => {}
            _ = changes.next() => {}
        }
    }
}
