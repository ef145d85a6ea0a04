//! One service as `get` and `list` show it.

use ankka_crds::resources::{FormerLogin, NOT_OBSERVED};
use ankka_crds::{AnkkaService, AnkkaServiceStatus, labels};
use kube::ResourceExt;
use serde::Serialize;

use super::address::Exposure;
use crate::error::Error;
use crate::output::{self, Format};
use crate::show::{lines, table};

/// One service as members read it. Its fields are the output of `-o json`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServiceView {
    name: String,
    project: String,
    namespace: String,
    /// The lifecycle word.
    status: String,
    /// Whether an operator has reported on the present generation.
    confirmed: bool,
    ready_instances: i64,
    desired_instances: i64,
    generation: i64,
    image: String,
    hosting: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
    /// Whether an address outside the cluster was asked for.
    exposed: bool,
    /// Where the service is reached from outside; null when it is not exposed, or nowhere yet.
    hostname: Option<String>,
    /// Of an exposed service, how its route is.
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<String>,
    /// Logins of before that are still accepted, and until when.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    former_logins: Vec<FormerLogin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_storage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip)]
    exposure: Exposure,
}

impl ServiceView {
    /// Reads a stored service. A report about an older generation says nothing about this one.
    pub(crate) fn of(service: &AnkkaService, project: &str) -> Self {
        let spec = &service.spec.service;
        let status = service.status.clone().unwrap_or_default();
        let generation = service.metadata.generation.unwrap_or_default();
        let confirmed = status.observed_generation.is_some_and(|observed| observed >= generation);
        let asked = if service.spec.paused {
            0
        } else {
            spec.resources.as_ref().and_then(|resources| resources.autoscaling.as_ref()?.min_instances).unwrap_or(1)
        };
        let unconfirmed = || {
            Some(match status.observed_generation {
                Some(observed) if observed != NOT_OBSERVED => {
                    format!("no operator has reported on generation {generation}")
                }
                _ => "no operator has reported on this service".to_owned(),
            })
        };
        let exposure = Exposure::of(service);
        let detail = if service.metadata.deletion_timestamp.is_some() {
            Some("it is being deleted".to_owned())
        } else if confirmed {
            detail(&status, &exposure)
        } else {
            unconfirmed()
        };
        let database = status.database;
        Self {
            name: service.name_any(),
            project: project.to_owned(),
            namespace: service.namespace().unwrap_or_default(),
            status: status.lifecycle.filter(|_| confirmed).unwrap_or_else(|| "UpdateInProgress".to_owned()),
            confirmed,
            ready_instances: status.ready_instances,
            desired_instances: if confirmed { status.desired_instances } else { asked },
            generation,
            image: spec.image.clone().unwrap_or_default(),
            hosting: spec.hosting.clone().unwrap_or_else(|| "embedded".to_owned()),
            protocol: spec.protocol.clone(),
            exposed: service.spec.exposed,
            hostname: exposure.url().map(str::to_owned),
            route: status.route.clone().filter(|_| service.spec.exposed),
            detail,
            address: status.address,
            image_digest: status.image_digest,
            database: database.as_ref().map(|database| database.phase.clone()),
            former_logins: database.map(|database| database.former_logins).unwrap_or_default(),
            object_storage: status.object_storage.map(|storage| storage.phase),
            exposure,
        }
    }

    /// The same service with this address outside, which the operator has not reported yet.
    pub(crate) fn at(mut self, url: String) -> Self {
        self.hostname = Some(url.clone());
        self.exposure = Exposure::At(url);
        self
    }

    /// Prints it as `get` does.
    pub(crate) fn print(&self, format: Format) -> Result<(), Error> {
        match format {
            Format::Table => Ok(output::data(&self.lines(false))?),
            Format::Wide => Ok(output::data(&self.lines(true))?),
            Format::Name => Ok(output::data(&self.reference())?),
            Format::Json => output::json(self),
            Format::Yaml => output::yaml(self),
        }
    }

    /// The service's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// `service/<name>`, as kubectl names things.
    pub(crate) fn reference(&self) -> String {
        format!("service/{}", self.name)
    }

    /// The lifecycle word.
    pub(crate) fn status_word(&self) -> &str {
        &self.status
    }

    fn status(&self) -> String {
        if self.confirmed { self.status.clone() } else { format!("{} (unconfirmed)", self.status) }
    }

    fn instances(&self) -> String {
        format!("{}/{}", self.ready_instances, self.desired_instances)
    }

    /// Label and value lines; a line only when its field exists, but the hostname always.
    pub(crate) fn lines(&self, wide: bool) -> String {
        let mut pairs = vec![
            ("name", self.name.clone()),
            ("project", self.project.clone()),
            ("status", self.status()),
            ("instances", self.instances()),
            ("generation", self.generation.to_string()),
            ("image", self.image.clone()),
            ("hosting", self.hosting.clone()),
        ];
        let mut push = |label, value: &Option<String>| pairs.extend(value.clone().map(|value| (label, value)));
        push("protocol", &self.protocol);
        push("hostname", &Some(self.exposure.to_string()));
        push("route", &self.route);
        if wide {
            push("namespace", &Some(self.namespace.clone()));
            push("address", &self.address);
            push("image digest", &self.image_digest);
        }
        push("database", &self.database);
        for FormerLogin { login, ends_at } in &self.former_logins {
            push("former login", &Some(format!("{login} until {ends_at}")));
        }
        push("object storage", &self.object_storage);
        push("detail", &self.detail);
        lines::aligned(&pairs)
    }
}

/// Why the service is not as it was asked for: what the platform says of the whole, then of the parts it has not named yet.
fn detail(status: &AnkkaServiceStatus, exposure: &Exposure) -> Option<String> {
    let part = |what: &str, why: Option<&String>| Some((format!("{what}: {}", why?), why?.clone()));
    let database = part("database", status.database.as_ref().and_then(|database| database.detail.as_ref()));
    let storage = part("object storage", status.object_storage.as_ref().and_then(|storage| storage.detail.as_ref()));
    let route = part("route rejected", exposure.rejection());
    let mut said: Vec<String> = status.detail.iter().cloned().collect();
    for (text, why) in [database, storage, route].into_iter().flatten() {
        if !said.iter().any(|already| already.contains(&why)) {
            said.push(text);
        }
    }
    (!said.is_empty()).then(|| said.join("; "))
}

/// The table of `services list`.
pub(crate) fn listing(services: &[ServiceView], wide: bool) -> String {
    let mut heading = vec!["NAME", "STATUS", "INSTANCES", "GEN", "IMAGE", "HOSTNAME"];
    if wide {
        heading.extend(["ADDRESS", "DATABASE", "STORAGE", "DETAIL"]);
    }
    let or_dash = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let rows = services.iter().map(|service| {
        let mut row = vec![
            service.name.clone(),
            service.status(),
            service.instances(),
            service.generation.to_string(),
            service.image.clone(),
            or_dash(&service.hostname),
        ];
        if wide {
            row.extend([&service.address, &service.database, &service.object_storage, &service.detail].map(or_dash));
        }
        row
    });
    table::columns(&heading, rows)
}

/// The labels all objects of a service carry, as a selector.
pub(crate) fn selector(project: &str, service: &str) -> String {
    labels::identity(project, service)
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect::<Vec<_>>()
        .join(",")
}
