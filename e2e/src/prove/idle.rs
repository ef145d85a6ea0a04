//! A platform with nothing to do: nothing is written but the renewals of Leases.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;

use super::{
    fleet::{Database, fake_project, feed, ready},
    rows::Row,
};
use crate::{audit::AuditEvent, suite::Cluster};

const SERVICES: usize = 200;
const QUIET: Duration = Duration::from_mins(15);
const PLATFORM: &str = "system:serviceaccount:ankka-system:";

/// Leaves 200 settled services alone for a quarter of an hour, and counts what the platform's processes wrote meanwhile.
pub async fn measure(cluster: &Cluster) -> Result<Vec<Row>> {
    cluster.platform.require_local()?.start_fake_nodes(20).await?;
    let namespace = fake_project(cluster, "idle").await?;
    feed(&cluster.client, &namespace, 0..SERVICES, Database::Provisioned).await?;
    ready(cluster, &namespace, SERVICES).await?;
    // What the last answers left behind is worked off.
    tokio::time::sleep(Duration::from_mins(1)).await;
    let before = versions(cluster).await?;
    let from = cluster.platform.audit()?.end()?;
    tokio::time::sleep(QUIET).await;
    let (events, _) = cluster.platform.audit()?.since(from)?;

    let mut written: BTreeMap<String, usize> = BTreeMap::new();
    let mut renewals = 0_usize;
    for event in events.iter().filter(|event| event.user.starts_with(PLATFORM) && persists(event)) {
        if event.resource == "leases" {
            renewals += 1;
        } else {
            let process = event.user.trim_start_matches(PLATFORM);
            *written.entry(format!("{process} {} {}", event.verb, event.uri)).or_default() += 1;
        }
    }
    let after = versions(cluster).await?;
    let moved = moved(&before, &after);
    let first =
        written.first_key_value().map(|(what, count)| format!(", the first: {count} × {what}")).unwrap_or_default();
    // A write of what is stored already is answered with 200 and stores nothing: only the objects tell.
    let value = format!(
        "{} of {} objects changed {:?}; {renewals} renewals of Leases, {} other requests{first}",
        moved.len(),
        before.len(),
        moved.first().unwrap_or(&""),
        written.values().sum::<usize>()
    );
    Ok(vec![Row::holds("a quarter of an hour idle with 200 services and databases", value, moved.is_empty())])
}

/// The version of every object that the platform writes, Leases aside, by kind, namespace and name.
pub(super) async fn versions(cluster: &Cluster) -> Result<BTreeMap<String, String>> {
    let kinds = "ankkaservices,ankkaprojects,ankkadatabases,deployments,services,configmaps,secrets,serviceaccounts,roles,rolebindings";
    let each = r#"jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{" "}{.metadata.resourceVersion}{"\n"}{end}"#;
    let listed = cluster.ok("kubectl", &["get", kinds, "--all-namespaces", "-o", each], "").await?;
    let lines = listed.lines().filter_map(|line| line.rsplit_once(' '));
    Ok(lines.map(|(name, version)| (name.to_owned(), version.to_owned())).collect())
}

/// What has another version than before, or is new, or gone.
pub(super) fn moved<'a>(before: &'a BTreeMap<String, String>, after: &'a BTreeMap<String, String>) -> Vec<&'a str> {
    let names: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    names.into_iter().filter(|name| before.get(*name) != after.get(*name)).map(String::as_str).collect()
}

/// Whether a request may have changed what is stored.
pub(super) fn persists(event: &AuditEvent) -> bool {
    event.is_write()
        && event.stage == "ResponseComplete"
        && event.code < 300
        && !event.uri.contains("dryRun=All")
        // Asking what somebody may do is written with a POST and stored nowhere.
        && !matches!(event.resource.as_str(), "subjectaccessreviews" | "selfsubjectaccessreviews" | "tokenreviews")
}
