//! `ankka services logs` shows what real instances write: all of them, in order, over restarts and rollouts.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use nix::sys::signal::Signal;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::suite::{
    Case, Cluster,
    cluster::eventually,
    running::{Line, Output},
    workbench,
};

const PROJECT: &str = "logs";
/// Writes a line five times a second, beside the service.
const TICK: &str = "i=0; while :; do i=$((i+1)); echo \"tick $i\"; sleep 0.2; done &";
/// Says the number of the service's process, and what became of it; then the instance ends.
const MORTAL: &str = "cart & child=$!; trap 'kill $child' TERM; echo \"process $child\"; wait $child; \
                      echo \"ended with $?\"; exit 3";

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("the_logs_of_two_instances_are_merged_by_time_and_each_line_names_its_own", |cluster| async move {
            merged(&cluster).await
        }),
        Case::new("what_an_instance_wrote_before_it_crashed_is_shown_with_previous", |cluster| async move {
            previous(&cluster).await
        }),
        Case::new("a_followed_log_goes_on_with_the_instances_of_a_rollout_and_loses_no_line", |cluster| async move {
            followed(&cluster).await
        }),
    ]
}

/// A line as `-o json` prints it.
#[derive(Clone, Debug, Deserialize)]
struct Entry {
    time: jiff::Timestamp,
    instance: String,
    message: String,
}

impl Entry {
    /// The number of a tick.
    fn tick(&self) -> Option<u64> {
        self.message.strip_prefix("tick ")?.parse().ok()
    }

    fn of(line: &Line) -> Option<Self> {
        (line.output == Output::Data).then(|| serde_json::from_str(&line.text).ok())?
    }
}

/// Applies the workbench, and waits until it is ready; returns the namespace. Instances of an earlier run that are still ending
/// would have logs, too.
async fn ready(cluster: &Cluster, name: &str, before: &str, fields: Value) -> Result<String> {
    workbench::import(cluster).await?;
    let namespace = cluster.project(PROJECT).await?;
    cluster.remove(&namespace, name).await?;
    let selector = format!("ankka.dev/service={name}");
    let ended = ["wait", "pods", "-n", &namespace, "-l", &selector, "--for=delete", "--timeout=90s"];
    cluster.ok("kubectl", &ended, "").await?;
    cluster.apply(PROJECT, &workbench::descriptor(name, before, fields)).await?;
    cluster.lifecycle(&namespace, name, "Ready", Duration::from_mins(1)).await?;
    Ok(namespace)
}

/// Runs `ankka services logs`; returns what it printed.
async fn logs(cluster: &Cluster, name: &str, args: &[&str]) -> Result<String> {
    cluster.ok("ankka", &[&["services", "logs", name, "-p", PROJECT], args].concat(), "").await
}

async fn entries(cluster: &Cluster, name: &str, args: &[&str]) -> Result<Vec<Entry>> {
    let printed = logs(cluster, name, &[args, &["-o", "json"]].concat()).await?;
    printed.lines().map(|line| serde_json::from_str(line).with_context(|| format!("no entry: {line}"))).collect()
}

/// The ticks of each instance, which have to follow one another from the first on.
fn ticks(entries: &[Entry]) -> Result<BTreeMap<&str, u64>> {
    let mut last = BTreeMap::new();
    for entry in entries {
        let Some(tick) = entry.tick() else { continue };
        let before = last.insert(entry.instance.as_str(), tick).unwrap_or_default();
        ensure!(tick == before + 1, "tick {before} of {} is followed by tick {tick}", entry.instance);
    }
    Ok(last)
}

