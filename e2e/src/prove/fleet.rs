//! Services on fake nodes, by the hundred: making them, and waiting until they are there.

use std::{ops::Range, time::Duration};

use ankka_crds::{AnkkaService, AnkkaServiceSpec};
use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
    core::PartialObjectMeta,
};
use serde_json::json;

use crate::{
    audit::{AuditEvent, Position},
    suite::{
        Cluster,
        cluster::{descriptor, eventually},
    },
};

/// As whom the operator asks the API server.
pub(super) const OPERATOR: &str = "system:serviceaccount:ankka-system:ankka-operator";
/// How many requests are under way at a time.
pub(super) const CONCURRENCY: usize = 16;

/// Whose database the services use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Database {
    /// Each gets one.
    Provisioned,
    /// They bring their own: nothing but the operator works for them.
    Supplied,
}

/// A project whose pods are placed on fake nodes.
pub(super) async fn fake_project(cluster: &Cluster, id: &str) -> Result<String> {
    let namespace = cluster.project(id).await?;
    cluster.ok("kubectl", &["label", "namespace", &namespace, "e2e.ankka.dev/nodes=fake", "--overwrite"], "").await?;
    Ok(namespace)
}

/// The name of a service by its number.
pub(super) fn name(number: usize) -> String {
    format!("svc-{number:04}")
}

/// The service of this number.
pub(super) fn service(number: usize, database: Database) -> Result<AnkkaService> {
    let name = name(number);
    let mut env = vec![json!({ "name": "LOG_LEVEL", "value": "info" })];
    if database == Database::Supplied {
        env.push(json!({ "name": "ANKKA_DB_HOST", "value": "database.example.com" }));
    }
    let descriptor = descriptor(&name, json!({ "env": env, "labels": { "team": "checkout" } }));
    let service = serde_json::from_value(descriptor["service"].clone())?;
    Ok(AnkkaService::new(&name, AnkkaServiceSpec { service, ..AnkkaServiceSpec::default() }))
}

/// Creates the services of these numbers.
pub(super) async fn feed(client: &Client, namespace: &str, numbers: Range<usize>, database: Database) -> Result<()> {
    let api: Api<AnkkaService> = Api::namespaced(client.clone(), namespace);
    stream::iter(numbers)
        .map(|number| {
            let api = api.clone();
            async move {
                api.create(&PostParams::default(), &service(number, database)?)
                    .await
                    .map(drop)
                    .context("failed to create a service")
            }
        })
        .buffer_unordered(CONCURRENCY)
        .try_collect()
        .await
}

/// Waits until there are so many Deployments.
pub(super) async fn all_deployments(cluster: &Cluster, namespace: &str, count: usize, limit: Duration) -> Result<()> {
    let api: Api<PartialObjectMeta<Deployment>> = Api::namespaced(cluster.client.clone(), namespace);
    eventually(&format!("{count} Deployments in {namespace}"), limit, async || {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let seen = api.list(&ListParams::default().match_any()).await?.items.len();
        Ok(if seen >= count { Ok(()) } else { Err(format!("{seen}")) })
    })
    .await
}

/// Waits until so many services are ready, and until what follows from that is done.
pub(super) async fn ready(cluster: &Cluster, namespace: &str, count: usize) -> Result<()> {
    let api: Api<AnkkaService> = Api::namespaced(cluster.client.clone(), namespace);
    eventually(&format!("{count} services to be ready"), Duration::from_mins(15), async || {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let all = api.list(&ListParams::default().match_any()).await?.items;
        let seen = all
            .iter()
            .filter(|service| {
                service.status.as_ref().is_some_and(|status| status.lifecycle.as_deref() == Some("Ready"))
            })
            .count();
        Ok(if seen >= count { Ok(()) } else { Err(format!("{seen}")) })
    })
    .await?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    Ok(())
}

/// What the API server was asked for since then.
pub(super) fn events(cluster: &Cluster, from: Position) -> Result<Vec<AuditEvent>> {
    Ok(cluster.platform.audit()?.since(from)?.0)
}

/// The time between two requests.
pub(super) fn between(first: &AuditEvent, last: &AuditEvent) -> Result<Duration> {
    let (first, last): (jiff::Timestamp, jiff::Timestamp) = (first.received.parse()?, last.received.parse()?);
    Ok(Duration::try_from(last.duration_since(first))?)
}
