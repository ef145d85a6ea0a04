//! One service as `get` and `list` show it.

use ankka_crds::{AnkkaService, labels};
use kube::ResourceExt;
use serde::Serialize;

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
    /// Where the service is reached from outside; null when it is not exposed.
    hostname: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_storage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
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
                Some(_) => format!("no operator has reported on generation {generation}"),
                None => "no operator has reported on this service".to_owned(),
            })
        };
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
            hostname: None,
            address: status.address,
            image_digest: status.image_digest,
            database: status.database.map(|database| database.phase),
            object_storage: status.object_storage.map(|storage| storage.phase),
            detail: if service.metadata.deletion_timestamp.is_some() {
                Some("it is being deleted".to_owned())
            } else if confirmed {
                status.detail
            } else {
                unconfirmed()
            },
        }
    }

    /// `service/<name>`, as kubectl names things.
    pub(crate) fn reference(&self) -> String {
        format!("service/{}", self.name)
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
        push("hostname", &Some(self.hostname.clone().unwrap_or_else(|| "not exposed".to_owned())));
        if wide {
            push("namespace", &Some(self.namespace.clone()));
            push("address", &self.address);
            push("image digest", &self.image_digest);
        }
        push("database", &self.database);
        push("object storage", &self.object_storage);
        push("detail", &self.detail);
        lines::aligned(&pairs)
    }
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
