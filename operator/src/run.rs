//! The process: its tasks, and how it ends.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use kube::{Client, Config};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    act::Actor,
    cache::{Cache, Key},
    error::Error,
    http::{self, Health},
    leader::Candidate,
    metrics::{Metrics, Subject},
    observe::Observer,
    project::Projects,
    queue::{Next, Queue},
    report::{self, Events, Statuses},
    service::Services,
    settings::Settings,
    tenure::{Tenure, guarded},
    wire::Wire,
};

/// How long one pass may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// How long passes that are under way may go on after a request to stop.
const DRAIN: Duration = Duration::from_secs(15);

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
    let health = Health { metrics: metrics.clone(), queue: queue.clone(), cache: cache.clone(), synced: synced.clone() };
    tasks.spawn(http::serve(settings.listen, health));
    let (events, notices) = Events::channel();
    tasks.spawn(report::publish(writer.clone(), settings.pod.clone(), notices));

    let wire = Wire { client: writer, metrics: metrics.clone() };
    let statuses = Statuses { wire: wire.clone(), cache: cache.clone(), events };
    let actor = Actor { wire: wire.clone(), cache: cache.clone() };
    let desired = Arc::new(settings.desired);
    let gateway_namespace = settings.gateway_namespace;
    let passes = Arc::new(Passes {
        services: Services { settings: desired.clone(), cache: cache.clone(), actor, statuses: statuses.clone() },
        projects: Projects { settings: desired.clone(), gateway_namespace, cache: cache.clone(), wire, statuses },
        metrics: metrics.clone(),
    });

    let namespace = &desired.own_namespace;
    let mut candidate = Candidate::stand(&client, namespace, &settings.pod, tenure).await?;
    let elected = async {
        if !synced.wait().await {
            anyhow::bail!("observing the cluster ended");
        }
        tracing::info!(services = cache.services(), "caches are warm, standing by");
        candidate.elected().await
    };
    tokio::select! {
        elected = elected => elected?,
        ended = tasks.join_next() => return Err(end_of(ended)),
        () = stop.cancelled() => return candidate.resign().await,
    }
    metrics.leads(true);
    tracing::info!("leading");
    for key in cache.keys() {
        queue.add(key);
    }
    let mut workers = JoinSet::new();
    for _ in 0..settings.concurrency {
        workers.spawn(work(queue.clone(), passes.clone(), stop.clone()));
    }
    tokio::select! {
        ended = tasks.join_next() => return Err(end_of(ended)),
        ended = next_unless(&mut workers, &stop) => return Err(end_of(ended)),
        lost = candidate.lost() => return Err(lost),
        () = stop.cancelled() => {}
    }
    tracing::info!("stopping: passes that are under way are finished, then the lease is given back");
    let drained = tokio::time::timeout(DRAIN, async { while workers.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        tracing::warn!("some passes were not finished in time; the next leader repeats them");
    }
    candidate.resign().await
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

/// Passes over everything there is.
struct Passes {
    services: Services,
    projects: Projects,
    metrics: Arc<Metrics>,
}

async fn work(queue: Arc<Queue<Key>>, passes: Arc<Passes>, stop: CancellationToken) -> anyhow::Result<()> {
    loop {
        let key = tokio::select! {
            key = queue.next() => key,
            () = stop.cancelled() => return Ok(()),
        };
        let next = passes.one(&key).await;
        queue.done(key, next);
    }
}

impl Passes {
    async fn one(&self, key: &Key) -> Next {
        let start = Instant::now();
        let pass = async {
            match key {
                Key::Service(id) => self.services.pass(id).await,
                Key::Project(id) => self.projects.pass(id).await,
            }
        };
        let result = tokio::time::timeout(DEADLINE, pass).await.unwrap_or(Err(Error::Deadline(DEADLINE)));
        let subject = match key {
            Key::Service(_) => Subject::Service,
            Key::Project(_) => Subject::Project,
        };
        let took = start.elapsed();
        self.metrics.passed(subject, took, result.as_ref().err().map(Error::label));
        result.unwrap_or_else(|error| {
            let (namespace, name) = match key {
                Key::Service(id) => (Some(&*id.namespace), &*id.name),
                Key::Project(id) => (None, &**id),
            };
            tracing::warn!(?subject, namespace, name, %error, milliseconds = took.as_millis(), "the pass did not finish, it is tried again");
            Next::Retry
        })
    }
}
