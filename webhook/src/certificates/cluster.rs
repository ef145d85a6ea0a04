//! Secret and configurations in a real cluster, and the word that one of them changed.

use std::{fmt::Debug, time::Duration};

use futures::{Stream, StreamExt, TryStreamExt, future, stream};
use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::{
            MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
        },
        core::v1::Secret,
    },
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams, PostParams, WatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{
    keeper::{Cluster, Configuration, Stored},
    secret::Data,
};

/// Both webhook configurations, the validating and the mutating one.
pub const CONFIGURATION: &str = "ankka-webhook";
/// The Secret. The chart makes it, empty; this process may not create one.
pub const SECRET: &str = "ankka-webhook-certificate";
/// Under this name `caBundle` is owned.
const MANAGER: &str = "ankka-webhook";

/// The cluster this process runs in.
#[derive(Clone)]
pub struct Real {
    secrets: Api<Secret>,
    validating: Api<ValidatingWebhookConfiguration>,
    mutating: Api<MutatingWebhookConfiguration>,
}

impl Debug for Real {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Real").finish_non_exhaustive()
    }
}

impl Real {
    /// The Secret in `namespace`, and the configurations of the whole cluster.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), namespace),
            validating: Api::all(client.clone()),
            mutating: Api::all(client),
        }
    }

    /// An item whenever one of the three may have changed. It says only that: who hears it reads again.
    pub fn changes(&self) -> impl Stream<Item = ()> + Send + use<> {
        stream::select_all([
            changes_of(self.secrets.clone(), SECRET).boxed(),
            changes_of(self.validating.clone(), CONFIGURATION).boxed(),
            changes_of(self.mutating.clone(), CONFIGURATION).boxed(),
        ])
    }
}

/// Watches one object by name, which is all this process may watch, and begins again whenever a watch ends.
fn changes_of<K>(api: Api<K>, name: &'static str) -> impl Stream<Item = ()> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    stream::repeat(())
        .then(move |()| {
            let api = api.clone();
            async move {
                // The first event of a watch from "0" is the object as it is, so nothing is missed between two watches.
                let params = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(240);
                let events = match api.watch_metadata(&params, "0").await {
                    Ok(events) => {
                        events.map_err(move |error| tracing::debug!(name, %error, "a watch broke off")).boxed()
                    }
                    Err(error) => {
                        tracing::warn!(name, %error, "failed to watch; trying again in a second");
                        stream::empty().boxed()
                    }
                };
                let pause =
                    stream::once(tokio::time::sleep(Duration::from_secs(1))).filter_map(|()| future::ready(None));
                events.map(|_| ()).chain(pause)
            }
        })
        .flatten()
}

/// What both kinds of configuration have.
trait Hooks: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug {
    const KIND: &'static str;
    fn hooks(&self) -> Vec<(&str, &WebhookClientConfig)>;
}

impl Hooks for ValidatingWebhookConfiguration {
    const KIND: &'static str = "ValidatingWebhookConfiguration";
    fn hooks(&self) -> Vec<(&str, &WebhookClientConfig)> {
        self.webhooks.iter().flatten().map(|hook| (hook.name.as_str(), &hook.client_config)).collect()
    }
}

impl Hooks for MutatingWebhookConfiguration {
    const KIND: &'static str = "MutatingWebhookConfiguration";
    fn hooks(&self) -> Vec<(&str, &WebhookClientConfig)> {
        self.webhooks.iter().flatten().map(|hook| (hook.name.as_str(), &hook.client_config)).collect()
    }
}

fn configuration<K: Hooks>(read: &K) -> Configuration {
    let bundle = |config: &WebhookClientConfig| config.ca_bundle.as_ref().map(|bundle| bundle.0.clone());
    Configuration {
        kind: K::KIND,
        version: read.meta().resource_version.clone().unwrap_or_default(),
        bundles: read
            .hooks()
            .into_iter()
            .map(|(name, config)| (name.to_owned(), bundle(config).unwrap_or_default()))
            .collect(),
    }
}

/// Sets `caBundle` in every webhook and nothing else: the list is merged by name, so the chart keeps owning the rest.
async fn put_bundle<K: Hooks>(api: &Api<K>, read: &Configuration, bundle: &str) -> Result<bool, kube::Error> {
    let bundle = ByteString(bundle.as_bytes().to_vec());
    let hooks: Vec<_> =
        read.bundles.iter().map(|(name, _)| json!({"name": name, "clientConfig": {"caBundle": bundle}})).collect();
    let patch = json!({"metadata": {"resourceVersion": read.version}, "webhooks": hooks});
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    written(api.patch(CONFIGURATION, &params, &Patch::Strategic(patch)).await)
}

fn written<K>(answer: Result<K, kube::Error>) -> Result<bool, kube::Error> {
    match answer {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_conflict() => Ok(false),
        Err(error) => Err(error),
    }
}

/// A call to the API server that failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to {attempt}: {cause}")]
pub struct Failed {
    attempt: String,
    cause: kube::Error,
}

fn failed(verb: &str, kind: &str, name: &str) -> impl FnOnce(kube::Error) -> Failed {
    let attempt = format!("{verb} {kind} {name}");
    move |cause| Failed { attempt, cause }
}

impl Cluster for Real {
    type Error = Failed;

    async fn configurations(&self) -> Result<Vec<Configuration>, Failed> {
        let validating = self.validating.get(CONFIGURATION);
        let mutating = self.mutating.get(CONFIGURATION);
        let read = |kind: &'static str| failed("read the chart's", kind, CONFIGURATION);
        Ok(vec![
            configuration(&validating.await.map_err(read(ValidatingWebhookConfiguration::KIND))?),
            configuration(&mutating.await.map_err(read(MutatingWebhookConfiguration::KIND))?),
        ])
    }

    async fn secret(&self) -> Result<Stored, Failed> {
        let secret = self.secrets.get(SECRET).await.map_err(failed("read", "the chart's Secret", SECRET))?;
        Ok(Stored {
            version: secret.metadata.resource_version.clone().unwrap_or_default(),
            data: secret.data.clone().unwrap_or_default(),
            object: Some(Box::new(secret)),
        })
    }

    async fn put_secret(&self, read: &Stored, data: Data) -> Result<bool, Failed> {
        // The whole object goes back as it was read, version included: labels of the chart's stay.
        let mut secret = read.object.as_deref().cloned().unwrap_or_default();
        secret.data = Some(data);
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        written(self.secrets.replace(SECRET, &params, &secret).await).map_err(failed("update", "Secret", SECRET))
    }

    async fn put_bundle(&self, read: &Configuration, bundle: &str) -> Result<bool, Failed> {
        let wrote = if read.kind == ValidatingWebhookConfiguration::KIND {
            put_bundle(&self.validating, read, bundle).await
        } else {
            put_bundle(&self.mutating, read, bundle).await
        };
        wrote.map_err(failed("patch", read.kind, CONFIGURATION))
    }
}
