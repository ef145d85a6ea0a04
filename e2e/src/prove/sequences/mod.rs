//! Random sequences of applies and commands: ten thousand over the decisions with a modelled store, and three hundred
//! through the real API server, webhook, controllers and database. Wherever they lead, the end is what was asked for.

mod rendered;
mod walk;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::DeleteParams};

use super::{rows::Row, runs};
use crate::{paths, progress::step, run::Run, suite::Cluster};
use walk::Walk;

/// Sequences over the decisions.
const DECISIONS: u32 = 10_000;
/// Services that are worked on at once, each in a project with another.
const SERVICES: u64 = 6;
/// Sequences for each of them.
const EACH: u64 = 50;
/// How often the leading operator is ended meanwhile.
const LEADS_FOR: Duration = Duration::from_secs(25);

/// The tests of `ankka-desired` that walk through random sequences, with more of them than in a test run.
pub async fn decisions() -> Result<Vec<Row>> {
    let cargo = || {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let test = ["test", "--release", "--package", "ankka-desired", "--test", "it"];
        Run::new(cargo).args(test).dir(paths::workspace()).limit(Duration::from_hours(1))
    };
    step("compiling the sequences", None, cargo().args(["--no-run"]).text()).await?;
    let started = Instant::now();
    let cases = DECISIONS.to_string();
    let outcome = cargo().args(["sequences::"]).env("PROPTEST_CASES", &cases).text().await;
    let value = outcome.as_ref().map_or_else(|error| format!("{error:#}"), |_| format!("{cases} sequences, 0 failed"));
    Ok(vec![
        Row::holds("random sequences over the decisions and a modelled store", value, outcome.is_ok()),
        Row::at_most("how long they take", started.elapsed().as_secs_f64() / 60.0, 10.0, " min"),
    ])
}

/// The same through the real platform, while operators come and go.
pub async fn platform(cluster: &Arc<Cluster>) -> Result<Vec<Row>> {
    let started = Instant::now();
    let walks = join_all((0..SERVICES).map(|number| async move { Walk::new(cluster, number).await?.all(EACH).await }));
    let results = tokio::select! {
        results = walks => results,
        error = ended_operators(cluster) => return Err(error),
    };
    let failed: Vec<String> =
        results.iter().filter_map(|result| result.as_ref().err()).map(|error| format!("{error:#}")).collect();
    let steps: usize = results.iter().flatten().sum();
    let value = match failed.first() {
        None => format!("{} sequences of {steps} steps, 0 failed", SERVICES * EACH),
        Some(first) => format!("{} of {SERVICES} services failed, the first: {first}", failed.len()),
    };
    Ok(vec![
        Row::holds("random sequences through API server, webhook and controllers", value, failed.is_empty()),
        Row::figure("how long they took", format!("{:.1} min", started.elapsed().as_secs_f64() / 60.0)),
    ])
}

/// Ends the leading operator again and again; returns only when that cannot be done.
async fn ended_operators(cluster: &Cluster) -> anyhow::Error {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), runs::NAMESPACE);
    loop {
        tokio::time::sleep(LEADS_FOR).await;
        let end = async {
            let leader = runs::leader(cluster).await?;
            match pods.delete(&leader, &DeleteParams::default().grace_period(0)).await {
                // Another one has taken over since.
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                result => result.map(|_| ()).map_err(anyhow::Error::from),
            }
        };
        if let Err(error) = end.await {
            return error.context("failed to end the leading operator");
        }
    }
}
