//! `ankka services get` of one service, against `kubectl get -o json` of the same resource.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use super::rows::{Row, quantile};
use crate::suite::{Cluster, cluster::descriptor};

const ROUNDS: usize = 40;
const PROJECT: &str = "speed";
const SERVICE: &str = "shown";

/// Runs both in turn, reports the ratio of their medians, and counts what ours asks the API server.
pub async fn measure(cluster: &Cluster) -> Result<Vec<Row>> {
    let namespace = cluster.project(PROJECT).await?;
    cluster.apply(PROJECT, &descriptor(SERVICE, json!({}))).await?;
    cluster.lifecycle(&namespace, SERVICE, "Ready", Duration::from_mins(2)).await?;
    let ours = ["services", "get", SERVICE, "-p", PROJECT];
    let theirs = ["get", "ankkaservices.ankka.dev", SERVICE, "-n", &namespace, "-o", "json"];

    let from = cluster.platform.audit()?.end()?;
    cluster.ok("ankka", &ours, "").await?;
    let (events, _) = cluster.platform.audit()?.since(from)?;
    // Fake nodes speak for the same user; the command does not name itself.
    let asked: Vec<_> =
        events.iter().filter(|event| event.user == "admin" && !event.user_agent.contains("kwok")).collect();

    let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (program, args, times) in [("ankka", &ours[..], &mut our_times), ("kubectl", &theirs[..], &mut their_times)]
        {
            let started = Instant::now();
            let output = cluster.run(program, args, "").await?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
            ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    cluster.ok("ankka", &["services", "delete", SERVICE, "-p", PROJECT], "").await?;
    let (ours, theirs) = (quantile(&mut our_times, 0.5), quantile(&mut their_times, 0.5));
    let requests = asked.iter().map(|event| event.uri.as_str()).collect::<Vec<_>>().join(", ");
    Ok(vec![
        Row::at_most("`ankka services get`, against `kubectl get -o json`", ours / theirs, 0.5, "×"),
        Row::holds(
            "requests of one `ankka services get`: one",
            format!("{}: {requests}", asked.len()),
            asked.len() == 1,
        ),
        Row::figure("one `ankka services get`, median", format!("{ours:.0} ms (kubectl {theirs:.0} ms)")),
    ])
}
