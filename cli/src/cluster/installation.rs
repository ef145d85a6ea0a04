//! What is installed: annotations that the chart leaves on the kinds, for everybody who can log in.

use ankka_crds::exposure::Domain;
use ankka_crds::labels;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::PartialObjectMeta;
use kube::{Api, ResourceExt};

use super::Cluster;

/// The definition that carries the annotations.
pub(crate) const DEFINITION: &str = "ankkaservices.ankka.dev";

/// The port of addresses where the chart names none.
const HTTPS_PORT: u16 = 443;

/// Where the installation publishes services, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Published {
    /// The chart says where, or that it publishes nothing.
    Known(Option<Domain>),
    /// The definition could not be read.
    Unknown,
}

impl Cluster {
    /// The definition of services, without its schema.
    pub(crate) async fn definition(&self) -> kube::Result<Option<PartialObjectMeta<CustomResourceDefinition>>> {
        Api::<CustomResourceDefinition>::all(self.client()).get_metadata_opt(DEFINITION).await
    }

    /// Where services are published.
    pub(crate) async fn published(&self) -> Published {
        let Ok(Some(definition)) = self.definition().await else {
            return Published::Unknown;
        };
        let noted = |key| definition.annotations().get(key).filter(|value| !value.is_empty());
        let port = noted(labels::HTTPS_PORT).and_then(|port| port.parse().ok()).unwrap_or(HTTPS_PORT);
        Published::Known(noted(labels::BASE_DOMAIN).map(|base| Domain { base: base.clone(), port }))
    }
}
