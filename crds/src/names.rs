//! Every name the platform derives, with its limit. No two of them collide; a property test holds that.

/// Prefix of project namespaces unless the installation says otherwise.
pub const DEFAULT_PREFIX: &str = "ankka";

/// The namespace of a project: `<prefix>-<project>`.
pub fn namespace(prefix: &str, project: &str) -> String {
    format!("{prefix}-{project}")
}

/// The project whose namespace this is; none when the name does not start with `<prefix>-`.
pub fn project_of<'a>(prefix: &str, namespace: &'a str) -> Option<&'a str> {
    namespace
        .strip_prefix(prefix)?
        .strip_prefix('-')
        .filter(|project| !project.is_empty())
}

/// ServiceAccount, Role and RoleBinding of a service: `ankka-<service>` (a service may be called `default`).
pub fn account(service: &str) -> String {
    format!("ankka-{service}")
}

/// ConfigMap with the cluster-formation settings: `<service>-cluster`.
pub fn cluster_config(service: &str) -> String {
    format!("{service}-cluster")
}

/// Secret with the database login: `<service>-db`.
pub fn database_secret(service: &str) -> String {
    format!("{service}-db")
}

/// Secret with the storage credential on Garage: `<service>-storage`.
pub fn storage_secret(service: &str) -> String {
    format!("{service}-storage")
}

/// Secret with the storage credential on Google Cloud Storage: `<service>-cloud-storage`.
pub fn cloud_storage_secret(service: &str) -> String {
    format!("{service}-cloud-storage")
}

/// The bucket's name on Garage: `<project>.<service>`.
pub fn bucket(project: &str, service: &str) -> String {
    format!("{project}.{service}")
}

/// Longest name of a bucket, on either store.
pub const BUCKET_LIMIT: usize = 63;

/// Whether a Secret of this name is one the platform issues to a single service, so that no descriptor may read it.
/// `-storage` covers `-cloud-storage`.
pub fn is_issued_secret(name: &str) -> bool {
    name.ends_with("-storage")
}
