//! Labels, annotations and owner of every object.

use std::collections::BTreeMap;

use ankka_crds::{GROUP, VERSION, labels};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};

use super::Blueprint;
use crate::ChildKind;

/// Annotations that a descriptor cannot set: the platform's own, and those that the Deployment controller writes back as it
/// likes, as often as we would write them.
const RESERVED: [&str; 6] = [
    labels::DATABASE_CREDENTIAL,
    labels::GENERATION,
    labels::RENDERED,
    labels::RESTARTS,
    "deployment.kubernetes.io/revision",
    "deprecated.deployment.rollback.to",
];

/// The labels that select the service's instances.
pub(super) fn identity(blueprint: &Blueprint<'_>) -> BTreeMap<String, String> {
    labels::identity(blueprint.project, &blueprint.service.name)
}

/// Selects the service's instances. It never changes, because a Deployment's selector cannot.
pub(super) fn selector(blueprint: &Blueprint<'_>) -> LabelSelector {
    LabelSelector { match_labels: Some(identity(blueprint)), ..Default::default() }
}

/// The labels of an instance: the descriptor's, then ours over them.
pub(super) fn of_instance(blueprint: &Blueprint<'_>) -> BTreeMap<String, String> {
    let mut wanted = declared_labels(blueprint);
    wanted.insert(labels::FORMATION.to_owned(), labels::FORMATION_VALUE.to_owned());
    wanted
}

/// The annotations of an instance: the descriptor's, the count of restarts once there was one, and the generation of the
/// database login once there was a second.
pub(super) fn annotations_of_instance(blueprint: &Blueprint<'_>) -> Option<BTreeMap<String, String>> {
    let mut wanted = declared_annotations(blueprint);
    if blueprint.restarts > 0 {
        wanted.insert(labels::RESTARTS.to_owned(), blueprint.restarts.to_string());
    }
    if let Some(database) = blueprint.database.as_ref().filter(|database| database.in_place > 0) {
        wanted.insert(labels::DATABASE_CREDENTIAL.to_owned(), database.in_place.to_string());
    }
    (!wanted.is_empty()).then_some(wanted)
}

/// Peers find each other by this: every label that is the same on all instances and on nothing else.
pub(super) fn peer_selector(blueprint: &Blueprint<'_>) -> String {
    let mut wanted = identity(blueprint);
    wanted.insert(labels::FORMATION.to_owned(), labels::FORMATION_VALUE.to_owned());
    wanted.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

/// Metadata of an object that carries the platform's labels only.
pub(super) fn metadata(blueprint: &Blueprint<'_>, kind: ChildKind) -> ObjectMeta {
    ObjectMeta {
        name: Some(kind.name_for(&blueprint.service.name)),
        namespace: Some(blueprint.namespace.to_owned()),
        labels: Some(identity(blueprint)),
        owner_references: Some(vec![owner(&blueprint.service.name, blueprint.uid)]),
        ..Default::default()
    }
}

/// Metadata of an object that also carries the descriptor's labels and annotations, and the generation it was rendered
/// from.
///
/// The generation does not count for the digest, so that it never causes a write of its own: it names the change that
/// last made a difference to the object.
pub(super) fn declared_metadata(blueprint: &Blueprint<'_>, kind: ChildKind) -> ObjectMeta {
    let mut annotations = declared_annotations(blueprint);
    annotations.insert(labels::GENERATION.to_owned(), blueprint.generation.to_string());
    ObjectMeta { labels: Some(declared_labels(blueprint)), annotations: Some(annotations), ..metadata(blueprint, kind) }
}

fn declared_labels(blueprint: &Blueprint<'_>) -> BTreeMap<String, String> {
    let mut wanted = blueprint.service.labels.clone();
    wanted.extend(identity(blueprint));
    wanted
}

fn declared_annotations(blueprint: &Blueprint<'_>) -> BTreeMap<String, String> {
    let mut wanted = blueprint.service.annotations.clone();
    wanted.retain(|key, _| !RESERVED.contains(&key.as_str()));
    wanted
}

/// The reference to the AnkkaService that owns an object.
pub(crate) fn owner(service: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: format!("{GROUP}/{VERSION}"),
        kind: "AnkkaService".to_owned(),
        name: service.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
