//! Which cluster this is, so that two of them do not take one database server for theirs.

use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use tokio::time::sleep;

/// The namespace whose UID stands for the cluster: it is made with the cluster and is there for as long as that.
const LANDMARK: &str = "kube-system";

/// How long until an API server that does not answer is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// The cluster's id. An API server that does not answer is waited for.
///
/// # Errors
/// When it refuses.
pub async fn id(client: &Client) -> anyhow::Result<String> {
    let namespaces = Api::<Namespace>::all(client.clone());
    let metadata = loop {
        match namespaces.get_metadata(LANDMARK).await {
            Ok(namespace) => break namespace.metadata,
            Err(kube::Error::Api(refused)) if (400..429).contains(&refused.code) => {
                return Err(kube::Error::Api(refused))
                    .with_context(|| format!("failed to read namespace '{LANDMARK}'"));
            }
            Err(error) => tracing::warn!(%error, "namespace '{LANDMARK}' could not be read, it is asked for again"),
        }
        sleep(PAUSE).await;
    };
    metadata.uid.with_context(|| format!("namespace '{LANDMARK}' has no UID"))
}

#[cfg(test)]
mod tests {
    use ankka_testing::api::Api;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_cluster_is_known_by_its_oldest_namespace() {
        let cluster = Api::without_others();
        assert!(id(&cluster.client()).await.is_err());
        cluster
            .put("/api/v1/namespaces/kube-system", json!({"kind": "Namespace", "metadata": {"name": "kube-system"}}));
        let stored = cluster.get("/api/v1/namespaces/kube-system").expect("stored");
        assert_eq!(id(&cluster.client()).await.expect("an id"), stored["metadata"]["uid"]);
    }
}
