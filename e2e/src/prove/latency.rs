//! From a change of `minInstances` to the Deployment that says so, against a bare client that patches Deployments at the same rate.

use std::{
    collections::HashMap,
    ops::Range,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use ankka_crds::{AnkkaService, labels::MANAGER};
use anyhow::{Context, Result, bail};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams},
};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{interval, timeout},
};

use super::{
    bare,
    fleet::{CONCURRENCY, Database, fake_project, feed, name, ready},
    rows::{Row, quantile},
};
use crate::suite::{Cluster, cluster::eventually};

const FEW: usize = 100;
const MANY: usize = 1000;
/// Twenty changes a second.
const PERIOD: Duration = Duration::from_millis(50);
/// Changes of one turn: half of them up, half of them down again, so that all is afterwards as it was before.
const CHANGES: usize = 400;
const ROUNDS: usize = 2;
/// Instances before and after: from the second on, a change is one of the Deployment alone. That there is a second one at all is written
/// before it, for instances to wait for each other.
const INSTANCES: [i32; 2] = [2, 3];
/// How long the last change may take to be seen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Measures both in turn at 1,000 services, ours at 100 before.
pub async fn measure(cluster: &Cluster) -> Result<Vec<Row>> {
    cluster.platform.require_local()?.start_fake_nodes(20).await?;
    let namespace = fake_project(cluster, "latency").await?;
    // What an earlier run has left.
    clear(cluster, &namespace).await?;
    let (mut few, mut many, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    standing(cluster, &namespace, 0..FEW).await?;
    for _ in 0..ROUNDS {
        few.extend(turn(cluster, &namespace, FEW, Whom::Services).await?);
    }
    standing(cluster, &namespace, FEW..MANY).await?;
    for _ in 0..ROUNDS {
        many.extend(turn(cluster, &namespace, MANY, Whom::Services).await?);
        let turn = async || turn(cluster, &namespace, MANY, Whom::Deployments).await;
        theirs.extend(bare::instead_of(cluster, "ankka-operator", turn).await?);
        ready(cluster, &namespace, MANY).await?;
    }
    clear(cluster, &namespace).await?;

    let quantiles = |samples: &mut Vec<f64>| (quantile(samples, 0.5), quantile(samples, 0.99));
    let (few, many, theirs) = (quantiles(&mut few), quantiles(&mut many), quantiles(&mut theirs));
    let shown = |(half, most): (f64, f64)| format!("{half:.0} ms, {most:.0} ms");
    Ok(vec![
        Row::at_most(
            "change of `minInstances` to Deployment written, p99 at 1,000 services, against patching Deployments",
            many.1 / theirs.1,
            3.0,
            "×",
        ),
        Row::at_most("the same at 1,000 services, against that at 100", many.1 / few.1, 1.5, "×"),
        Row::figure(
            "change of `minInstances` to Deployment written, p50 and p99",
            format!("{} (at 100 services {}; bare client {})", shown(many), shown(few), shown(theirs)),
        ),
    ])
}

/// Makes the services of these numbers, with as many instances as they have before a change.
async fn standing(cluster: &Cluster, namespace: &str, numbers: Range<usize>) -> Result<()> {
    let until = numbers.end;
    feed(&cluster.client, namespace, numbers.clone(), Database::Supplied).await?;
    let change =
        |number| change(cluster.client.clone(), namespace.to_owned(), Whom::Services, name(number), INSTANCES[0]);
    stream::iter(numbers).map(change).buffer_unordered(CONCURRENCY).try_collect::<()>().await?;
    ready(cluster, namespace, until).await
}

/// Deletes all services and waits until nothing is left of them.
async fn clear(cluster: &Cluster, namespace: &str) -> Result<()> {
    cluster.ok("kubectl", &["delete", "ankkaservices", "--all", "-n", namespace], "").await?;
    eventually("the Deployments to go", Duration::from_mins(5), async || {
        let left = cluster.ok("kubectl", &["get", "deployments", "-n", namespace, "-o", "name"], "").await?;
        Ok(if left.is_empty() { Ok(()) } else { Err(format!("{} are left", left.lines().count())) })
    })
    .await
}

/// What is changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whom {
    /// The services, and the operator changes the Deployments.
    Services,
    /// The Deployments themselves.
    Deployments,
}

/// When each change was sent that has not been seen yet: a Deployment's name and the replicas it is to have.
type Sent = Arc<Mutex<HashMap<(String, i32), Instant>>>;

/// One turn of changes, and the milliseconds that each took until the watch showed the Deployment.
async fn turn(cluster: &Cluster, namespace: &str, services: usize, whom: Whom) -> Result<Vec<f64>> {
    let sent = Sent::default();
    let mut seen = tokio::spawn(see(watch(cluster, namespace).await?, sent.clone()));
    let mut changes = JoinSet::new();
    let mut clock = interval(PERIOD);
    // Each is changed up and down equally often.
    let several = services.min(CHANGES / 2);
    for number in 0..CHANGES {
        clock.tick().await;
        let (service, replicas) = (name(number % several), INSTANCES[1 - number / several % 2]);
        sent.lock().unwrap_or_else(PoisonError::into_inner).insert((service.clone(), replicas), Instant::now());
        changes.spawn(change(cluster.client.clone(), namespace.to_owned(), whom, service, replicas));
    }
    while let Some(change) = changes.join_next().await {
        change??;
    }
    if let Ok(taken) = timeout(PATIENCE, &mut seen).await {
        return taken?;
    }
    seen.abort();
    let left = sent.lock().unwrap_or_else(PoisonError::into_inner).len();
    bail!("{left} of {CHANGES} changes were not seen within {} s", PATIENCE.as_secs())
}

/// Sends one change.
async fn change(client: Client, namespace: String, whom: Whom, name: String, replicas: i32) -> Result<()> {
    let sent = match whom {
        Whom::Services => {
            let instances = json!({ "autoscaling": { "minInstances": replicas } });
            let patch = json!({ "spec": { "service": { "resources": instances } } });
            let services: Api<AnkkaService> = Api::namespaced(client, &namespace);
            services.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
        }
        Whom::Deployments => {
            let patch = json!({ "spec": { "replicas": replicas } });
            // In the operator's name, which finds everything as it left it when it is back.
            let by = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
            let deployments: Api<Deployment> = Api::namespaced(client, &namespace);
            deployments.patch(&name, &by, &Patch::Merge(patch)).await.map(drop)
        }
    };
    sent.with_context(|| format!("failed to change {name}"))
}

type Events = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<Deployment>>> + Send>>;

/// Watches the Deployments from now on.
async fn watch(cluster: &Cluster, namespace: &str) -> Result<Events> {
    let api: Api<Deployment> = Api::namespaced(cluster.client.clone(), namespace);
    let now = api.list(&ListParams::default()).await?.metadata.resource_version.unwrap_or_default();
    Ok(api.watch(&WatchParams::default(), &now).await?.boxed())
}

/// Notes how long each change took, until all have been seen.
async fn see(mut events: Events, sent: Sent) -> Result<Vec<f64>> {
    let mut taken = Vec::with_capacity(CHANGES);
    while taken.len() < CHANGES {
        let WatchEvent::Modified(deployment) = events.next().await.context("the watch ended")?? else { continue };
        let replicas = deployment.spec.and_then(|spec| spec.replicas).unwrap_or_default();
        let key = (deployment.metadata.name.unwrap_or_default(), replicas);
        let since = sent.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        taken.extend(since.map(|since| since.elapsed().as_secs_f64() * 1e3));
    }
    Ok(taken)
}
