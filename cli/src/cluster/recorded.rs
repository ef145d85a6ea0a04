//! Descriptors a service had before, as the platform keeps them: a ControllerRevision each.

use ankka_crds::history::{self, Change};
use ankka_crds::{AnkkaService, ServiceSpec, digest, names};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::{Api, ResourceExt};
use serde::{Deserialize, Serialize};

use super::{Attempt, Cluster};
use crate::error::Error;
use crate::settings::Project;

/// A descriptor as its author writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Document {
    /// The service's name.
    pub(crate) name: String,
    /// The `service` object.
    pub(crate) service: ServiceSpec,
}

impl Document {
    /// The descriptor a service has now.
    pub(crate) fn of(service: &AnkkaService) -> Self {
        Self { name: service.name_any(), service: service.spec.service.clone() }
    }

    /// What identifies it.
    pub(crate) fn digest(&self) -> String {
        digest::of_descriptor(&self.name, &self.service)
    }
}

impl Cluster {
    /// The descriptor that a service had at this generation.
    pub(crate) async fn recorded(
        &self,
        attempt: Attempt<'_>,
        service: &AnkkaService,
        project: &Project,
        generation: i64,
    ) -> Result<Document, Error> {
        let name = service.name_any();
        let newest = service.metadata.generation.unwrap_or_default();
        let history = format!("see what is there with: ankka services history {name} -p {}", project.id);
        if !(1..=newest).contains(&generation) {
            return Err(Error::new(format!("service '{name}' has no generation {generation}: its newest is {newest}"))
                .hint(history));
        }
        let changes = history::of(service);
        let Some(digest) = history::digest_at(&changes, generation) else {
            return Err(Error::new(format!(
                "the descriptor of generation {generation} is no longer recorded: {}",
                beginning(&name, &changes)
            ))
            .hint(history));
        };
        let present = Document::of(service);
        if present.digest() == digest {
            return Ok(present);
        }
        self.kept(attempt, &name, project, digest).await?.ok_or_else(|| {
            Error::new(format!("the descriptor of generation {generation} of service '{name}' is not kept"))
                .hint(format!(
                    "kept are those used last, 50 of 1 MiB together, unless they were replaced before an operator saw them; {history}"
                ))
        })
    }

    /// The descriptor with this digest; none when it is no longer there, or is not what was recorded.
    async fn kept(
        &self,
        attempt: Attempt<'_>,
        name: &str,
        project: &Project,
        digest: &str,
    ) -> Result<Option<Document>, Error> {
        let revisions: Api<ControllerRevision> = Api::namespaced(self.client(), &project.namespace);
        let revision = revisions.get_opt(&names::revision(name, digest)).await;
        let data = revision.map_err(|cause| self.explain(attempt, cause))?.and_then(|revision| revision.data);
        let document = data.and_then(|data| serde_json::from_value::<Document>(data.0).ok());
        Ok(document.filter(|document| document.name == name && document.digest() == digest))
    }
}

/// How far back the history goes.
fn beginning(name: &str, changes: &[Change]) -> String {
    match changes.last() {
        Some(first) => format!("the history of service '{name}' goes back to generation {}", first.generation),
        None => format!("service '{name}' has no history"),
    }
}
