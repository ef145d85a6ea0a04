//! The administrator of the bundled server: its password is made in the cluster, once.
//!
//! Run by a container that may create Secrets and nothing else, before the server's own starts. Whether there is one already is
//! told by the answer to creating it.

use ankka_crds::labels::{MANAGED_BY, MANAGED_BY_VALUE};
use anyhow::Context;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, api::PostParams};
use rand::{RngExt, distr::Alphanumeric};
use serde_json::json;

use crate::pass::MANAGER;

/// What the program is told to do this with.
pub const ARGUMENT: &str = "make-administrator";

/// The superuser of the bundled server.
const NAME: &str = "administrator";

/// Letters and digits of its password.
const LENGTH: usize = 40;

/// Makes the Secret `name` in `namespace`, unless there is one.
///
/// # Errors
/// When the API server refuses or does not answer.
pub async fn make(client: Client, namespace: &str, name: &str) -> anyhow::Result<()> {
    let password: String = rand::rng().sample_iter(Alphanumeric).take(LENGTH).map(char::from).collect();
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": namespace, "labels": {MANAGED_BY: MANAGED_BY_VALUE}},
        "stringData": {"username": NAME, "password": password},
    }))?;
    let by_us = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    match Api::<Secret>::namespaced(client, namespace).create(&by_us, &secret).await {
        Ok(_) => tracing::info!(name, namespace, "made the administrator's password"),
        Err(kube::Error::Api(status)) if status.code == 409 => {
            tracing::info!(name, namespace, "the administrator has a password");
        }
        Err(error) => return Err(error).with_context(|| format!("failed to create secret '{name}' in '{namespace}'")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ankka_testing::api::Api;

    use super::*;

    #[tokio::test]
    async fn a_password_is_made_once() {
        let cluster = Api::without_others();
        cluster
            .put("/api/v1/namespaces/ankka-system", json!({"kind": "Namespace", "metadata": {"name": "ankka-system"}}));
        let path = "/api/v1/namespaces/ankka-system/secrets/administrator";
        make(cluster.client(), "ankka-system", "administrator").await.expect("made");
        let made = cluster.get(path).expect("stored");
        assert_eq!(made["stringData"]["password"].as_str().map(str::len), Some(LENGTH));
        make(cluster.client(), "ankka-system", "administrator").await.expect("it is there");
        assert_eq!(cluster.get(path), Some(made));
    }
}
