//! The process of a controller of requests: what it begins with, and how it ends.

use std::{net::SocketAddr, sync::Arc};

use ankka_runtime::{
    http::{self, Health},
    metrics::Metrics,
    queue::{Lateness, Queue, Timing},
    synced::Synced,
    tenure::{Tenure, guarded},
    workers::{Passes, Replica, Tasks, end_of},
};
use anyhow::Context;
use kube::{Client, Config};
use tokio_util::sync::CancellationToken;

use crate::{
    Request,
    cache::{Cache, Key},
    observe::Observer,
};

/// A controller that observes, and makes no pass yet.
pub struct Controller<T> {
    /// Reads, and holds the Lease.
    pub client: Client,
    /// Sends writes only while the lease is held.
    pub writer: Client,
    /// Knows whether it is.
    pub tenure: Arc<Tenure>,
    /// What is observed.
    pub cache: Arc<Cache<T>>,
    /// What a pass is asked for over.
    pub queue: Arc<Queue<Key>>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// The tasks without which the process is of no use.
    pub tasks: Tasks,
    synced: Synced,
}

/// Which replica of which controller this is.
#[derive(Clone, Copy, Debug)]
pub struct Who<'a> {
    /// The namespace of the platform, where the Lease is.
    pub namespace: &'a str,
    /// Name of the Lease.
    pub lease: &'a str,
    /// The replica's own name.
    pub pod: &'a str,
    /// How many passes are made at a time.
    pub concurrency: usize,
}

impl<T: Request> Controller<T> {
    /// Begins to observe what `resource` is the plural of, and to serve metrics and health at `listen`.
    ///
    /// # Errors
    /// When no client can be made of `config`.
    pub fn start(
        resource: &'static str,
        mut metrics: Metrics,
        timing: Timing,
        listen: SocketAddr,
        mut config: Config,
    ) -> anyhow::Result<Self> {
        // Repetitions are ours to make: each has to ask first whether the lease is still held.
        config.default_retry = false;
        let client = Client::try_from(config).context("failed to build a client for the cluster")?;
        let tenure = Arc::new(Tenure::default());
        let writer = guarded(client.clone(), tenure.clone());
        let cache = Arc::new(Cache::<T>::default());
        let queue = Arc::new(Queue::new(timing));
        metrics.look_up(Lateness(queue.clone()));
        let metrics = Arc::new(metrics);
        let mut tasks = Tasks::new();
        let observer = Observer { resource, cache: cache.clone(), queue: queue.clone(), metrics: metrics.clone() };
        let synced = observer.start(&client, &mut tasks);
        let (waiting, known) = (queue.clone(), cache.clone());
        let health = Health {
            metrics: metrics.clone(),
            waiting: Arc::new(move || waiting.depth()),
            known: Arc::new(move || known.len()),
            synced: synced.clone(),
        };
        tasks.spawn(http::serve(listen, health));
        Ok(Self { client, writer, tenure, cache, queue, metrics, tasks, synced })
    }

    /// Makes passes once everything is known and this replica leads. Runs until `stop` is cancelled, which is a good end, or any
    /// essential task ends, which is an error.
    ///
    /// # Errors
    /// When such a task, a worker or the lease ended.
    pub async fn run(mut self, who: Who<'_>, passes: impl Passes<Key>, stop: &CancellationToken) -> anyhow::Result<()> {
        tokio::select! {
            warm = self.synced.wait() => anyhow::ensure!(warm, "observing the cluster ended"),
            ended = self.tasks.join_next() => return Err(end_of(ended)),
            () = stop.cancelled() => return Ok(()),
        }
        tracing::info!(known = self.cache.len(), "caches are warm, standing by");
        let replica = Replica {
            client: &self.client,
            namespace: who.namespace,
            lease: who.lease,
            pod: who.pod,
            concurrency: who.concurrency,
            tenure: self.tenure,
            metrics: &self.metrics,
        };
        replica.run(&mut self.tasks, &self.queue, passes, || self.cache.keys(), stop).await
    }
}

/// Asks for a pass over everything that is known.
pub fn all_again<T: Request>(cache: Arc<Cache<T>>, queue: Arc<Queue<Key>>) -> impl Fn() + Send + 'static {
    move || cache.keys().into_iter().for_each(|key| queue.add(key))
}
