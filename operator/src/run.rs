//! The process: its tasks, and how it ends.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use kube::{Client, Config};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    cache::Cache,
    http::{self, Health},
    leader::Candidate,
    metrics::Metrics,
    observe::Observer,
    passes::{Passes, work},
    queue::Queue,
    report,
    settings::Settings,
    tenure::{Tenure, guarded},
};

/// How long passes that are under way may go on after a request to stop.
const DRAIN: Duration = Duration::from_secs(15);

/// How long giving the lease back may take.
const RESIGN: Duration = Duration::from_secs(5);

/// Runs until `stop` is cancelled, which is a good end, or any essential task ends, which is an error.
pub async fn run(settings: Settings, mut config: Config, stop: CancellationToken) -> anyhow::Result<()> {
    // Repetitions are ours to make: each has to ask first whether the lease is still held.
    config.default_retry = false;
    let client = Client::try_from(config).context("failed to build a client for the cluster")?;
    let tenure = Arc::new(Tenure::default());
    let writer = guarded(client.clone(), tenure.clone());

    let cache = Arc::new(Cache::new(&settings.desired.prefix));
    let queue = Arc::new(Queue::new(settings.timing));
    let metrics = Arc::new(Metrics::default());
    let mut tasks = JoinSet::new();

    let observer = Observer { cache: cache.clone(), queue: queue.clone(), metrics: metrics.clone() };
    let mut synced = observer.start(&client, &mut tasks);
    let health =
        Health { metrics: metrics.clone(), queue: queue.clone(), cache: cache.clone(), synced: synced.clone() };
    tasks.spawn(http::serve(settings.listen, health));
    let (passes, notices) = Passes::new(&settings, writer.clone(), &cache, &queue, &metrics);
    tasks.spawn(report::publish(writer, settings.pod.clone(), queue.clone(), notices));
    let passes = Arc::new(passes);

    tokio::select! {
        warm = synced.wait() => anyhow::ensure!(warm, "observing the cluster ended"),
        ended = tasks.join_next() => return Err(end_of(ended)),
        () = stop.cancelled() => return Ok(()),
    }
    tracing::info!(services = cache.services(), "caches are warm, standing by");
    let mut candidate = Candidate::stand(&client, &settings.desired.own_namespace, &settings.pod, tenure).await?;
    let mut workers = JoinSet::new();
    let work = async {
        candidate.elected().await?;
        tracing::info!("leading");
        metrics.leads(true);
        for key in cache.keys() {
            queue.add(key);
        }
        for _ in 0..settings.concurrency {
            workers.spawn(work(queue.clone(), passes.clone(), stop.clone()));
        }
        tokio::select! {
            ended = next_unless(&mut workers, &stop) => Err(end_of(ended)),
            lost = candidate.lost() => Err(lost),
        }
    };
    let ended = tokio::select! {
        ended = work => ended,
        ended = tasks.join_next() => Err(end_of(ended)),
        () = stop.cancelled() => Ok(()),
    };
    if ended.is_ok() {
        tracing::info!("stopping: passes that are under way are finished, then the lease is given back");
        drain(&mut workers).await;
    }
    metrics.leads(false);
    let resigned = tokio::time::timeout(RESIGN, candidate.resign()).await;
    ended.and(resigned.context("the lease could not be given back in time").flatten())
}

async fn drain(workers: &mut JoinSet<anyhow::Result<()>>) {
    let drained = tokio::time::timeout(DRAIN, async { while workers.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        tracing::warn!("some passes were not finished in time; the next leader repeats them");
    }
}

/// The first worker that ends although nobody asked it to.
async fn next_unless(
    workers: &mut JoinSet<anyhow::Result<()>>,
    stop: &CancellationToken,
) -> Option<Result<anyhow::Result<()>, tokio::task::JoinError>> {
    let ended = workers.join_next().await;
    if stop.is_cancelled() {
        std::future::pending::<()>().await;
    }
    ended
}

fn end_of(ended: Option<Result<anyhow::Result<()>, tokio::task::JoinError>>) -> anyhow::Error {
    match ended {
        Some(Ok(Err(error))) => error.context("an essential task failed"),
        Some(Err(error)) => anyhow::Error::new(error).context("an essential task panicked"),
        Some(Ok(Ok(()))) | None => anyhow::anyhow!("an essential task ended"),
    }
}
