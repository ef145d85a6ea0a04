//! Whether what is in the cluster of one service is what the decisions render from it.

use std::collections::{BTreeMap, BTreeSet};

use ankka_crds::{AnkkaDatabase, AnkkaProject, AnkkaService, labels, names};
use ankka_desired::{Action, ChildKind, DatabaseState, Facts, ProjectFacts, RouteFacts, Settings, decide};
use ankka_operator::settings;
use anyhow::{Context, Result, anyhow};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
};
use serde_json::Value;

use crate::prove::runs::NAMESPACE;

/// The settings of the operator that runs in the cluster.
pub(super) async fn settings(client: &Client) -> Result<Settings> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let template = deployments.get("ankka-operator").await?.spec.context("the operator has no spec")?.template;
    let containers = template.spec.context("the operator has no pods")?.containers;
    let variables: BTreeMap<_, _> = containers
        .into_iter()
        .flat_map(|container| container.env.unwrap_or_default())
        .map(|variable| (variable.name, variable.value.unwrap_or_default()))
        .collect();
    let read = |name: &str| variables.get(name).filter(|value| !value.is_empty()).cloned();
    let settings = settings::Settings::read(read).map_err(|refused| anyhow!("the operator's settings: {refused:?}"))?;
    Ok(settings.desired)
}

/// The first difference between what is there and what the service asks for; none when there is none.
pub(super) async fn difference(client: &Client, settings: &Settings, service: &AnkkaService) -> Result<Option<String>> {
    let name = service.metadata.name.clone().unwrap_or_default();
    let namespace = service.metadata.namespace.clone().unwrap_or_default();
    let database = Api::<AnkkaDatabase>::namespaced(client.clone(), &namespace).get_opt(&name).await?;
    let database = database.as_ref().map(DatabaseState::of);
    let wanted = wanted(client, settings, service, database.as_ref(), &namespace).await?;
    let mut present = BTreeSet::new();
    for (kind, body) in wanted {
        present.insert(kind);
        let Some(live) = get(client, kind, &namespace, &name).await? else {
            return Ok(Some(format!("there is no {}", kind.word())));
        };
        if let Some(path) = missing(&serde_json::to_value(live)?, &body, "") {
            return Ok(Some(format!("the {} differs at {path}", kind.word())));
        }
    }
    for kind in ChildKind::all() {
        let outlives = kind == ChildKind::Database;
        if !outlives && !present.contains(&kind) && get(client, kind, &namespace, &name).await?.is_some() {
            return Ok(Some(format!("there is a {} still", kind.word())));
        }
    }
    Ok(None)
}

/// What a first pass would make of the service.
async fn wanted(
    client: &Client,
    settings: &Settings,
    service: &AnkkaService,
    database: Option<&DatabaseState>,
    namespace: &str,
) -> Result<Vec<(ChildKind, Value)>> {
    let project = names::project_of(&settings.prefix, namespace).context("the namespace is no project's")?;
    let project: AnkkaProject = Api::all(client.clone()).get(project).await?;
    let project = ProjectFacts { image_pull_secrets: project.spec.image_pull_secrets, terminating: false };
    let decision = decide(&Facts {
        service,
        project: Some(&project),
        settings,
        children: &BTreeMap::new(),
        workload: None,
        database,
        pods: &[],
        route: RouteFacts { served: true, state: None, rivals: &[] },
        revisions: &[],
        now: jiff::Timestamp::now(),
    });
    let body = |action| match action {
        Action::Create(mut child) => {
            if let Some(annotations) = child.body.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
                // It says which change wrote the object last, and not what it is.
                annotations.remove(labels::GENERATION);
            }
            Some((child.kind, child.body))
        }
        _ => None,
    };
    Ok(decision.actions.into_iter().filter_map(body).collect())
}

async fn get(client: &Client, kind: ChildKind, namespace: &str, service: &str) -> Result<Option<DynamicObject>> {
    let resource = ApiResource {
        group: kind.group().to_owned(),
        version: kind.version().to_owned(),
        api_version: kind.api_version().to_owned(),
        kind: kind.kind().to_owned(),
        plural: kind.plural().to_owned(),
    };
    Ok(Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource)
        .get_opt(&kind.name_for(service))
        .await?)
}

/// Where something of `wanted` is not in `live`.
fn missing(live: &Value, wanted: &Value, path: &str) -> Option<String> {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().find_map(|(key, wanted)| {
            let empty = wanted.as_object().is_some_and(serde_json::Map::is_empty) || wanted.is_null();
            match live.get(key) {
                Some(live) => missing(live, wanted, &format!("{path}/{key}")),
                None => (!empty).then(|| format!("{path}/{key}")),
            }
        }),
        (Value::Array(live), Value::Array(wanted)) if live.len() == wanted.len() => {
            let mut pairs = live.iter().zip(wanted).enumerate();
            pairs.find_map(|(at, (live, wanted))| missing(live, wanted, &format!("{path}/{at}")))
        }
        (live, wanted) => (live != wanted).then(|| format!("{path}: {live} instead of {wanted}")),
    }
}
