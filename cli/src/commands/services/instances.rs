//! Instances of a service, as commands about one of them name them.

use clap::ValueEnum;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use ankka_crds::names;

use crate::cluster::{Attempt, Cluster, Subject};
use crate::error::Error;
use crate::settings::Project;
use crate::show::service::selector;

/// A container of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Container {
    /// The service's own program
    #[default]
    Service,
    /// The platform's sidecar, with process hosting
    Sidecar,
}

impl Container {
    /// Its name in the pod.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Service => names::SERVICE_CONTAINER,
            Self::Sidecar => names::SIDECAR_CONTAINER,
        }
    }
}

/// The pods of a project.
pub(super) fn pods(cluster: &Cluster, project: &Project) -> Api<Pod> {
    Api::namespaced(cluster.client(), &project.namespace)
}

/// The service's instances, oldest first. That the service is not there is an error; that it has no instances is none.
pub(super) async fn all(cluster: &Cluster, project: &Project, service: &str) -> Result<Vec<Pod>, Error> {
    let attempt = Attempt { verb: "list", subject: Subject::Instances(service, project) };
    let params = ListParams::default().labels(&selector(&project.id, service));
    let found = pods(cluster, project).list(&params).await.map_err(|cause| cluster.explain(attempt, cause))?;
    let mut instances: Vec<Pod> = found.items.into_iter().filter(is_instance).collect();
    if instances.is_empty() {
        let attempt = Attempt { verb: "get", subject: Subject::Service(service, project) };
        match cluster.services(project).get(service).await {
            // Who may read instances and not the service is not told more.
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 403 => {}
            Err(cause) => return Err(cluster.explain(attempt, cause)),
        }
    }
    instances.sort_by_key(|pod| (pod.creation_timestamp(), pod.name_any()));
    Ok(instances)
}

/// Whether a pod is an instance: a ReplicaSet made it.
pub(super) fn is_instance(pod: &impl kube::Resource) -> bool {
    pod.owner_references().iter().any(|owner| owner.kind == "ReplicaSet")
}

/// What is shown of a pod's name: the part that differs between the instances of a service.
pub(super) fn short(pod: &str) -> &str {
    pod.rsplit('-').next().unwrap_or(pod)
}

/// The instances that are meant: all, or the one of this name, which may be the short one.
pub(super) fn named(
    instances: Vec<Pod>,
    name: Option<&str>,
    service: &str,
    project: &Project,
) -> Result<Vec<Pod>, Error> {
    let Some(name) = name else { return Ok(instances) };
    let known: Vec<String> = instances.iter().map(ResourceExt::name_any).collect();
    let found = known.iter().position(|pod| pod == name).or_else(|| known.iter().position(|pod| short(pod) == name));
    match found {
        Some(index) => Ok(instances.into_iter().skip(index).take(1).collect()),
        None => Err(Error::new(format!("service '{service}' in project '{}' has no instance '{name}'", project.id))
            .hint(if known.is_empty() {
                "it has no instances at all".to_owned()
            } else {
                format!("its instances are {}", known.join(", "))
            })),
    }
}

/// Refuses a container that the instances do not have.
pub(super) fn with_container(instances: &[Pod], container: Container, service: &str) -> Result<(), Error> {
    let has = |pod: &Pod| {
        pod.spec.as_ref().is_none_or(|spec| spec.containers.iter().any(|each| each.name == container.name()))
    };
    if instances.is_empty() || instances.iter().any(has) {
        return Ok(());
    }
    Err(Error::new(format!("the instances of service '{service}' have no container '{}'", container.name()))
        .hint("only a service with process hosting has a sidecar"))
}

/// Whether it takes requests, and will go on to.
pub(super) fn is_ready(pod: &Pod) -> bool {
    let ready = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    pod.metadata.deletion_timestamp.is_none()
        && ready.filter(|condition| condition.type_ == "Ready").any(|condition| condition.status == "True")
}

/// Whether the container runs.
pub(super) fn runs(pod: &Pod, container: Container) -> bool {
    pod.status
        .iter()
        .flat_map(|status| status.container_statuses.iter().flatten())
        .filter(|status| status.name == container.name())
        .any(|status| status.state.as_ref().is_some_and(|state| state.running.is_some()))
}
