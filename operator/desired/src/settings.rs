//! What the installation decides about every service.

use ankka_crds::{Installation, compat::Platform};

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
    /// Image of the sidecar for process hosting; none when the installation has none.
    pub sidecar_image: Option<String>,
    /// Names of Secrets to pull images with, in every project.
    pub image_pull_secrets: Vec<String>,
    /// How long a rollout may make no progress before it counts as failed, in seconds.
    pub progress_deadline_seconds: i32,
}
