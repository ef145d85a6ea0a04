//! What takes longer than the gate allows: long runs and measurements, each resumable, and the table that reports them.
//!
//! Absolute times are noise on a shared machine: a bar is a ratio of two things measured in the same run, taken in turn.

pub mod apply;
mod bare;
pub mod databases;
mod fleet;
mod freeze;
pub mod frozen_database;
pub mod get;
pub mod idle;
pub mod latency;
mod plain;
pub mod rows;
pub mod runs;
pub mod scale;
pub mod sequences;
pub mod start;
pub mod validate;
pub mod webhook;

use std::{future::Future, path::Path, pin::Pin, sync::Arc};

use anyhow::Result;

pub use rows::{Row, Verdict, table};

use crate::suite::{Cluster, report};

type Run = Box<dyn Fn(Arc<Cluster>) -> Pin<Box<dyn Future<Output = Result<Vec<Row>>>>>>;

/// One measurement: a name to resume by, and what it finds.
pub struct Measure {
    name: &'static str,
    run: Run,
}

impl Measure {
    fn new<F, T>(name: &'static str, run: F) -> Self
    where
        F: Fn(Arc<Cluster>) -> T + 'static,
        T: Future<Output = Result<Vec<Row>>> + 'static,
    {
        Self { name, run: Box::new(move |cluster| Box::pin(run(cluster))) }
    }
}

fn all() -> Vec<Measure> {
    vec![
        Measure::new("validate", |_| async { validate::measure() }),
        Measure::new("webhook", |cluster| async move { webhook::measure(&cluster).await }),
        Measure::new("apply", |cluster| async move { apply::measure(&cluster).await }),
        Measure::new("get", |cluster| async move { get::measure(&cluster).await }),
        Measure::new("start", |_| async { start::measure().await }),
        Measure::new("databases", |cluster| async move { databases::measure(&cluster).await }),
        Measure::new("latency", |cluster| async move { latency::measure(&cluster).await }),
        Measure::new("sequences", |_| async { sequences::decisions().await }),
        Measure::new("sequences-on-the-platform", |cluster| async move { sequences::platform(&cluster).await }),
        Measure::new("agreement", |cluster| async move { runs::agreement(&cluster).await }),
        Measure::new("rollouts", |cluster| async move { runs::rollouts(&cluster).await }),
        Measure::new("rotation", |cluster| async move { runs::rotation(&cluster).await }),
        Measure::new("frozen-operator", |cluster| async move { runs::frozen(&cluster).await }),
        Measure::new("frozen-database", |cluster| async move { frozen_database::measure(&cluster).await }),
        Measure::new("idle", |cluster| async move { idle::measure(&cluster).await }),
        Measure::new("thousand", |cluster| async move { scale::thousand(&cluster).await }),
        Measure::new("memory-with-10000", |cluster| async move { scale::ten_thousand(&cluster).await }),
    ]
}

/// Runs every measurement that `folder` holds no result of yet (or the ones whose name contains `filter`, again), and returns all rows.
pub async fn prove(cluster: &Arc<Cluster>, folder: &Path, filter: Option<&str>) -> Result<Vec<Row>> {
    std::fs::create_dir_all(folder)?;
    let mut rows = Vec::new();
    for measure in all() {
        let file = folder.join(format!("{}.json", measure.name));
        let wanted = filter.map(|filter| measure.name.contains(filter));
        if wanted != Some(true) {
            if let Ok(text) = std::fs::read(&file) {
                rows.extend(serde_json::from_slice::<Vec<Row>>(&text)?);
                continue;
            }
            if wanted == Some(false) {
                continue;
            }
        }
        report::line(&format!("measuring {} ...", measure.name));
        match (measure.run)(cluster.clone()).await {
            Ok(found) => {
                for row in &found {
                    report::line(&format!("    {row}"));
                }
                std::fs::write(&file, serde_json::to_vec_pretty(&found)?)?;
                rows.extend(found);
            }
            Err(error) => {
                report::line(&format!("    failed: {error:?}"));
                rows.push(Row::broken(measure.name, &error));
            }
        }
    }
    Ok(rows)
}
