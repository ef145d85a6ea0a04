//! Finding the other instances of the service through the Kubernetes API.

use std::{future::pending, time::Duration};

use anyhow::{Context, anyhow};
use axum::http::StatusCode;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, Config, api::ListParams};
use tokio::{sync::watch, time::sleep};

use crate::settings::{optional, required};

/// How often a lone instance looks for the others.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a member looks whether the others are still there.
const REFRESH_EVERY: Duration = Duration::from_secs(5);
/// Longest wait for one answer of the Kubernetes API.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The cluster that the instances of one service form.
pub struct Cluster {
    formation: Option<Formation>,
    state: watch::Sender<State>,
}

/// How far this instance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Whether enough instances were found once. Never falls back: an API server that does not answer makes nobody leave.
    pub joined: bool,
    /// Instances found at the last look, this one included.
    pub peers: usize,
    /// Instances that have to be found before a cluster forms.
    pub wanted: usize,
}

/// How the platform says that peers are found.
struct Formation {
    pods: Api<Pod>,
    selector: String,
    own_ip: String,
}

impl Cluster {
    /// The cluster that the environment describes; of this one instance, when it describes none.
    ///
    /// # Errors
    /// A variable that is missing or malformed, and a pod without a usable ServiceAccount.
    pub fn from_env() -> anyhow::Result<Self> {
        match optional("ANKKA_CLUSTER_MODE")?.as_deref() {
            None => Ok(Self::alone()),
            Some("kubernetes") => {
                let config = Config::incluster().context("failed to read the pod's ServiceAccount")?;
                let client = Client::try_from(config).context("failed to prepare a client for the Kubernetes API")?;
                let selector = required("ANKKA_CLUSTER_POD_SELECTOR")?;
                let own_ip = required("POD_IP")?;
                Ok(Self::formed(client, selector, own_ip, contact_points(&required("ANKKA_CLUSTER_CONTACT_POINTS")?)?))
            }
            Some(other) => Err(anyhow!("ANKKA_CLUSTER_MODE is '{other}'; this program knows 'kubernetes' only")),
        }
    }

    /// A cluster of this one instance, complete from the start.
    pub fn alone() -> Self {
        Self { formation: None, state: watch::Sender::new(State { joined: true, peers: 1, wanted: 1 }) }
    }

    fn formed(client: Client, selector: String, own_ip: String, wanted: usize) -> Self {
        Self {
            formation: Some(Formation { pods: Api::default_namespaced(client), selector, own_ip }),
            state: watch::Sender::new(State { joined: false, peers: 0, wanted }),
        }
    }

    /// How far this instance is.
    pub fn state(&self) -> State {
        *self.state.borrow()
    }

    /// Looks for peers for ever. Failures are logged and looked past.
    pub async fn keep_looking(&self) {
        let Some(formation) = &self.formation else {
            return pending().await;
        };
        loop {
            match formation.peers().await {
                Ok(peers) => self.found(peers),
                Err(error) => {
                    let error = format!("{error:#}");
                    tracing::warn!(error, "failed to look for peers");
                }
            }
            sleep(if self.state().joined { REFRESH_EVERY } else { LOOK_EVERY }).await;
        }
    }

    fn found(&self, peers: usize) {
        self.state.send_modify(|state| {
            state.peers = peers;
            if !state.joined && peers >= state.wanted {
                state.joined = true;
                tracing::info!(peers, "joined the cluster");
            }
        });
    }
}

impl State {
    /// The answer to the readiness probe.
    pub fn answer(self) -> (StatusCode, String) {
        if self.joined {
            (StatusCode::OK, "ready\n".to_owned())
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, format!("found {} of {} instances\n", self.peers, self.wanted))
        }
    }
}

impl Formation {
    /// The number of instances that live, ready or not; none as long as this one is not among them.
    async fn peers(&self) -> anyhow::Result<usize> {
        let matching = ListParams::default().labels(&self.selector);
        let pods = tokio::time::timeout(ANSWER_WITHIN, self.pods.list(&matching))
            .await
            .context("the Kubernetes API did not answer in time")?
            .with_context(|| format!("failed to list pods with {}", self.selector))?;
        Ok(living(&pods.items, &self.own_ip))
    }
}

