//! A service that cannot be wrong: what the rules make of a descriptor. Everything built from it builds without errors.

use std::collections::BTreeMap;

/// One service with every default filled in and every rule kept. Only [`crate::validate`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidatedService {
    /// The service's name, a DNS label.
    pub name: String,
    /// The image reference, as written.
    pub image: String,
    /// The ankka version the image was built against.
    pub runtime: Option<Runtime>,
    /// How the image is run.
    pub hosting: Hosting,
    /// The declared environment, in order.
    pub env: Vec<EnvVar>,
    /// Extra labels, as declared.
    pub labels: BTreeMap<String, String>,
    /// Extra annotations, as declared.
    pub annotations: BTreeMap<String, String>,
    /// The HTTP port; none when the service serves no HTTP.
    pub port: Option<u16>,
    /// The size of each instance.
    pub size: InstanceType,
    /// The number of instances, at least 1 (`minInstances`).
    pub instances: i32,
    /// Who supplies the database.
    pub database: Database,
    /// Who supplies object storage, if anybody.
    pub storage: Storage,
}

/// The ankka version an image was built against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Major version.
    pub major: u64,
    /// Minor version.
    pub minor: u64,
    /// The whole declaration as written, suffix included.
    pub text: String,
}

/// How an image is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosting {
    /// The image is a cluster node itself.
    Embedded,
    /// The image is a process beside our sidecar.
    Process {
        /// Major version of the sidecar protocol the image speaks.
        major: u64,
        /// Minor version of the sidecar protocol the image speaks.
        minor: u64,
    },
}

/// One declared variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvVar {
    /// Its name.
    pub name: String,
    /// Where its value comes from.
    pub source: EnvSource,
}

/// Where a variable's value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvSource {
    /// Literal, to arrive byte for byte.
    Value(String),
    /// A key of a Secret in the service's namespace.
    Secret {
        /// The Secret's name.
        name: String,
        /// The key in the Secret.
        key: String,
    },
}

/// Size of one instance. Requests equal limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceType {
    /// 500m CPU, 512Mi memory.
    Small,
    /// 1000m CPU, 1024Mi memory.
    Medium,
    /// 2000m CPU, 2048Mi memory.
    Large,
}

impl InstanceType {
    /// CPU as a Kubernetes quantity.
    pub fn cpu(self) -> &'static str {
        match self {
            Self::Small => "500m",
            Self::Medium => "1000m",
            Self::Large => "2000m",
        }
    }

    /// Memory as a Kubernetes quantity.
    pub fn memory(self) -> &'static str {
        match self {
            Self::Small => "512Mi",
            Self::Medium => "1024Mi",
            Self::Large => "2048Mi",
        }
    }
}

/// Who supplies a service's database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    /// The platform.
    Provisioned,
    /// The service itself: it declares a variable whose name starts with `ANKKA_DB_`.
    Supplied,
}

/// Who supplies a service's object storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Nobody: the service has none.
    None,
    /// The service itself: it declares a variable whose name starts with `ANKKA_S3_`.
    Supplied,
    /// The platform.
    Provisioned {
        /// Reached from outside the cluster.
        exposed: bool,
        /// Origins whose pages may use the bucket.
        origins: Vec<String>,
        /// Whether a credential is issued.
        credential: bool,
        /// Days after which versions that are not current are deleted.
        version_age_days: Option<i64>,
    },
}
