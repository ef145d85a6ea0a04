//! Runs cases one after another, or families of them beside each other, and counts them.

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use futures::{FutureExt, future::join_all};

use super::{Cluster, report};

/// The longest a single case may take.
const CASE_LIMIT: Duration = Duration::from_mins(15);

type Run = Box<dyn Fn(Arc<Cluster>) -> Pin<Box<dyn Future<Output = Result<()>>>>>;

/// One sentence about the product, and how to see that it holds.
pub struct Case {
    /// The sentence, in words joined by underscores so that it can be typed as a filter.
    pub name: &'static str,
    run: Run,
}

impl Case {
    /// A case from an async function.
    pub fn new<F, T>(name: &'static str, run: F) -> Self
    where
        F: Fn(Arc<Cluster>) -> T + 'static,
        T: Future<Output = Result<()>> + 'static,
    {
        Self { name, run: Box::new(move |cluster| Box::pin(run(cluster))) }
    }
}

/// How many tests passed and failed.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Tests that passed.
    pub passed: usize,
    /// Names of those that failed.
    pub failed: Vec<String>,
}

impl Tally {
    /// Counts one test.
    pub fn count(&mut self, name: &str, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed.push(name.to_owned());
        }
    }

    /// Adds another tally to this one.
    pub fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
    }
}

/// Families that disturb each other in nothing: each runs its cases in order, and all run at the same time.
pub type Together = Vec<Vec<Case>>;

/// Runs the cases whose name contains `filter`, one group after another; a case that fails does not stop the rest.
pub async fn run_all(groups: &[Together], cluster: &Arc<Cluster>, filter: Option<&str>) -> Tally {
    let mut tally = Tally::default();
    for group in groups {
        for family in join_all(group.iter().map(|family| run(family, cluster, filter))).await {
            tally.add(family);
        }
    }
    tally
}

/// Runs the cases whose name contains `filter`, in order; one that fails does not stop the rest.
pub async fn run(cases: &[Case], cluster: &Arc<Cluster>, filter: Option<&str>) -> Tally {
    let mut tally = Tally::default();
    for case in cases.iter().filter(|case| filter.is_none_or(|wanted| case.name.contains(wanted))) {
        tally.count(case.name, passes(case, cluster).await);
    }
    tally
}

/// Runs one case and says how it went.
async fn passes(case: &Case, cluster: &Arc<Cluster>) -> bool {
    let started = Instant::now();
    let outcome = AssertUnwindSafe(tokio::time::timeout(CASE_LIMIT, (case.run)(cluster.clone()))).catch_unwind().await;
    let result = match outcome {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(anyhow!("no end after {} s", CASE_LIMIT.as_secs())),
        Err(panic) => Err(anyhow!("panicked: {}", words(&*panic))),
    };
    let taken = started.elapsed().as_secs_f64();
    match &result {
        Ok(()) => report::line(&format!("test {} ... ok ({taken:.1} s)", case.name)),
        Err(error) => {
            let why = format!("{error:#}").replace('\n', "\n    ");
            report::line(&format!("test {} ... FAILED ({taken:.1} s)\n    {why}", case.name));
        }
    }
    result.is_ok()
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "without words".to_owned())
}
