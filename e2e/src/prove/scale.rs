//! Thousands of services on fake nodes: how fast their children are made, what is written, and what memory it takes.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use ankka_crds::AnkkaService;
use ankka_desired::ChildKind;
use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, future::join_all, stream};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PostParams},
};
use serde_json::{Value, json};

use super::{
    bare,
    fleet::{self, CONCURRENCY, Database, OPERATOR, all_deployments, between, events, fake_project, feed, ready},
    rows::Row,
    runs::{NAMESPACE as SYSTEM, leader, processes},
};
use crate::{
    audit::AuditEvent,
    platform::Component,
    suite::{Cluster, cluster::eventually},
};

/// 1,000 services from nothing, against a bare client; what is written for them; memory; a restart over them.
pub async fn thousand(cluster: &Arc<Cluster>) -> Result<Vec<Row>> {
    let local = cluster.platform.require_local()?;
    local.start_fake_nodes(20).await?;
    let mut rows = Vec::new();

    let namespace = fake_project(cluster, "thousand").await?;
    let from = cluster.platform.audit()?.end()?;
    feed(&cluster.client, &namespace, 0..1000, Database::Supplied).await?;
    all_deployments(cluster, &namespace, 1000, Duration::from_mins(10)).await?;
    let ours = spread(&events(cluster, from)?, &namespace)?;

    ready(cluster, &namespace, 1000).await?;
    rows.extend(writes(&events(cluster, from)?, &namespace, 1000));
    rows.extend(memory(cluster, "1,000 settled services", 40.0).await?);
    rows.extend(restart(cluster, &namespace).await?);

    let floor = floor(cluster, &namespace).await?;
    rows.insert(
        0,
        Row::at_most(
            "1,000 services to all children present, against a bare client",
            ours.as_secs_f64() / floor.as_secs_f64(),
            1.25,
            "×",
        ),
    );
    rows.insert(
        1,
        Row::figure(
            "1,000 services to all children present",
            format!("{:.1} s (bare client {:.1} s)", ours.as_secs_f64(), floor.as_secs_f64()),
        ),
    );
    Ok(rows)
}

/// Memory with 10,000 services, and its peak over one relist. Nothing runs them: the controllers of Kubernetes are stopped.
/// The local platform is taken down afterwards: nobody would delete all of it in reasonable time.
pub async fn ten_thousand(cluster: &Arc<Cluster>) -> Result<Vec<Row>> {
    let local = cluster.platform.require_local()?;
    let mut namespaces = Vec::new();
    for number in 0..10 {
        namespaces.push(fake_project(cluster, &format!("many-{number}")).await?);
    }
    for component in [Component::ControllerManager, Component::Scheduler, Component::Proxy] {
        local.stop(component).await?;
    }
    let started = Instant::now();
    for namespace in &namespaces {
        feed(&cluster.client, namespace, 0..1000, Database::Supplied).await?;
    }
    for namespace in &namespaces {
        all_deployments(cluster, namespace, 1000, Duration::from_mins(20)).await?;
    }
    let taken = started.elapsed();
    let mut rows =
        vec![Row::figure("10,000 services to all children present", format!("{:.0} s", taken.as_secs_f64()))];
    // Until what the last answers left behind has been worked off.
    tokio::time::sleep(Duration::from_mins(1)).await;
    rows.extend(memory(cluster, "10,000 services", 100.0).await?);

    let leader = leader(cluster).await?;
    let process = *processes(cluster, &leader).await?.first().context("the leader has no process")?;
    std::fs::write(format!("/proc/{process}/clear_refs"), "5").context("failed to reset the peak")?;
    local.stop(Component::ApiServer).await?;
    local.start(Component::ApiServer).await?;
    tokio::time::sleep(Duration::from_secs(90)).await;
    let still = std::path::Path::new(&format!("/proc/{process}")).exists();
    if still {
        rows.push(Row::at_most(
            "operator's peak memory over one relist of 10,000 services",
            field(process, "VmHWM")?,
            100.0,
            " MB",
        ));
    } else {
        rows.push(Row::figure(
            "the leader over the restart of the API server",
            "lost its lease and was restarted; its peak is that of its first listing".to_owned(),
        ));
        eventually("an operator to lead", Duration::from_mins(3), async || {
            Ok(self::leader(cluster).await.map_err(|error| error.to_string()))
        })
        .await?;
        tokio::time::sleep(Duration::from_mins(1)).await;
        let leader = self::leader(cluster).await?;
        let process = *processes(cluster, &leader).await?.first().context("the leader has no process")?;
        rows.push(Row::at_most(
            "operator's peak memory over the listing of 10,000 services",
            field(process, "VmHWM")?,
            100.0,
            " MB",
        ));
    }
    local.down().await?;
    Ok(rows)
}

