//! Label and annotation keys of the platform (reference, section B1, under our group).

use std::collections::BTreeMap;

/// Says which platform an object belongs to; its value is [`MANAGED_BY_VALUE`].
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`] on everything the platform makes.
pub const MANAGED_BY_VALUE: &str = "ankka";
/// The service's name, under the key every Kubernetes tool knows.
pub const NAME: &str = "app.kubernetes.io/name";
/// The project's id.
pub const PROJECT: &str = "ankka.dev/project";
/// The service's name.
pub const SERVICE: &str = "ankka.dev/service";
/// Pod template only: instances that form one cluster by discovery. Never part of a selector of ours.
pub const FORMATION: &str = "ankka.dev/formation";
/// The value of [`FORMATION`].
pub const FORMATION_VALUE: &str = "bootstrap";

/// Annotation: generation of the AnkkaService an object was rendered from. Never on the pod template, or every scale would roll.
pub const GENERATION: &str = "ankka.dev/generation";
/// Annotation on the pod template: how often a restart was asked for. Absent until the first.
pub const RESTARTS: &str = "ankka.dev/restarts";
/// Annotation: digest of what was last written to this object, so that a pass can tell its own settled work.
pub const RENDERED: &str = "ankka.dev/rendered";
/// Annotation on a ControllerRevision: how many bytes the descriptor has that it keeps.
pub const SIZE: &str = "ankka.dev/size";
/// Annotation on an existing namespace: the project that may take it over.
pub const ADOPT: &str = "ankka.dev/adopt";
/// Annotation on an AnkkaService: its last 50 changes, kept by the admission webhook.
pub const CHANGES: &str = "ankka.dev/changes";
/// Annotation in a request to change an AnkkaService: the generation whose descriptor it brings back. The admission webhook
/// takes it away and records the change as a rollback.
pub const ROLLED_BACK_TO: &str = "ankka.dev/rolled-back-to";
/// Annotation on the pod template: generation of the database login the instances start with. Absent for the first.
pub const DATABASE_CREDENTIAL: &str = "ankka.dev/database-credential-generation";
/// Annotation on our CustomResourceDefinitions: version of the platform that installed them.
pub const PLATFORM_VERSION: &str = "ankka.dev/platform-version";
/// Annotation on our CustomResourceDefinitions: prefix of project namespaces.
pub const NAMESPACE_PREFIX: &str = "ankka.dev/namespace-prefix";

/// Annotation on our CustomResourceDefinitions: domain under which exposed services get their addresses; absent when there is none.
pub const BASE_DOMAIN: &str = "ankka.dev/base-domain";
/// Annotation on our CustomResourceDefinitions: port of those addresses.
pub const HTTPS_PORT: &str = "ankka.dev/https-port";

/// Name under which the controller writes children and status.
pub const MANAGER: &str = "ankka-operator";
/// Name under which `ankka services apply` owns `spec.service`.
pub const CLI_MANAGER: &str = "ankka";
/// Name under which commands own what they set beside the descriptor, so that applying a descriptor takes none of it back.
pub const COMMANDS_MANAGER: &str = "ankka-commands";

/// The labels that identify one service's objects. They are its Deployment's selector, so they never change.
pub fn identity(project: &str, service: &str) -> BTreeMap<String, String> {
    [(MANAGED_BY, MANAGED_BY_VALUE), (NAME, service), (PROJECT, project), (SERVICE, service)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}
