//! Every rule of the descriptor, with the documented messages. One family of rules a file.
//!
//! A family reports all it finds and returns what it made of its fields. Problems come in the order of the reference,
//! section A1: name, runtime, image, each env entry, port, the port's variable, the platform's variables, the platform's
//! Secrets, labels and annotations, hosting, protocol, object storage, resources.

mod env;
mod findings;
pub(crate) mod grammar;
mod hosting;
mod image;
mod metadata;
mod port;
mod resources;
mod runtime;
mod storage;

pub use env::supplies_database;
pub(crate) use findings::{Finding, Findings, Place, Unreadable};
pub use port::DEFAULT as DEFAULT_PORT;
pub use storage::refused_by_garage;

use crate::{Problem, ServiceSpec, ValidatedService};

/// What is known around a descriptor when it is judged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    /// The project, where it is known: names that carry both are checked.
    pub project: Option<&'a str>,
    /// The installation's settings, where they are known.
    pub installation: Option<&'a Installation>,
}

/// Settings of the installation that decide whether a descriptor can be run here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installation {
    /// The store new buckets are made in; none when the installation has no object store.
    pub store: Option<Store>,
    /// Name of the cloud provider that makes buckets outside the cluster; none when the installation names none.
    pub cloud_provider: Option<String>,
}

/// A kind of object store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// Garage, in the cluster.
    Garage,
    /// Google Cloud Storage.
    Gcs,
}

/// Checks every rule and returns all problems, in the documented order.
///
/// `name` is the service's name and `service` the descriptor's `service` object.
///
/// # Errors
/// Every broken rule, never only the first.
pub fn validate(name: &str, service: &ServiceSpec, context: Context<'_>) -> Result<ValidatedService, Vec<Problem>> {
    judge(name, service, context, &Unreadable::default())
        .map_err(|findings| findings.into_iter().map(|finding| finding.problem).collect())
}

/// [`validate`], silent about what rests on a field that could not be read. With such fields the verdict is never
/// `Ok`: an empty list of findings says that the rules found nothing else.
pub(crate) fn judge(
    name: &str,
    service: &ServiceSpec,
    context: Context<'_>,
    unreadable: &Unreadable,
) -> Result<ValidatedService, Vec<Finding>> {
    let mut found = Findings::new(unreadable);
    grammar::service_name(name, &mut found);
    let runtime = runtime::check(service, &mut found);
    let image = image::check(service, &mut found);
    let env = env::entries(service, &mut found);
    let port = port::check(service, &mut found);
    env::reserved(service, &mut found);
    env::issued_secrets(service, &mut found);
    metadata::check(service, &mut found);
    let hosting = hosting::check(service, &mut found);
    let storage = storage::check(name, service, context, &mut found);
    let (size, instances) = resources::check(service, &mut found);

    found.into_verdict(|| ValidatedService {
        name: name.to_owned(),
        image,
        runtime,
        hosting,
        labels: service.labels.clone().unwrap_or_default(),
        annotations: service.annotations.clone().unwrap_or_default(),
        port,
        size,
        instances,
        database: env::database(&env),
        storage,
        env,
    })
}