fn creates_child(event: &AuditEvent, namespace: &str) -> bool {
    event.verb == "create"
        && event.code == 201
        && event.namespace == namespace
        && event.subresource.is_empty()
        && !matches!(event.resource.as_str(), "events" | "controllerrevisions")
}

/// From the first service that was asked for to the last child that was made for one.
fn spread(events: &[AuditEvent], namespace: &str) -> Result<Duration> {
    let made = events.iter().filter(|event| creates_child(event, namespace));
    let first = made.clone().filter(|event| event.resource == "ankkaservices").min_by_key(|event| &event.received);
    let last = made.filter(|event| event.user == OPERATOR).max_by_key(|event| &event.received);
    between(first.context("no service was created")?, last.context("no child was created")?)
}

/// What the operator wrote for new services, by verb and resource.
fn writes(events: &[AuditEvent], namespace: &str, services: usize) -> Vec<Row> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for event in events.iter().filter(|event| event.user == OPERATOR && event.namespace == namespace) {
        if event.is_write() {
            let sub = if event.subresource.is_empty() { String::new() } else { format!("/{}", event.subresource) };
            *counts.entry(format!("{} {}{sub}", event.verb, event.resource)).or_default() += 1;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a few thousand writes")]
    let each = |count: usize| count as f64 / services as f64;
    let status: usize = counts.iter().filter(|(what, _)| what.ends_with("/status")).map(|(_, count)| count).sum();
    let children: usize = counts
        .iter()
        .filter(|(what, _)| what.starts_with("create") && !what.ends_with("events"))
        .map(|(_, count)| count)
        .sum();
    let others: usize = counts
        .iter()
        .filter(|(what, _)| !what.starts_with("create") && !what.ends_with("/status") && !what.ends_with("events"))
        .map(|(_, count)| count)
        .sum();
    let list = counts.iter().map(|(what, count)| format!("{what} {count}")).collect::<Vec<_>>().join(", ");
    vec![
        Row::at_most("status writes for one new service", each(status), 2.0, ""),
        Row::at_most(
            "other writes for one new service beside its six children and its kept descriptor",
            each(children + others) - 7.0,
            0.0,
            "",
        ),
        Row::figure("all writes for 1,000 new services", list),
    ]
}

async fn memory(cluster: &Cluster, what: &str, limit: f64) -> Result<Vec<Row>> {
    let leader = leader(cluster).await?;
    let process = *processes(cluster, &leader).await?.first().context("the leader has no process")?;
    Ok(vec![
        Row::at_most(&format!("operator's resident memory with {what}"), field(process, "VmRSS")?, limit, " MB"),
        Row::figure(&format!("its peak until then, {what}"), format!("{:.1} MB", field(process, "VmHWM")?)),
    ])
}

/// A field of the process's status, in megabytes.
fn field(process: i32, name: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).context("the process is gone")?;
    let line = status.lines().find(|line| line.starts_with(name)).with_context(|| format!("no {name}"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1).with_context(|| format!("no {name}"))?.parse()?;
    Ok(kilobytes * 1024.0 / 1e6)
}

/// Restarts the operator over settled services: nothing but Leases is written.
async fn restart(cluster: &Cluster, namespace: &str) -> Result<Vec<Row>> {
    let before = versions(cluster, namespace).await?;
    let from = cluster.platform.audit()?.end()?;
    cluster
        .ok(
            "kubectl",
            &["delete", "pods", "-n", SYSTEM, "-l", "app.kubernetes.io/name=ankka-operator", "--wait=true"],
            "",
        )
        .await?;
    let started = Instant::now();
    cluster
        .ok("kubectl", &["rollout", "status", "deployment/ankka-operator", "-n", SYSTEM, "--timeout=120s"], "")
        .await?;
    let ready = started.elapsed();
    tokio::time::sleep(Duration::from_secs(45)).await;
    let after = versions(cluster, namespace).await?;
    let moved = before.iter().filter(|(name, version)| after.get(*name) != Some(*version)).count();
    let written = events(cluster, from)?
        .iter()
        .filter(|event| event.user == OPERATOR && event.namespace == namespace && event.is_write())
        .count();
    Ok(vec![
        Row::holds(
            "restart over 1,000 settled services",
            format!("{} objects, {moved} resourceVersions moved, {written} writes", before.len()),
            moved == 0 && written == 0,
        ),
        Row::at_most("ready after that restart", ready.as_secs_f64(), 30.0, " s"),
    ])
}

async fn versions(cluster: &Cluster, namespace: &str) -> Result<BTreeMap<String, String>> {
    let listed = cluster
        .ok(
            "kubectl",
            &[
                "get",
                "ankkaservices,deployments,services,configmaps,serviceaccounts,roles,rolebindings",
                "-n",
                namespace,
                "-o",
                r#"jsonpath={range .items[*]}{.kind}{" "}{.metadata.name}{" "}{.metadata.resourceVersion}{"\n"}{end}"#,
            ],
            "",
        )
        .await?;
    Ok(listed
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(name, version)| (name.to_owned(), version.to_owned()))
        .collect())
}

