//! What the installation decides about every service.

use ankka_crds::{Installation, compat::Platform, exposure::Domain};

use crate::http_route::ParentReference;

/// Settings of the installation.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Prefix of project namespaces.
    pub prefix: String,
    /// The namespace the platform itself runs in.
    pub own_namespace: String,
    /// The platform's versions.
    pub platform: Platform,
    /// What the descriptor's rules need to know of the installation.
    pub installation: Installation,
    /// Who makes databases for services that do not supply their own.
    pub database: DatabaseServer,
    /// Image of the sidecar for process hosting; none when the installation has none.
    pub sidecar_image: Option<String>,
    /// Names of Secrets to pull images with, in every project.
    pub image_pull_secrets: Vec<String>,
    /// Where services are published; none when the installation publishes none.
    pub domain: Option<Domain>,
    /// The Gateway that publishes them.
    pub gateway: Gateway,
    /// How long a rollout may make no progress before it counts as failed, in seconds.
    pub progress_deadline_seconds: i32,
}

/// One listener of a Gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// The Gateway's namespace.
    pub namespace: String,
    /// The Gateway's name.
    pub name: String,
    /// The listener's name.
    pub section: String,
}

impl Gateway {
    /// Whether a route's parent is this listener.
    pub(crate) fn is(&self, parent: &ParentReference) -> bool {
        parent.name == self.name
            && parent.namespace.as_ref() == Some(&self.namespace)
            && parent.section_name.as_ref() == Some(&self.section)
    }
}

impl Default for Gateway {
    /// The documented one.
    fn default() -> Self {
        Self { namespace: "ankka-gateway".to_owned(), name: "ankka".to_owned(), section: "https".to_owned() }
    }
}

/// Whether the installation has a database server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseServer {
    /// It has none: a service that does not supply its own database cannot be run.
    None,
    /// It has one, and a controller that makes databases on it.
    Provisioned,
}
