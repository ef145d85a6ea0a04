//! Applying objects written down as YAML.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kube::{
    Api, Client, Discovery,
    api::{DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde::Deserialize;

/// How long a group may be announced before it is served.
const LIMIT: Duration = Duration::from_secs(10);

/// Applies every object of `manifests` server-side.
pub(crate) async fn apply(client: &Client, manifests: &str) -> Result<()> {
    for (api, object) in objects(client, manifests).await? {
        let name = object.metadata.name.clone().unwrap_or_default();
        let how = PatchParams::apply("ankka-local").force();
        api.patch(&name, &how, &Patch::Apply(&object)).await.with_context(|| format!("failed to apply {name}"))?;
    }
    Ok(())
}

async fn objects(client: &Client, manifests: &str) -> Result<Vec<(Api<DynamicObject>, DynamicObject)>> {
    let discovery = discover(client).await.context("failed to discover the cluster's resources")?;
    let mut objects = Vec::new();
    for document in serde_yaml_ng::Deserializer::from_str(manifests) {
        let document = serde_json::Value::deserialize(document).context("a manifest is not YAML")?;
        if document.is_null() {
            continue; // only a comment
        }
        let object: DynamicObject = serde_json::from_value(document).context("a manifest is no Kubernetes object")?;
        let types = object.types.clone().unwrap_or_default();
        let kind = GroupVersionKind::try_from(&types)?;
        let Some((resource, _)) = discovery.resolve_gvk(&kind) else {
            bail!("the cluster does not know {}", types.kind)
        };
        let api = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        objects.push((api, object));
    }
    Ok(objects)
}

/// Asks what kinds there are, once more when a group was announced that is not served yet.
async fn discover(client: &Client) -> Result<Discovery, kube::Error> {
    let until = Instant::now() + LIMIT;
    loop {
        match Discovery::new(client.clone()).run().await {
            Err(kube::Error::Api(status)) if status.code == 404 && Instant::now() < until => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            outcome => return outcome,
        }
    }
}
