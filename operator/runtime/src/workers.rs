//! One replica's part: standing for election, and, once elected, workers that make passes until the end.

use std::{fmt::Debug, hash::Hash, sync::Arc, time::Duration};

use anyhow::Context;
use kube::Client;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    leader::Candidate,
    metrics::Metrics,
    queue::{Next, Queue},
    tenure::Tenure,
};

/// How long passes that are under way may go on after a request to stop.
const DRAIN: Duration = Duration::from_secs(15);

/// How long giving the lease back may take.
const RESIGN: Duration = Duration::from_secs(5);

/// Tasks without which the process is of no use: none of them ends by itself.
pub type Tasks = JoinSet<anyhow::Result<()>>;

/// Passes over what keys stand for.
pub trait Passes<K>: Send + Sync + 'static {
    /// One pass.
    fn one(&self, key: &K) -> impl Future<Output = Next> + Send;
}

/// One replica of a controller.
pub struct Replica<'a> {
    /// Used for the Lease alone.
    pub client: &'a Client,
    /// Where the Lease is.
    pub namespace: &'a str,
    /// Name of the Lease.
    pub lease: &'a str,
    /// The replica's own name.
    pub pod: &'a str,
    /// How many passes are made at a time.
    pub concurrency: usize,
    /// Told whether this replica may write.
    pub tenure: Arc<Tenure>,
    /// Told whether this replica leads.
    pub metrics: &'a Metrics,
}

impl Replica<'_> {
    /// Makes passes over what comes out of `queue`, beginning with all that `keys` says once this replica leads. Runs until
    /// `stop` is cancelled, which is a good end, or one of `tasks`, a worker or the lease ends, which is an error.
    pub async fn run<K, P>(
        self,
        tasks: &mut Tasks,
        queue: &Arc<Queue<K>>,
        passes: P,
        keys: impl FnOnce() -> Vec<K>,
        stop: &CancellationToken,
    ) -> anyhow::Result<()>
    where
        K: Clone + Debug + Eq + Hash + Send + Sync + 'static,
        P: Passes<K>,
    {
        let passes = Arc::new(passes);
        let mut candidate =
            Candidate::stand(self.client, self.namespace, self.lease, self.pod, self.tenure.clone()).await?;
        let mut workers = JoinSet::new();
        let work = async {
            candidate.elected().await?;
            tracing::info!("leading");
            self.metrics.leads(true);
            for key in keys() {
                queue.add(key);
            }
            for _ in 0..self.concurrency {
                workers.spawn(work(queue.clone(), passes.clone(), stop.clone()));
            }
            tokio::select! {
                ended = next_unless(&mut workers, stop) => Err(end_of(ended)),
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
        self.metrics.leads(false);
        let resigned = tokio::time::timeout(RESIGN, candidate.resign()).await;
        ended.and(resigned.context("the lease could not be given back in time").flatten())
    }
}

/// Makes one pass after the other until `stop` is cancelled; a pass that is under way is finished.
async fn work<K, P>(queue: Arc<Queue<K>>, passes: Arc<P>, stop: CancellationToken) -> anyhow::Result<()>
where
    K: Clone + Eq + Hash,
    P: Passes<K>,
{
    loop {
        let key = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            key = queue.next() => key,
        };
        let next = passes.one(&key).await;
        queue.done(key, next);
    }
}

async fn drain(workers: &mut Tasks) {
    let drained = tokio::time::timeout(DRAIN, async { while workers.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        tracing::warn!("some passes were not finished in time; the next leader repeats them");
    }
}

/// The first worker that ends although nobody asked it to.
async fn next_unless(workers: &mut Tasks, stop: &CancellationToken) -> Option<Result<anyhow::Result<()>, JoinError>> {
    let ended = workers.join_next().await;
    if stop.is_cancelled() {
        std::future::pending::<()>().await;
    }
    ended
}

/// What the end of an essential task says.
pub fn end_of(ended: Option<Result<anyhow::Result<()>, JoinError>>) -> anyhow::Error {
    match ended {
        Some(Ok(Err(error))) => error.context("an essential task failed"),
        Some(Err(error)) => anyhow::Error::new(error).context("an essential task panicked"),
        Some(Ok(Ok(()))) | None => anyhow::anyhow!("an essential task ended"),
    }
}
