//! The cluster a command talks to. There is no server of ours in between, and no discovery: every path is known.

mod command;
mod connect;
mod explain;
mod installation;
mod patch;
mod patience;
mod platform;
mod recorded;
mod store;

use ankka_crds::{AnkkaProject, AnkkaService};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};

pub(crate) use explain::{Attempt, Subject};
pub(crate) use installation::{DEFINITION, Published};
pub(crate) use platform::{Component, Unknown};
pub(crate) use recorded::Document;
pub(crate) use store::{Applied, Change, Wanted};

use crate::error::Error;
use crate::settings::Project;

/// A connection to one cluster.
pub(crate) struct Cluster {
    client: Client,
    /// Address of the API server, for messages.
    server: String,
}

impl Cluster {
    /// The services of a project.
    pub(crate) fn services(&self, project: &Project) -> Api<AnkkaService> {
        Api::namespaced(self.client.clone(), &project.namespace)
    }

    /// One service.
    pub(crate) async fn service(
        &self,
        attempt: Attempt<'_>,
        name: &str,
        project: &Project,
    ) -> Result<AnkkaService, Error> {
        self.services(project).get(name).await.map_err(|cause| self.explain(attempt, cause))
    }

    /// One service that is to be changed: one that is being deleted is refused.
    pub(crate) async fn lasting_service(
        &self,
        attempt: Attempt<'_>,
        name: &str,
        project: &Project,
    ) -> Result<AnkkaService, Error> {
        let service = self.service(attempt, name, project).await?;
        if service.metadata.deletion_timestamp.is_none() {
            return Ok(service);
        }
        let Attempt { verb, subject } = attempt;
        Err(Error::new(format!("failed to {verb} {subject}: it is being deleted"))
            .hint("nothing was changed; apply its descriptor again once it is gone"))
    }

    /// Refuses a project that is not there, which looks like an empty one; who may not look is not told more.
    pub(crate) async fn refuse_missing(&self, attempt: Attempt<'_>, project: &Project) -> Result<(), Error> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        match namespaces.get_metadata(&project.namespace).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Err(self.explain(attempt, kube::Error::Api(status))),
            _ => Ok(()),
        }
    }

    /// All projects.
    pub(crate) fn projects(&self) -> Api<AnkkaProject> {
        Api::all(self.client.clone())
    }

    /// The client itself, for kinds that only one command needs.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }
}
