//! The checks, in the order in which they are told.

use std::collections::BTreeSet;

use ankka_crds::labels;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::{Namespace, Node};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, ListParams, PostParams};
use kube::core::{GroupVersionKind, PartialObjectMeta};
use kube::{Api, ResourceExt};

use super::{Check, webhook};
use crate::args::Global;
use crate::cluster::{Attempt, Cluster, Component, Subject, Unknown};
use crate::commands::version::{self, CLIENT};
use crate::error::Error;
use crate::settings::{Project, Settings};

/// Minor versions of Kubernetes 1 that the platform runs on.
const SUPPORTED: std::ops::RangeInclusive<u32> = 34..=37;
/// Our kinds.
const DEFINITIONS: [&str; 4] =
    ["ankkabuckets.ankka.dev", "ankkadatabases.ankka.dev", "ankkaprojects.ankka.dev", "ankkaservices.ankka.dev"];
const SETTING: &str = "correct it in --project, in ANKKA_PROJECT, or in what is saved: ankka config list";
const UPGRADE: &str = "upgrade the chart, or use the command that comes with it";

/// What members of a project do, and what it takes: group, resource, subresource, verb.
const DEEDS: [(&str, [&str; 4]); 5] = [
    ("apply services", ["ankka.dev", "ankkaservices", "", "patch"]),
    ("read logs", ["", "pods", "log", "get"]),
    ("run commands", ["", "pods", "exec", "create"]),
    ("forward ports", ["", "pods", "portforward", "create"]),
    ("set secrets", ["", "secrets", "", "patch"]),
];

/// The project of this command; none where none is selected.
type Selected = Result<Option<Project>, Error>;
type Definitions = Vec<kube::Result<Option<PartialObjectMeta<CustomResourceDefinition>>>>;

/// Everything; nothing more where the cluster does not answer.
pub(super) async fn all(cluster: &Cluster, global: &Global) -> Vec<Check> {
    let first = kubernetes(cluster).await;
    if first.outcome == super::Found::Problem && first.name == "cluster" {
        return vec![first];
    }
    let settings = Settings::load().unwrap_or_default();
    let project = settings.optional(global.project.as_deref());
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let read = DEFINITIONS.map(|name| definitions.get_metadata_opt(name));
    let (definitions, components, webhook, place, rights, nodes) = futures::join!(
        futures::future::join_all(read),
        cluster.components(),
        webhook::answers(cluster, project.as_ref().ok().and_then(Option::as_ref)),
        namespace(cluster, &project),
        rights(cluster, &project),
        nodes(cluster),
    );
    let base = noted(&definitions, labels::BASE_DOMAIN);
    let mut checks = vec![first, kinds(&definitions), versions(&definitions), prefix(&definitions, &settings), webhook];
    checks.extend([processes(&components), place, rights]);
    checks.push(match &base {
        Some(domain) => Check::ok("base domain", domain.clone()),
        None => Check::off("base domain", "none, so no service can be exposed; the chart's value baseDomain sets it"),
    });
    checks.push(gateway(cluster, &components, base.is_some()).await);
    checks.push(setting(&components, "database", "database server", "ANKKA_DATABASE_HOST", "database.host"));
    checks.push(setting(&components, "storage", "object store", "ANKKA_OBJECT_STORE_ADMIN_URL", "objectStore"));
    checks.push(nodes);
    checks
}

async fn kubernetes(cluster: &Cluster) -> Check {
    match cluster.client().apiserver_version().await {
        Ok(version) => {
            let minor = version.minor.trim_end_matches(|last: char| !last.is_ascii_digit()).parse::<u32>().ok();
            let found = format!("Kubernetes {}", version.git_version);
            if version.major == "1" && minor.is_some_and(|minor| SUPPORTED.contains(&minor)) {
                Check::ok("cluster", found)
            } else {
                let (first, last) = (SUPPORTED.start(), SUPPORTED.end());
                Check::problem("kubernetes", found, format!("the platform runs on Kubernetes 1.{first} to 1.{last}"))
            }
        }
        Err(kube::Error::Api(status)) if status.code == 403 => {
            Check::unknown("cluster", &Unknown("forbidden".to_owned()))
        }
        Err(kube::Error::Api(status)) if status.code == 401 => {
            Check::problem("cluster", "it rejected the login", "log in again, or use another context with --context")
        }
        Err(cause) => {
            let error = cluster.explain(Attempt { verb: "look at", subject: Subject::Platform }, cause);
            Check::problem("cluster", error.message, error.hint.unwrap_or_default())
        }
    }
}

