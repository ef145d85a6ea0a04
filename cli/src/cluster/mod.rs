//! The cluster a command talks to. There is no server of ours in between, and no discovery: every path is known.

mod connect;
mod explain;
mod store;

use ankka_crds::{AnkkaProject, AnkkaService};
use kube::{Api, Client};

pub(crate) use explain::{Attempt, Subject};
pub(crate) use store::{Applied, Change};

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

    /// All projects.
    pub(crate) fn projects(&self) -> Api<AnkkaProject> {
        Api::all(self.client.clone())
    }

    /// The client itself, for kinds that only one command needs.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }
}
