//! The pod template: one instance. It is the same for every number of instances and every generation, so that only a change
//! to what an instance runs rolls.

use ankka_crds::names::{SERVICE_CONTAINER, SIDECAR_CONTAINER};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, HTTPGetAction, Lifecycle, LifecycleHandler, LocalObjectReference, PodSpec,
    PodTemplateSpec, Probe, ResourceRequirements, SleepAction, TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Blueprint, environment, labels};
use crate::ChildKind;

/// Name of the port that serves HTTP.
pub(super) const HTTP_PORT: &str = "http";
/// Port on which a node answers whether it is ready.
pub(crate) const MANAGEMENT_PORT: i32 = 7626;
/// Path of that answer.
pub(crate) const READY_PATH: &str = "/ready";
/// Between two questions, in seconds.
pub(crate) const READY_PERIOD: i32 = 5;
/// So many misses in a row take an instance out of service, so that one long pause does not.
pub(crate) const READY_MISSES: i32 = 3;
const REMOTING_PORT: i32 = 17355;

/// A stopping instance goes on serving this long, until every node's proxy knows that it leaves. In seconds.
const PRE_STOP_PAUSE: i64 = 5;
/// From the start of the pause to the forced end, in seconds: the pause, and 40 for open requests to end and for entities
/// to be handed to the instances that remain.
const GRACE_PERIOD: i64 = 45;

/// Size of the container with the user's process beside the sidecar.
const PROCESS_SIZE: (&str, &str) = ("100m", "128Mi");

/// The template of an instance.
pub(super) fn template(blueprint: &Blueprint<'_>) -> PodTemplateSpec {
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels::of_instance(blueprint)),
            annotations: labels::annotations_of_instance(blueprint),
            ..Default::default()
        }),
        spec: Some(PodSpec {
            service_account_name: Some(ChildKind::ServiceAccount.name_for(&blueprint.service.name)),
            // A service called `ankka-s3` would otherwise inject ANKKA_S3_PORT into its neighbours.
            enable_service_links: Some(false),
            image_pull_secrets: pull_secrets(blueprint),
            termination_grace_period_seconds: Some(GRACE_PERIOD),
            topology_spread_constraints: Some(vec![spread(blueprint)]),
            containers: containers(blueprint),
            ..Default::default()
        }),
    }
}

/// No security context: whatever an image needs within Pod Security `baseline`, it has. An image may run as root, change
/// its user or write its own file system.
fn containers(blueprint: &Blueprint<'_>) -> Vec<Container> {
    let service = blueprint.service;
    let size = (service.size.cpu(), service.size.memory());
    match blueprint.sidecar {
        None => vec![node(
            blueprint,
            container(SERVICE_CONTAINER, &service.image, environment::of_embedded(blueprint), size),
        )],
        Some(image) => vec![
            node(blueprint, container(SIDECAR_CONTAINER, image, environment::of_sidecar(blueprint), size)),
            container(SERVICE_CONTAINER, &service.image, environment::of_process(blueprint), PROCESS_SIZE),
        ],
    }
}

fn container(name: &str, image: &str, env: Vec<EnvVar>, (cpu, memory): (&str, &str)) -> Container {
    let size = [("cpu", cpu), ("memory", memory)].map(|(key, value)| (key.to_owned(), Quantity(value.to_owned())));
    Container {
        name: name.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        env: Some(env),
        resources: Some(ResourceRequirements {
            requests: Some(size.clone().into()),
            limits: Some(size.into()),
            ..Default::default()
        }),
        lifecycle: Some(Lifecycle {
            pre_stop: Some(LifecycleHandler {
                sleep: Some(SleepAction { seconds: PRE_STOP_PAUSE }),
                ..Default::default()
            }),
            ..Default::default()
        }),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..Default::default()
    }
}

/// Makes a container the cluster node: its ports, and the question whether it is ready. There is no liveness probe: a slow
/// instance is left to recover.
fn node(blueprint: &Blueprint<'_>, container: Container) -> Container {
    let http = blueprint.service.port.map(|port| port_named(HTTP_PORT, i32::from(port)));
    let own = [port_named("management", MANAGEMENT_PORT), port_named("remoting", REMOTING_PORT)];
    Container {
        ports: Some(http.into_iter().chain(own).collect()),
        readiness_probe: Some(Probe {
            http_get: Some(HTTPGetAction {
                path: Some(READY_PATH.to_owned()),
                port: IntOrString::String("management".to_owned()),
                ..Default::default()
            }),
            // No initial delay: the first answer counts at once.
            period_seconds: Some(READY_PERIOD),
            timeout_seconds: Some(3),
            success_threshold: Some(1),
            failure_threshold: Some(READY_MISSES),
            ..Default::default()
        }),
        ..container
    }
}

fn port_named(name: &str, port: i32) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: port,
        protocol: Some("TCP".to_owned()),
        ..Default::default()
    }
}

/// Instances keep apart where nodes allow it. Written whatever the number of instances: it means nothing for one, and the
/// template must not change with the number. Each revision is spread by itself, or a rollout would pile the new instances
/// up where the old ones are not.
fn spread(blueprint: &Blueprint<'_>) -> TopologySpreadConstraint {
    TopologySpreadConstraint {
        max_skew: 1,
        topology_key: "kubernetes.io/hostname".to_owned(),
        when_unsatisfiable: "ScheduleAnyway".to_owned(),
        label_selector: Some(labels::selector(blueprint)),
        match_label_keys: Some(vec!["pod-template-hash".to_owned()]),
        ..Default::default()
    }
}

fn pull_secrets(blueprint: &Blueprint<'_>) -> Option<Vec<LocalObjectReference>> {
    let names = &blueprint.pull_secrets;
    (!names.is_empty()).then(|| names.iter().map(|name| LocalObjectReference { name: name.clone() }).collect())
}