fn kinds(definitions: &Definitions) -> Check {
    let missing: Vec<_> = DEFINITIONS
        .iter()
        .zip(definitions)
        .filter(|(_, found)| matches!(found, Ok(None)))
        .map(|(name, _)| *name)
        .collect();
    if let Some(cause) = definitions.iter().find_map(|found| found.as_ref().err()) {
        return Check::unknown("definitions", &Unknown::of(cause));
    }
    if missing.is_empty() {
        return Check::ok("definitions", format!("all {} kinds are installed", DEFINITIONS.len()));
    }
    Check::problem(
        "definitions",
        format!("not installed: {}", missing.join(", ")),
        "install the ankka chart in this cluster",
    )
}

/// A note of the chart's on the kinds.
fn noted(definitions: &Definitions, key: &str) -> Option<String> {
    let known = definitions.iter().flatten().flatten();
    known.filter_map(|definition| definition.annotations().get(key)).find(|value| !value.is_empty()).cloned()
}

fn versions(definitions: &Definitions) -> Check {
    let known = definitions.iter().flatten().flatten();
    let versions: BTreeSet<&String> =
        known.filter_map(|definition| definition.annotations().get(labels::PLATFORM_VERSION)).collect();
    let listed = versions.iter().map(|version| version.as_str()).collect::<Vec<_>>().join(", ");
    match versions.len() {
        0 => Check::unknown("versions", &Unknown("the kinds do not say which version installed them".to_owned())),
        1 if !version::apart(CLIENT, &listed) => {
            Check::ok("versions", format!("this command is {CLIENT} and the platform is {listed}"))
        }
        1 => Check::problem("versions", format!("this command is {CLIENT} and the platform is {listed}"), UPGRADE),
        _ => Check::problem("versions", format!("the kinds are of several versions: {listed}"), UPGRADE),
    }
}

fn prefix(definitions: &Definitions, settings: &Settings) -> Check {
    let ours = match settings.prefix() {
        Ok(ours) => ours,
        Err(error) => return faulty("namespace prefix", &error),
    };
    match noted(definitions, labels::NAMESPACE_PREFIX) {
        Some(theirs) if theirs != ours => Check::problem(
            "namespace prefix",
            format!("this command takes '{ours}' and the platform has '{theirs}'"),
            format!("ankka config set namespace-prefix {theirs}"),
        ),
        Some(theirs) => Check::ok("namespace prefix", theirs),
        None => Check::unknown("namespace prefix", &Unknown("the kinds do not say it".to_owned())),
    }
}

fn processes(components: &Result<Vec<Component>, Unknown>) -> Check {
    const NAME: &str = "processes";
    let components = match components {
        Ok(components) if components.is_empty() => {
            return Check::problem(NAME, "none are there", "install the ankka chart in this cluster");
        }
        Ok(components) => components,
        Err(unknown) => return Check::unknown(NAME, unknown),
    };
    let idle = components
        .iter()
        .find(|component| component.ready < component.desired || matches!(component.leader, Some(Ok(None))));
    if let Some(Component { name, namespace, ready, desired, .. }) = idle {
        let found = if ready < desired {
            format!("{name} has {ready} of {desired} instances ready")
        } else {
            format!("nobody leads {name}")
        };
        let look = format!("kubectl describe pods -n {namespace} -l app.kubernetes.io/name=ankka-{name}");
        return Check::problem(NAME, found, look);
    }
    let names: Vec<_> = components.iter().map(|component| component.name.as_str()).collect();
    Check::ok(NAME, format!("{} are ready", names.join(", ")))
}

/// A setting of this command that cannot be used.
fn faulty(name: &'static str, error: &Error) -> Check {
    Check::problem(name, error.message.clone(), error.hint.clone().unwrap_or_else(|| SETTING.to_owned()))
}

async fn namespace(cluster: &Cluster, project: &Selected) -> Check {
    const NAME: &str = "project";
    let project = match project {
        Ok(Some(project)) => project,
        Ok(None) => return Check::off(NAME, "none is selected; --project names one"),
        Err(error) => return faulty(NAME, error),
    };
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    match namespaces.get_metadata_opt(&project.namespace).await {
        Ok(Some(found)) if found.labels().get(labels::PROJECT) == Some(&project.id) => {
            Check::ok(NAME, format!("{} is namespace {}", project.id, project.namespace))
        }
        Ok(Some(_)) => Check::problem(
            NAME,
            format!("namespace '{}' is no project's", project.namespace),
            format!("ankka projects create {}", project.id),
        ),
        Ok(None) => Check::problem(
            NAME,
            format!("project '{}' is not there: there is no namespace '{}'", project.id, project.namespace),
            format!("ankka projects create {}", project.id),
        ),
        Err(cause) => Check::unknown(NAME, &Unknown::of(&cause)),
    }
}