/// The number of pods that run and stay, ready or not; none as long as the one at `own_ip` is not among them.
fn living(pods: &[Pod], own_ip: &str) -> usize {
    let ips: Vec<&str> = pods
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .filter_map(|pod| pod.status.as_ref())
        .filter(|status| !matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")))
        .filter_map(|status| status.pod_ip.as_deref())
        .collect();
    if ips.contains(&own_ip) { ips.len() } else { 0 }
}

fn contact_points(text: &str) -> anyhow::Result<usize> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(anyhow!("ANKKA_CLUSTER_CONTACT_POINTS is '{text}'; it must be a whole number of at least 1")),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test ends where it fails")]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::body::Body;
    use serde_json::{Value, json};

    use super::*;

    const SELECTOR: &str = "ankka.dev/service=cart";

    fn pod(ip: &str) -> Value {
        json!({ "metadata": { "name": "p" }, "status": { "phase": "Running", "podIP": ip } })
    }

    /// An API server that answers every list with these pods, and the paths it was asked for.
    fn api(pods: &Value) -> (Client, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let list = json!({ "apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": pods }).to_string();
        let log = asked.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            log.lock().unwrap().push(request.uri().to_string());
            let answer = http::Response::new(Body::from(list.clone()));
            async move { Ok::<_, std::convert::Infallible>(answer) }
        });
        (Client::new(service, "shop"), asked)
    }

    async fn after_one_look(pods: &Value, wanted: usize) -> State {
        let cluster = Cluster::formed(api(pods).0, SELECTOR.to_owned(), "10.0.0.1".to_owned(), wanted);
        let formation = cluster.formation.as_ref().unwrap();
        cluster.found(formation.peers().await.unwrap());
        cluster.state()
    }

    #[tokio::test]
    async fn an_instance_joins_once_enough_live_beside_it() {
        let state = after_one_look(&json!([pod("10.0.0.1"), pod("10.0.0.2")]), 2).await;
        assert_eq!(state, State { joined: true, peers: 2, wanted: 2 });
    }

    #[tokio::test]
    async fn an_instance_waits_for_the_others() {
        let state = after_one_look(&json!([pod("10.0.0.1")]), 2).await;
        assert_eq!(state, State { joined: false, peers: 1, wanted: 2 });
    }

    #[tokio::test]
    async fn an_instance_that_the_api_does_not_show_yet_waits() {
        let state = after_one_look(&json!([pod("10.0.0.2"), pod("10.0.0.3")]), 2).await;
        assert!(!state.joined);
    }

    #[tokio::test]
    async fn pods_that_leave_or_have_ended_or_have_no_address_do_not_count() {
        let mut leaving = pod("10.0.0.2");
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let mut failed = pod("10.0.0.3");
        failed["status"]["phase"] = json!("Failed");
        let pending = json!({ "metadata": { "name": "p" }, "status": { "phase": "Pending" } });
        let state = after_one_look(&json!([pod("10.0.0.1"), leaving, failed, pending]), 1).await;
        assert_eq!(state.peers, 1);
    }

    #[tokio::test]
    async fn a_member_stays_one_when_the_others_go() {
        let (client, asked) = api(&json!([]));
        let cluster = Cluster::formed(client, SELECTOR.to_owned(), "10.0.0.1".to_owned(), 2);
        cluster.found(3);
        cluster.found(cluster.formation.as_ref().unwrap().peers().await.unwrap());
        assert_eq!(cluster.state(), State { joined: true, peers: 0, wanted: 2 });
        let path = asked.lock().unwrap().concat();
        assert!(path.contains("/api/v1/namespaces/shop/pods?"), "{path}");
        assert!(path.contains("labelSelector=ankka.dev%2Fservice%3Dcart"), "{path}");
    }

    #[test]
    fn contact_points_are_a_positive_number() {
        assert_eq!(contact_points("2").unwrap(), 2);
        for bad in ["0", "-1", "two", "1.5"] {
            let error = contact_points(bad).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("ANKKA_CLUSTER_CONTACT_POINTS is '{bad}'; it must be a whole number of at least 1")
            );
        }
    }
}
