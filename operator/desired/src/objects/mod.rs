//! The objects that make one service run, one file each.

mod config_map;
mod database;
mod deployment;
mod disruption_budget;
mod environment;
mod http_route;
mod labels;
mod pod;
mod role;
mod role_binding;
mod service;
mod service_account;

use std::borrow::Cow;

use ankka_crds::ValidatedService;
use serde::Serialize;

use crate::route::Route;
use crate::{Child, ChildKind};

pub(crate) use environment::DATABASE_USER;
pub(crate) use labels::owner;
pub(crate) use pod::{MANAGEMENT_PORT, READY_MISSES, READY_PATH, READY_PERIOD};

/// What is rendered: a service that cannot be wrong, and what commands and the installation have set beside it.
#[derive(Clone, Debug)]
pub struct Blueprint<'a> {
    /// The validated descriptor.
    pub service: &'a ValidatedService,
    /// The project's id.
    pub project: &'a str,
    /// The project's namespace.
    pub namespace: &'a str,
    /// UID of the AnkkaService, which owns everything rendered.
    pub uid: &'a str,
    /// `metadata.generation` of the AnkkaService.
    pub generation: i64,
    /// No instances while true.
    pub paused: bool,
    /// How often a restart was asked for.
    pub restarts: i64,
    /// Image of the sidecar: some exactly when the service is process-hosted.
    pub sidecar: Option<&'a str>,
    /// Names of Secrets to pull images with, each once.
    pub pull_secrets: Vec<String>,
    /// The route of an exposed service; none when it has no address outside the cluster.
    pub route: Option<Route<'a>>,
    /// The database that the platform makes; none for a service that has none of ours.
    pub database: Option<Database<'a>>,
    /// How long a rollout may make no progress before it counts as failed, in seconds.
    pub progress_deadline_seconds: i32,
}

/// The database that the platform makes for a service.
#[derive(Clone, Debug)]
pub struct Database<'a> {
    /// Generation of the login to ask for.
    pub asked: i64,
    /// Name of the Secret with the login.
    pub secret: Cow<'a, str>,
    /// Generation of the login in that Secret.
    pub in_place: i64,
}

impl Blueprint<'_> {
    /// Instances to run: none while paused.
    pub fn instances(&self) -> i32 {
        if self.paused { 0 } else { self.service.instances }
    }

    fn child<T: Serialize>(&self, kind: ChildKind, object: &T) -> Child {
        let body = serde_json::to_value(object).expect("Kubernetes objects have string keys only");
        Child::new(kind, kind.name_for(&self.service.name), body)
    }
}

/// Every object the service wants, in the order in which they are made.
pub fn children(blueprint: &Blueprint<'_>) -> Vec<Child> {
    let database = blueprint.database.as_ref().map(|wanted| {
        let kind = ChildKind::Database;
        blueprint.child(kind, &database::build(blueprint, wanted))
    });
    let mut children: Vec<_> = database.into_iter().collect();
    children.extend([
        blueprint.child(ChildKind::ServiceAccount, &service_account::build(blueprint)),
        blueprint.child(ChildKind::Role, &role::build(blueprint)),
        blueprint.child(ChildKind::RoleBinding, &role_binding::build(blueprint)),
        blueprint.child(ChildKind::ConfigMap, &config_map::build(blueprint)),
    ]);
    if let Some(budget) = disruption_budget::build(blueprint) {
        children.push(blueprint.child(ChildKind::PodDisruptionBudget, &budget));
    }
    if let Some(service) = service::build(blueprint) {
        children.push(blueprint.child(ChildKind::Service, &service));
    }
    children.push(deployment(blueprint));
    if let Some(route) = http_route::build(blueprint) {
        children.push(blueprint.child(ChildKind::HttpRoute, &route));
    }
    children
}

/// The instances.
pub(crate) fn deployment(blueprint: &Blueprint<'_>) -> Child {
    blueprint.child(ChildKind::Deployment, &deployment::build(blueprint))
}