/// What the caller may do in the project. Less than everything is no problem: not everybody does everything.
async fn rights(cluster: &Cluster, project: &Selected) -> Check {
    const NAME: &str = "permissions";
    let project = match project {
        Ok(Some(project)) => project,
        Ok(None) => return Check::off(NAME, "no project is selected"),
        Err(_) => return Check::unknown(NAME, &Unknown("the project is not known".to_owned())),
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(cluster.client());
    let (mut may, mut may_not) = (Vec::new(), Vec::new());
    for (deed, [group, resource, subresource, verb]) in DEEDS {
        let attributes = ResourceAttributes {
            group: Some(group.to_owned()),
            resource: Some(resource.to_owned()),
            subresource: Some(subresource.to_owned()).filter(|text| !text.is_empty()),
            verb: Some(verb.to_owned()),
            namespace: Some(project.namespace.clone()),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        match reviews.create(&PostParams::default(), &review).await {
            Ok(answer) if answer.status.as_ref().is_some_and(|status| status.allowed) => may.push(deed),
            Ok(_) => may_not.push(deed),
            Err(cause) => return Check::unknown(NAME, &Unknown::of(&cause)),
        }
    }
    if may.is_empty() {
        return Check::problem(
            NAME,
            format!("you may do nothing in project '{}'", project.id),
            format!("ask its administrators for the role edit in the namespace '{}'", project.namespace),
        );
    }
    let rest = if may_not.is_empty() { String::new() } else { format!("; not: {}", may_not.join(", ")) };
    Check::ok(NAME, format!("you may {}{rest}", may.join(", ")))
}

/// The Gateway that the operator publishes services on.
async fn gateway(cluster: &Cluster, components: &Result<Vec<Component>, Unknown>, wanted: bool) -> Check {
    const NAME: &str = "gateway";
    let operator = match components {
        Ok(components) => components.iter().find(|component| component.name == "operator"),
        Err(unknown) => return Check::unknown(NAME, unknown),
    };
    let setting =
        |name: &str| operator.and_then(|operator| operator.settings.get(name)).filter(|text| !text.is_empty());
    let (Some(namespace), Some(name), true) =
        (setting("ANKKA_GATEWAY_NAMESPACE"), setting("ANKKA_GATEWAY_NAME"), wanted)
    else {
        return Check::off(NAME, "no service can be exposed without a base domain and a gateway");
    };
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", "Gateway"));
    let gateways: Api<DynamicObject> = Api::namespaced_with(cluster.client(), namespace, &kind);
    match gateways.get(name).await {
        Ok(gateway) => {
            let conditions = gateway.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let programmed =
                |condition: &serde_json::Value| condition["type"] == "Programmed" && condition["status"] == "True";
            if conditions.iter().any(programmed) {
                Check::ok(NAME, format!("'{name}' in namespace '{namespace}' is programmed"))
            } else {
                Check::problem(
                    NAME,
                    format!("'{name}' in namespace '{namespace}' is not programmed"),
                    format!("kubectl describe gateway {name} -n {namespace}"),
                )
            }
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Check::problem(
            NAME,
            format!("there is no Gateway '{name}' in namespace '{namespace}', or no Gateway API in this cluster"),
            "install the Gateway API and a Gateway, or let the chart make it: gateway.create=true",
        ),
        Err(cause) => Check::unknown(NAME, &Unknown::of(&cause)),
    }
}

/// Whether a process has what it works with.
fn setting(
    components: &Result<Vec<Component>, Unknown>,
    component: &str,
    name: &'static str,
    variable: &str,
    value: &str,
) -> Check {
    let components = match components {
        Ok(components) => components,
        Err(unknown) => return Check::unknown(name, unknown),
    };
    let found = components
        .iter()
        .find(|found| found.name == component)
        .and_then(|found| found.settings.get(variable))
        .filter(|text| !text.is_empty());
    match found {
        Some(found) => Check::ok(name, found.clone()),
        None => Check::off(name, format!("none is set: the chart's value {value} sets it")),
    }
}

async fn nodes(cluster: &Cluster) -> Check {
    const NAME: &str = "nodes";
    let nodes: Api<Node> = Api::all(cluster.client());
    let found = match nodes.list(&ListParams::default()).await {
        Ok(found) => found.items,
        Err(cause) => return Check::unknown(NAME, &Unknown::of(&cause)),
    };
    let ready = |node: &&Node| {
        let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.filter(|condition| condition.type_ == "Ready").any(|condition| condition.status == "True")
    };
    let kinds: BTreeSet<String> =
        found.iter().filter_map(|node| Some(node.status.as_ref()?.node_info.as_ref()?.architecture.clone())).collect();
    let (count, up) = (found.len(), found.iter().filter(ready).count());
    let kinds: Vec<_> = kinds.into_iter().collect();
    let each = if kinds.len() > 1 { "; images need all of them" } else { "" };
    let detail = format!("{up} of {count} are ready, {}{each}", kinds.join(" and "));
    if up == 0 { Check::problem(NAME, detail, "kubectl get nodes") } else { Check::ok(NAME, detail) }
}
