//! One replica's part: standing for election, and, once elected, workers that make passes until the end.

use std::{
    fmt::{Debug, Display},
    hash::Hash,
    sync::Arc,
    time::Duration,
};

use ankka_telemetry::SPANS;
use anyhow::Context;
use kube::Client;
use tokio::{
    task::{JoinError, JoinSet},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, field::Empty};

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

/// How long until a pass is counted again that something was down for, however rare resyncs are: alerts rest on that.
const WHILE_DOWN: Duration = Duration::from_mins(2);

/// Tasks without which the process is of no use: none of them ends by itself.
pub type Tasks = JoinSet<anyhow::Result<()>>;

/// Passes over what keys stand for.
pub trait Passes<K>: Send + Sync + 'static {
    /// One pass.
    fn one(&self, key: &K) -> impl Future<Output = Next> + Send;
}

/// Why a pass did not finish.
pub trait Unfinished: Display {
    /// It took longer than this.
    fn overdue(limit: Duration) -> Self;

    /// A word for metrics, of a fixed set.
    fn label(&self) -> &'static str;

    /// Whether what it needs is known to be down, so that nothing was tried. A monitor has said so once, and asks for all passes when it
    /// is back.
    fn is_down(&self) -> bool {
        false
    }
}

/// What a pass is over.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its kind as metrics and traces have it.
    pub kind: &'static str,
    /// Its namespace, when it is in one.
    pub namespace: Option<&'a str>,
    /// Its name.
    pub name: &'a str,
}

/// Makes one pass, which may take as long as `limit`. It is a span and is counted, and where it did not finish, that is logged.
pub async fn reported<E: Unfinished>(
    subject: Subject<'_>,
    metrics: &Metrics,
    limit: Duration,
    pass: impl Future<Output = Result<Next, E>>,
) -> Next {
    let start = Instant::now();
    let Subject { kind: subject, namespace, name } = subject;
    let span = tracing::info_span!(target: SPANS, "reconcile", subject, namespace, name, error = Empty);
    // On the heap: as part of this future it would be there twice.
    let pass = tokio::time::timeout(limit, Box::pin(pass)).instrument(span.clone());
    let result = pass.await.unwrap_or_else(|_| Err(E::overdue(limit)));
    let label = result.as_ref().err().map(E::label);
    span.record("error", label);
    let took = start.elapsed();
    metrics.passed(subject, took, label);
    result.unwrap_or_else(|error| {
        if error.is_down() {
            return Next::After(WHILE_DOWN);
        }
        let milliseconds = took.as_millis();
        tracing::warn!(subject, namespace, name, %error, milliseconds, "the pass did not finish, it is tried again");
        Next::Retry
    })
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
