//! `ankka status`.

use std::collections::BTreeMap;

use ankka_crds::{AnkkaService, labels};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde::Serialize;

use crate::args::{Global, OutputArgs};
use crate::cluster::{Attempt, Cluster, Component, Subject, Unknown};
use crate::commands::version::{self, CLIENT};
use crate::error::{Exit, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;
use crate::show::lines;
use crate::show::service::ServiceView;

/// How many services are asked for at a time.
const PAGE: u32 = 500;

/// Shows how the platform in the cluster is: version, processes, who leads, and services by status.
#[derive(clap::Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// How the platform is, as far as the caller may see it. Its fields are the output of `-o json`.
#[derive(Serialize)]
struct Status {
    client: &'static str,
    /// Null when it is not known.
    platform: Option<String>,
    components: Vec<ComponentView>,
    /// Null when they cannot be seen.
    services: Option<Services>,
    /// What is not known, and why.
    unknown: Vec<Gap>,
    warnings: Vec<String>,
}

/// One of the platform's processes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ComponentView {
    name: String,
    namespace: String,
    ready_instances: i32,
    desired_instances: i32,
    /// The pod that works while the others wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: Option<String>,
}

/// How many services there are.
#[derive(Serialize)]
struct Services {
    /// `all projects`, or `project <id>`.
    scope: String,
    total: usize,
    /// By the lifecycle word.
    statuses: BTreeMap<String, usize>,
}

/// Something that is not known.
#[derive(Serialize)]
struct Gap {
    what: String,
    why: String,
}

/// Shows the status. What the caller may not see is said to be unknown, and no failure.
pub(crate) async fn status(args: StatusArgs, global: &Global) -> Outcome {
    let cluster = Cluster::connect(global).await?;
    let (definition, components, services) =
        futures::join!(cluster.definition(), cluster.components(), services(&cluster, global));
    let mut status = Status {
        client: CLIENT,
        platform: None,
        components: Vec::new(),
        services: None,
        unknown: Vec::new(),
        warnings: Vec::new(),
    };
    match definition {
        Ok(Some(definition)) => status.platform = definition.annotations().get(labels::PLATFORM_VERSION).cloned(),
        Ok(None) => status.warnings.push("the ankka chart is not installed in this cluster".to_owned()),
        Err(kube::Error::Api(refused)) if refused.code != 401 => {
            status.gap("platform", Unknown::of(&kube::Error::Api(refused)));
        }
        Err(cause) => return Err(cluster.explain(Attempt { verb: "look at", subject: Subject::Platform }, cause)),
    }
    if let Some(platform) = status.platform.as_ref().filter(|platform| version::apart(CLIENT, platform)) {
        status.warnings.push(version::are_apart(platform));
    }
    match components {
        Ok(components) => components.into_iter().for_each(|component| status.add(component)),
        Err(unknown) => status.gap("components", unknown),
    }
    match services {
        Ok(services) => status.services = Some(services),
        Err(unknown) => status.gap("services", unknown),
    }
    match args.output.output {
        Format::Json => output::json(&status)?,
        Format::Yaml => output::yaml(&status)?,
        Format::Name => status.components.iter().try_for_each(|component| output::data(&component.name))?,
        Format::Table | Format::Wide => {
            output::data(&status.lines())?;
            status.warnings.iter().for_each(|warning| output::warning(warning));
        }
    }
    Ok(Exit::Success)
}

impl Status {
    fn gap(&mut self, what: &str, Unknown(why): Unknown) {
        self.unknown.push(Gap { what: what.to_owned(), why });
    }

    fn add(&mut self, component: Component) {
        let Component { name, namespace, ready, desired, leader, .. } = component;
        if ready < desired {
            self.warnings.push(format!(
                "{name} has {ready} of {desired} instances ready; see why with: kubectl describe pods -n {namespace} -l app.kubernetes.io/name=ankka-{name}"
            ));
        }
        let leader = match leader {
            None => None,
            Some(Ok(Some(pod))) => Some(pod),
            Some(Ok(None)) => {
                self.warnings.push(format!("nobody leads {name}: nothing changes until somebody does"));
                None
            }
            Some(Err(unknown)) => {
                self.gap(&format!("leader of {name}"), unknown);
                None
            }
        };
        self.components.push(ComponentView {
            name,
            namespace,
            ready_instances: ready,
            desired_instances: desired,
            leader,
        });
    }

    /// Label and value lines; what is not known says so.
    fn lines(&self) -> String {
        let mut pairs = vec![("client".to_owned(), CLIENT.to_owned())];
        pairs.extend(self.platform.clone().map(|platform| ("platform".to_owned(), platform)));
        for ComponentView { name, ready_instances, desired_instances, leader, .. } in &self.components {
            let led = leader.as_ref().map(|pod| format!(", led by {pod}")).unwrap_or_default();
            pairs.push((name.clone(), format!("{ready_instances}/{desired_instances} ready{led}")));
        }
        if let Some(Services { scope, total, statuses }) = &self.services {
            let each: Vec<_> = statuses.iter().map(|(status, count)| format!("{count} {status}")).collect();
            let each = if each.is_empty() { String::new() } else { format!(": {}", each.join(", ")) };
            pairs.push(("services".to_owned(), format!("{total} in {scope}{each}")));
        }
        pairs.extend(self.unknown.iter().map(|Gap { what, why }| (what.clone(), format!("unknown: {why}"))));
        let pairs: Vec<_> = pairs.iter().map(|(label, value)| (label.as_str(), value.clone())).collect();
        lines::aligned(&pairs)
    }
}

/// All services the caller may see: of the cluster, or else of the selected project.
async fn services(cluster: &Cluster, global: &Global) -> Result<Services, Unknown> {
    match count(&Api::all(cluster.client()), "all projects".to_owned()).await {
        Err(kube::Error::Api(status)) if status.code == 403 => {}
        counted => return counted.map_err(|cause| Unknown::of(&cause)),
    }
    let project = Settings::load().and_then(|settings| settings.optional(global.project.as_deref()));
    let project = project.map_err(|error| Unknown(error.message))?;
    let project = project.ok_or_else(|| Unknown("forbidden".to_owned()))?;
    count(&cluster.services(&project), format!("project {}", project.id)).await.map_err(|cause| Unknown::of(&cause))
}

async fn count(services: &Api<AnkkaService>, scope: String) -> kube::Result<Services> {
    let mut counted = Services { scope, total: 0, statuses: BTreeMap::new() };
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = services.list(&params).await?;
        for service in &page.items {
            counted.total += 1;
            *counted.statuses.entry(ServiceView::of(service, "").status_word().to_owned()).or_default() += 1;
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(counted),
        }
    }
}