/// A bare client that writes the same children with the same concurrency and the same rights, while the same services are
/// created beside it; the operator is away.
async fn floor(cluster: &Cluster, pattern: &str) -> Result<Duration> {
    let namespace = fake_project(cluster, "floor").await?;
    let bodies = children(cluster, pattern, &fleet::name(0)).await?;
    let client = bare::client(cluster, "ankka-operator").await?;
    bare::instead_of(cluster, "ankka-operator", async || written(cluster, client, &namespace, &bodies, pattern).await)
        .await
}

/// Creates the services and all their children, and says how long that took.
async fn written(
    cluster: &Cluster,
    bare: Client,
    namespace: &str,
    bodies: &[(ChildKind, String)],
    pattern: &str,
) -> Result<Duration> {
    let started = Instant::now();
    let (sender, made) = tokio::sync::mpsc::unbounded_channel();
    let feeder = {
        let (api, sender): (Api<AnkkaService>, _) = (Api::namespaced(cluster.client.clone(), namespace), sender);
        async move {
            stream::iter(0..1000)
                .map(|number| {
                    let (api, sender) = (api.clone(), sender.clone());
                    async move {
                        let service = api
                            .create(&PostParams::default(), &fleet::service(number, Database::Supplied)?)
                            .await
                            .context("failed to create a service")?;
                        sender
                            .send((number, service.metadata.uid.unwrap_or_default()))
                            .context("nobody makes the children")
                    }
                })
                .buffer_unordered(CONCURRENCY)
                .try_collect::<()>()
                .await
        }
    };
    let maker = stream::unfold(made, |mut made| async move { made.recv().await.map(|next| (next, made)) })
        .map(|(number, uid)| one(bare.clone(), namespace.to_owned(), bodies, pattern, number, uid))
        .buffer_unordered(CONCURRENCY)
        .try_collect::<()>();
    let (fed, written) = tokio::join!(feeder, maker);
    fed?;
    written?;
    Ok(started.elapsed())
}

/// The children of one service as they were asked for, by kind.
async fn children(cluster: &Cluster, namespace: &str, service: &str) -> Result<Vec<(ChildKind, String)>> {
    let mut bodies = Vec::new();
    let counted = |kind: &ChildKind| kind.is_owned() && *kind != ChildKind::PodDisruptionBudget;
    for kind in ChildKind::all().into_iter().filter(counted) {
        let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), namespace, &resource(kind));
        let live = api.get(&kind.name_for(service)).await?;
        let mut body = json!({ "apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": {
            "name": live.metadata.name, "labels": live.metadata.labels, "annotations": live.metadata.annotations, "ownerReferences": live.metadata.owner_references } });
        for (field, value) in live.data.as_object().into_iter().flatten().filter(|(field, _)| *field != "status") {
            body[field] = value.clone();
        }
        if let Some(spec) = body["spec"].as_object_mut().filter(|_| kind == ChildKind::Service) {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        bodies.push((kind, body.to_string()));
    }
    ensure!(bodies.len() == 6, "{} children", bodies.len());
    Ok(bodies)
}

fn resource(kind: ChildKind) -> ApiResource {
    let (group, version) = kind.api_version().split_once('/').unwrap_or(("", kind.api_version()));
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: kind.api_version().to_owned(),
        kind: kind.kind().to_owned(),
        plural: kind.plural().to_owned(),
    }
}

/// Writes one service's children in the operator's order.
async fn one(
    client: Client,
    namespace: String,
    bodies: &[(ChildKind, String)],
    pattern: &str,
    number: usize,
    uid: String,
) -> Result<()> {
    let name = fleet::name(number);
    let stages: [&[ChildKind]; 3] = [
        &[ChildKind::ServiceAccount, ChildKind::Role, ChildKind::ConfigMap, ChildKind::Service],
        &[ChildKind::RoleBinding],
        &[ChildKind::Deployment],
    ];
    for stage in stages {
        let writes = bodies.iter().filter(|(kind, _)| stage.contains(kind)).map(|(kind, body)| {
            let (client, namespace, uid) = (client.clone(), namespace.clone(), uid.clone());
            let body =
                body.replace(&fleet::name(0), &name).replace(pattern, &namespace).replace("\"thousand\"", "\"floor\"");
            async move {
                let mut body: Value = serde_json::from_str(&body)?;
                body["metadata"]["ownerReferences"][0]["uid"] = uid.into();
                let api: Api<DynamicObject> = Api::namespaced_with(client, &namespace, &resource(*kind));
                api.create(&PostParams::default(), &serde_json::from_value(body)?)
                    .await
                    .map(drop)
                    .with_context(|| format!("failed to create a {}", kind.kind()))
            }
        });
        for written in join_all(writes).await {
            written?;
        }
    }
    Ok(())
}
