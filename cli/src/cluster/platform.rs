//! The platform's own processes, as far as the caller may see them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::Cluster;

/// Selects the platform's own objects.
const OURS: &str = "app.kubernetes.io/part-of=ankka";
/// What the names of the platform's processes begin with.
const PREFIX: &str = "ankka-";
/// The processes of which one works while the others wait.
const ELECTED: [&str; 3] = ["operator", "database", "storage"];

/// Why something is not known, e.g. `forbidden`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unknown(pub(crate) String);

impl Unknown {
    /// Why a request was not answered.
    pub(crate) fn of(cause: &kube::Error) -> Self {
        Self(match cause {
            kube::Error::Api(status) if status.code == 403 => "forbidden".to_owned(),
            kube::Error::Api(status) => status.message.clone(),
            other => super::explain::innermost(other),
        })
    }
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "unknown: {}", self.0)
    }
}

/// One of the platform's processes.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    /// `operator`, `webhook` and so on.
    pub(crate) name: String,
    /// Where it runs.
    pub(crate) namespace: String,
    /// Instances that serve or wait.
    pub(crate) ready: i32,
    /// Instances there should be.
    pub(crate) desired: i32,
    /// The pod that works, where only one does; none when nobody holds the lease.
    pub(crate) leader: Option<Result<Option<String>, Unknown>>,
    /// Its settings: variables that are given as text.
    pub(crate) settings: BTreeMap<String, String>,
}

impl Cluster {
    /// The platform's processes, by name.
    pub(crate) async fn components(&self) -> Result<Vec<Component>, Unknown> {
        let deployments: Api<Deployment> = Api::all(self.client());
        let found = deployments.list(&ListParams::default().labels(OURS)).await.map_err(|cause| Unknown::of(&cause))?;
        let mut components = Vec::new();
        for deployment in found.items {
            let Some(name) = deployment.name_any().strip_prefix(PREFIX).map(str::to_owned) else { continue };
            let namespace = deployment.namespace().unwrap_or_default();
            let leader = if ELECTED.contains(&name.as_str()) {
                Some(self.leader(&namespace, &deployment.name_any()).await)
            } else {
                None
            };
            components.push(Component {
                ready: deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0),
                desired: deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1),
                settings: settings(&deployment),
                name,
                namespace,
                leader,
            });
        }
        components.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(components)
    }

    async fn leader(&self, namespace: &str, name: &str) -> Result<Option<String>, Unknown> {
        let leases: Api<Lease> = Api::namespaced(self.client(), namespace);
        match leases.get_opt(name).await {
            Ok(lease) => Ok(lease.and_then(|lease| holder(&lease, Timestamp::now()))),
            Err(cause) => Err(Unknown::of(&cause)),
        }
    }
}

/// Who holds a lease that has not run out.
fn holder(lease: &Lease, now: Timestamp) -> Option<String> {
    let spec = lease.spec.as_ref()?;
    let life = SignedDuration::from_secs(spec.lease_duration_seconds?.into());
    let identity = spec.holder_identity.as_ref().filter(|holder| !holder.is_empty())?;
    // Behind the pod's name stands which of its containers it is.
    let pod = identity.split(['_', '/']).next().unwrap_or(identity);
    (spec.renew_time.as_ref()?.0 + life > now).then(|| pod.to_owned())
}

fn settings(deployment: &Deployment) -> BTreeMap<String, String> {
    let template = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let containers = template.into_iter().flat_map(|spec| &spec.containers);
    containers
        .flat_map(|container| container.env.iter().flatten())
        .map(|variable| (variable.name.clone(), variable.value.clone().unwrap_or_default()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lease_that_has_run_out_is_nobodys() {
        let lease: Lease = serde_json::from_value(json!({ "spec": {
            "holderIdentity": "ankka-operator-1_abc", "leaseDurationSeconds": 15, "renewTime": "2026-11-30T12:00:00.000000Z",
        } }))
        .expect("is a lease");
        let at = |text: &str| text.parse().expect("a time");
        assert_eq!(holder(&lease, at("2026-11-30T12:00:10Z")).as_deref(), Some("ankka-operator-1"));
        assert_eq!(holder(&lease, at("2026-11-30T12:00:20Z")), None);
    }
}
