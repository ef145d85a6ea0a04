//! The objects of a service, rendered as the operator renders them.
//!
//! What only the installation knows is the same on both sides of a comparison, so it is no difference: words stand for it.

use ankka_crds::{AnkkaService, Context, ValidatedService, labels, names, validate, validated};
use ankka_crds::{exposure, exposure::Domain};
use ankka_desired::objects::{Blueprint, Database, children};
use ankka_desired::route::Route;
use ankka_desired::{ChildKind, Gateway};
use kube::ResourceExt;
use serde_json::Value;

use crate::settings::Project;

/// Stands for the image of the installation's sidecar.
const SIDECAR: &str = "<the installation's sidecar>";
/// Stands for the domain of exposed services.
const DOMAIN: &str = "<base domain>";
/// As the installation has it by default.
const PROGRESS_DEADLINE_SECONDS: i32 = 600;

/// One object, without what names the change that it was rendered from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Object {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) body: Value,
}

/// Everything a service owns; none when its descriptor breaks a rule.
pub(super) fn rendered(service: &AnkkaService, project: &Project) -> Option<Vec<Object>> {
    let context = Context { project: Some(&project.id), installation: None };
    let validated = validate(&service.name_any(), &service.spec.service, context).ok()?;
    let gateway = Gateway::default();
    let rendered = children(&blueprint(service, &validated, project, &gateway));
    Some(
        rendered
            .into_iter()
            // A database stays whatever becomes of the service.
            .filter(|child| child.kind.is_owned())
            .map(|child| Object { kind: child.kind.kind(), name: child.name, body: without_marks(child.body) })
            .collect(),
    )
}

/// The template of the instances.
pub(super) fn template(objects: &[Object]) -> Option<&Value> {
    let deployment = objects.iter().find(|object| object.kind == ChildKind::Deployment.kind())?;
    deployment.body.pointer("/spec/template")
}

fn blueprint<'a>(
    service: &'a AnkkaService,
    validated: &'a ValidatedService,
    project: &'a Project,
    gateway: &'a Gateway,
) -> Blueprint<'a> {
    Blueprint {
        service: validated,
        project: &project.id,
        namespace: &project.namespace,
        uid: service.metadata.uid.as_deref().unwrap_or_default(),
        generation: service.metadata.generation.unwrap_or_default(),
        paused: service.spec.paused,
        restarts: service.spec.restarts,
        sidecar: (validated.hosting != validated::Hosting::Embedded).then_some(SIDECAR),
        pull_secrets: Vec::new(),
        database: database(service, validated),
        route: route(service, validated, project, gateway),
        progress_deadline_seconds: PROGRESS_DEADLINE_SECONDS,
    }
}

/// The database of a service that does not supply its own. Which login is in place only its controller knows.
fn database(service: &AnkkaService, validated: &ValidatedService) -> Option<Database<'static>> {
    let generation = service.spec.database.as_ref().map_or(0, |commands| commands.credential_generation);
    (validated.database == validated::Database::Provisioned).then(|| Database {
        asked: generation,
        secret: names::database_secret(&validated.name).into(),
        in_place: generation,
    })
}

/// The route of an exposed service that can have one here.
fn route<'a>(
    service: &AnkkaService,
    validated: &ValidatedService,
    project: &Project,
    gateway: &'a Gateway,
) -> Option<Route<'a>> {
    let domain = Domain { base: DOMAIN.to_owned(), port: 443 };
    let host = exposure::host(&project.id, &validated.name, validated.port.is_some(), Some(&domain)).ok()?;
    let url = exposure::url(&host, &domain);
    service.spec.exposed.then_some(Route { host, url, gateway })
}

/// The object without the annotations that change with every rendering, and without the owner, whom a dry run only invents.
fn without_marks(mut body: Value) -> Value {
    if let Some(metadata) = body["metadata"].as_object_mut() {
        metadata.remove("ownerReferences");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(labels::RENDERED);
            annotations.remove(labels::GENERATION);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    body
}