async fn merged(cluster: &Cluster) -> Result<()> {
    let name = "talkers";
    let two = json!({ "resources": { "autoscaling": { "minInstances": 2 } } });
    let namespace = ready(cluster, name, TICK, two).await?;
    let all = eventually("both instances to have written ten lines", Duration::from_secs(20), async || {
        let all = entries(cluster, name, &[]).await?;
        let last = ticks(&all)?;
        let enough = last.len() == 2 && last.values().all(|last| *last >= 10);
        Ok(if enough { Ok(all) } else { Err(format!("{last:?}")) })
    })
    .await?;
    ensure!(all.is_sorted_by_key(|entry| entry.time), "they are not in the order of their times");
    let mut pods: Vec<_> = cluster.pods(&namespace, name).await?.iter().map(ResourceExt::name_any).collect();
    pods.sort();
    ensure!(ticks(&all)?.into_keys().eq(pods.iter().map(String::as_str)), "they are not of {pods:?}");
    let turns = all.windows(2).filter(|pair| pair[0].instance != pair[1].instance).count();
    ensure!(turns >= 10, "the instances took {turns} turns only");

    let began = jiff::Timestamp::now();
    let late = entries(cluster, name, &["--since", "2s"]).await?;
    let first = late.first().context("nothing was written in the last seconds")?;
    // The API server counts in whole seconds.
    let age = began.duration_since(first.time).as_secs_f64();
    ensure!(age < 3.5, "a line of {age} s ago is shown");
    ensure!(all[0].time < first.time, "the first line is there still");

    let short = |pod: &str| pod.rsplit('-').next().unwrap_or_default().to_owned();
    let text = logs(cluster, name, &["--tail", "3", "--instance", &short(&pods[0])]).await?;
    let lines: Vec<_> = text.lines().collect();
    let begins = format!("{} | tick ", short(&pods[0]));
    ensure!(lines.len() == 3 && lines.iter().all(|line| line.starts_with(&begins)), "{text}");
    cluster.ok("ankka", &["services", "delete", name, "-p", PROJECT, "--no-wait"], "").await.map(drop)
}

async fn previous(cluster: &Cluster) -> Result<()> {
    let name = "mortal";
    let namespace = ready(cluster, name, MORTAL, json!({})).await?;
    let early = cluster.run("ankka", &["services", "logs", name, "-p", PROJECT, "--previous"], "").await?;
    let said = String::from_utf8_lossy(&early.stderr);
    ensure!(early.status.code() == Some(1) && said.contains("has been restarted"), "{}: {said}", early.status);

    let written = entries(cluster, name, &[]).await?;
    let process = written.iter().find_map(|entry| entry.message.strip_prefix("process ")).context("no process")?;
    let kill = format!("kill -KILL {process}");
    let exec = ["services", "exec", name, "-p", PROJECT, "--", "sh", "-c", &kill];
    cluster.ok("ankka", &exec, "").await?;
    let before = eventually("the log of before the crash", Duration::from_secs(20), async || {
        Ok(Ok(entries(cluster, name, &["--previous"]).await?))
    })
    .await?;
    let messages = |entries: &[Entry]| entries.iter().map(|entry| entry.message.clone()).collect::<Vec<_>>();
    let (old, last) = (messages(&written), messages(&before));
    ensure!(last.starts_with(&old), "{last:?} does not begin with {old:?}");
    ensure!(last.last().is_some_and(|last| last == "ended with 137"), "{last:?}");
    cluster.lifecycle(&namespace, name, "Ready", Duration::from_mins(1)).await?;
    let now = messages(&entries(cluster, name, &[]).await?);
    ensure!(now.iter().all(|line| !line.starts_with("ended with")), "{now:?}");
    cluster.ok("ankka", &["services", "delete", name, "-p", PROJECT, "--no-wait"], "").await.map(drop)
}

async fn followed(cluster: &Cluster) -> Result<()> {
    let name = "followed";
    let namespace = ready(cluster, name, TICK, json!({})).await?;
    let follow = ["services", "logs", name, "-p", PROJECT, "--follow", "-o", "json"];
    let follow = cluster.start("ankka", &follow, "")?;
    let limit = Duration::from_secs(30);
    let old = follow.until("a line", limit, |line| Entry::of(line).map(|entry| entry.instance)).await?;

    let next = json!({ "env": [{ "name": "REVISION", "value": "2" }] });
    cluster.apply(PROJECT, &workbench::descriptor(name, TICK, next)).await?;
    cluster.lifecycle(&namespace, name, "Ready", Duration::from_mins(2)).await?;
    let of = |line: &Line| Entry::of(line);
    let new = |line: &Line| of(line).filter(|entry| entry.instance != old && entry.tick() > Some(5));
    follow.until("a line of the new instance", limit, new).await?;
    let farewell =
        |line: &Line| of(line).filter(|entry| entry.instance == old && entry.message.contains("\"stopping\""));
    follow.until("the last line of the old instance", Duration::from_mins(1), farewell).await?;
    let (code, lines) = follow.stop(Signal::SIGTERM).await?;
    ensure!(code == Some(143), "it ended with {code:?}");
    let entries: Vec<_> = lines.iter().filter_map(Entry::of).collect();
    let last = ticks(&entries)?;
    ensure!(last.len() == 2, "{last:?}");
    cluster.ok("ankka", &["services", "delete", name, "-p", PROJECT, "--no-wait"], "").await.map(drop)
}
