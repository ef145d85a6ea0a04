//! Leading: two replicas run, one acts.
//!
//! The Lease is kept by `kube-lease-manager`. What it lacks is added here: the deadline of our own lease on the boot-time
//! clock, set by each renewal that was answered and counted from when it was *sent*, and the end of the process as soon as
//! that deadline passes. The standby keeps its caches warm and takes over when the Lease has run out.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use http::{Method, Request, Response};
use kube::{Client, client::Body};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseParams};
use rand::RngExt;
use tokio::{sync::watch, task::JoinHandle};
use tower::{BoxError, service_fn};

use crate::{clock::boot_time, tenure::Tenure};

/// How long a renewal is good for, in seconds.
const DURATION_SECONDS: u64 = 10;
/// How long before its end the lease is renewed, in seconds: every three seconds, so that two may fail.
const GRACE_SECONDS: u64 = 7;
/// How long we write on a renewal: a second less, so that we have stopped when others may take over.
const GOOD_FOR: Duration = Duration::from_secs(DURATION_SECONDS - 1);
/// How long one request about the Lease may take.
const ANSWER: Duration = Duration::from_secs(3);
/// How often the deadline is looked at.
const TICK: Duration = Duration::from_millis(250);

/// Our candidacy.
pub struct Candidate {
    tenure: Arc<Tenure>,
    leading: watch::Receiver<bool>,
    manager: JoinHandle<kube_lease_manager::Result<LeaseManager>>,
}

impl Candidate {
    /// Stands for election as `pod` with the Lease `name` in `namespace`. `client` is used for the Lease alone.
    pub async fn stand(
        client: &Client,
        namespace: &str,
        name: &str,
        pod: &str,
        tenure: Arc<Tenure>,
    ) -> anyhow::Result<Self> {
        // Not the pod's name alone: a container that was started again is not the one that held the lease.
        let identity = format!("{pod}_{:08x}", rand::rng().random::<u32>());
        let parameters = LeaseParams::new(&identity, DURATION_SECONDS, GRACE_SECONDS)
            .with_field_manager(format!("{name}-{identity}"));
        let manager = LeaseManagerBuilder::new(renewing(client.clone(), tenure.clone()), name)
            .with_namespace(namespace)
            .with_parameters(parameters)
            .build()
            .await
            .with_context(|| format!("failed to get or create lease {name} in {namespace}"))?;
        let (leading, manager) = manager.watch().await;
        Ok(Self { tenure, leading, manager })
    }

    /// Waits until this process leads.
    pub async fn elected(&mut self) -> anyhow::Result<()> {
        self.leading.wait_for(|leading| *leading).await.context("the election ended")?;
        self.tenure.lead(true);
        Ok(())
    }

    /// Waits until this process no longer leads, which is the end of it.
    pub async fn lost(&mut self) -> anyhow::Error {
        loop {
            tokio::select! {
                changed = self.leading.wait_for(|leading| !leading) => {
                    self.tenure.lead(false);
                    return match changed {
                        Ok(_) => anyhow::anyhow!("lost the lease: another replica goes on"),
                        Err(_) => anyhow::anyhow!("the lease is no longer kept: another replica goes on"),
                    };
                }
                () = tokio::time::sleep(TICK) => {
                    if !self.tenure.holds() {
                        self.tenure.lead(false);
                        return anyhow::anyhow!("the lease ran out before it could be renewed: another replica goes on");
                    }
                }
            }
        }
    }

    /// Stops writing and gives the lease back. A standby notices when the renewal that it saw last runs out.
    pub async fn resign(self) -> anyhow::Result<()> {
        self.tenure.lead(false);
        // The manager gives the lease back when nobody listens any more.
        drop(self.leading);
        self.manager.await.context("the election failed")?.context("failed to give the lease back")?;
        Ok(())
    }
}

/// A client for the Lease that sets the deadline by each renewal.
fn renewing(inner: Client, tenure: Arc<Tenure>) -> Client {
    let namespace = inner.default_namespace().to_owned();
    let service = service_fn(move |request: Request<Body>| {
        let (inner, tenure) = (inner.clone(), tenure.clone());
        async move {
            let renewal = request.method() == Method::PATCH;
            let sent = boot_time();
            let response: Response<Body> = tokio::time::timeout(ANSWER, inner.send(request)).await??;
            if renewal && response.status().is_success() {
                tenure.extend(sent + GOOD_FOR);
            }
            Ok::<_, BoxError>(response)
        }
    });
    Client::new(service, namespace)
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    async fn patch(status: StatusCode) -> Arc<Tenure> {
        let service = service_fn(move |_: Request<Body>| async move {
            let mut response = Response::new(Body::from(b"{}".to_vec()));
            *response.status_mut() = status;
            Ok::<_, BoxError>(response)
        });
        let tenure = Arc::new(Tenure::default());
        tenure.lead(true);
        let client = renewing(Client::new(service, "default"), tenure.clone());
        let request = Request::patch("/lease").body(Vec::new()).expect("a request");
        let _ = client.request::<serde_json::Value>(request).await;
        tenure
    }

    #[tokio::test]
    async fn only_a_renewal_that_was_answered_extends_the_tenure() {
        assert!(patch(StatusCode::OK).await.holds());
        assert!(!patch(StatusCode::CONFLICT).await.holds());
        assert!(!patch(StatusCode::INTERNAL_SERVER_ERROR).await.holds());
    }
}
