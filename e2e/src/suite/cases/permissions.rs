//! What each process may do is what it does: read from the API server's audit log of all cases before.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject};
use kube::{Api, api::ListParams};

use crate::{
    audit::{AuditEvent, Position},
    suite::{Case, Cluster},
};

const NAMESPACE: &str = "ankka-system";

/// Held and never used in a request. The first two only so that they may be granted, to instances and to administrators: RBAC
/// lets nobody grant what they do not hold, and nobody bind to a role unless they may. The others are verbs of ours, which
/// admission policies ask about.
const ONLY_HELD: &[(&str, &str, &str)] = &[
    ("", "pods", "get"),
    ("rbac.authorization.k8s.io", "clusterroles", "bind"),
    ("ankka.dev", "ankkadatabases", "request"),
    ("ankka.dev", "ankkadatabases", "fulfil"),
];

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![Case::new(
        "every_granted_verb_is_used_and_nothing_is_denied",
        |cluster| async move { minimal(&cluster).await },
    )]
}

/// One thing that can be allowed: group, resource (with its subresource), verb.
type Power = (String, String, String);

async fn minimal(cluster: &Cluster) -> Result<()> {
    let log = cluster.platform.audit()?;
    let (all, _) = log.since(Position::default())?;
    let (late, _) = log.since(cluster.began.unwrap_or_default())?;
    for account in ["ankka-operator", "ankka-webhook", "ankka-database"] {
        let granted = granted(cluster, account).await?;
        ensure!(!granted.is_empty(), "{account} is granted nothing");
        let (used, denied) = used(&all, &late, account);
        ensure!(denied.is_empty(), "{account} was denied: {denied:?}");
        let held = |(group, resource, verb): &Power| ONLY_HELD.contains(&(group, resource, verb));
        let idle: Vec<_> = granted.difference(&used).filter(|power| !held(power)).collect();
        ensure!(idle.is_empty(), "{account} is granted what it never used: {idle:?}");
    }
    Ok(())
}

async fn granted(cluster: &Cluster, account: &str) -> Result<BTreeSet<Power>> {
    let all = ListParams::default();
    let is = |subjects: &Option<Vec<Subject>>| {
        subjects.iter().flatten().any(|subject| {
            subject.kind == "ServiceAccount"
                && subject.name == account
                && subject.namespace.as_deref() == Some(NAMESPACE)
        })
    };
    let mut rules: Vec<PolicyRule> = Vec::new();
    let cluster_roles: Api<ClusterRole> = Api::all(cluster.client.clone());
    for binding in Api::<ClusterRoleBinding>::all(cluster.client.clone()).list(&all).await? {
        if is(&binding.subjects) {
            rules.extend(cluster_roles.get(&binding.role_ref.name).await?.rules.unwrap_or_default());
        }
    }
    for binding in Api::<RoleBinding>::all(cluster.client.clone()).list(&all).await? {
        if is(&binding.subjects) {
            let namespace = binding.metadata.namespace.context("a RoleBinding has a namespace")?;
            rules.extend(match binding.role_ref.kind.as_str() {
                "ClusterRole" => cluster_roles.get(&binding.role_ref.name).await?.rules.unwrap_or_default(),
                _ => Api::<Role>::namespaced(cluster.client.clone(), &namespace)
                    .get(&binding.role_ref.name)
                    .await?
                    .rules
                    .unwrap_or_default(),
            });
        }
    }
    let mut powers = BTreeSet::new();
    for rule in rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                powers.extend(rule.verbs.iter().map(|verb| (group.clone(), resource.clone(), verb.clone())));
            }
        }
    }
    Ok(powers)
}

/// What the process was allowed since the platform came up, and what it was denied since the tests began.
fn used(all: &[AuditEvent], late: &[AuditEvent], account: &str) -> (BTreeSet<Power>, BTreeSet<Power>) {
    let account = format!("system:serviceaccount:{NAMESPACE}:{account}");
    let powers = |events: &[AuditEvent], denied: bool| {
        let ours = events.iter().filter(|event| event.user == account && !event.resource.is_empty());
        ours.filter(|event| event.forbidden == denied)
            .map(|event| {
                let resource = match event.subresource.as_str() {
                    "" => event.resource.clone(),
                    sub => format!("{}/{sub}", event.resource),
                };
                (event.group.clone(), resource, event.verb.clone())
            })
            .collect()
    };
    (powers(all, false), powers(late, true))
}
