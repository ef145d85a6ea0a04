//! `ankka services apply` of one service, against `kubectl apply --server-side` of the rendered resource.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;

use super::rows::{Row, quantile};
use crate::suite::{Cluster, cluster::descriptor};

const ROUNDS: usize = 25;

/// Runs both in turn on changed descriptors and reports the ratio of their medians.
pub async fn measure(cluster: &Cluster) -> Result<Vec<Row>> {
    let namespace = cluster.project("speed").await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        for (name, times) in [("ours", &mut ours), ("theirs", &mut theirs)] {
            let wanted = descriptor(
                name,
                json!({ "provisionObjectStorage": true, "env": [{ "name": "ROUND", "value": round.to_string() }] }),
            )
            .to_string();
            let rendered = cluster.ok("ankka", &["services", "render", "-f", "-", "-p", "speed"], &wanted).await?;
            let started = Instant::now();
            let output = if name == "ours" {
                cluster.run("ankka", &["services", "apply", "-f", "-", "-p", "speed", "--wait=0"], &wanted).await?
            } else {
                cluster
                    .run(
                        "kubectl",
                        &["apply", "--server-side", "--field-manager=theirs", "-n", &namespace, "-f", "-"],
                        &rendered,
                    )
                    .await?
            };
            ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    let (ours, theirs) = (quantile(&mut ours, 0.5), quantile(&mut theirs, 0.5));
    Ok(vec![
        Row::at_most("`ankka services apply`, against `kubectl apply --server-side`", ours / theirs, 0.5, "×"),
        Row::figure("one `ankka services apply`, median", format!("{ours:.0} ms (kubectl {theirs:.0} ms)")),
    ])
}
