//! Storing a service: one server-side apply of `spec.service`, and what it did.
//!
//! One request tells which of three things happened, without reading the object first:
//! * *created*: the server answers 201;
//! * *unchanged*: the generation is still the first, or the time in our entry of `managedFields` is older than the request (an apply that changes nothing leaves
//!   it alone), or the controller has already reported on this generation, which it cannot have done for one just made;
//! * *configured*: otherwise.

use std::collections::BTreeMap;

use ankka_crds::{AnkkaService, GROUP, ServiceSpec, VERSION, labels};
use jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams, ValidationDirective};
use kube::core::Status;
use kube::{Resource, ResourceExt};
use serde_json::json;

use super::patch::Answer;
use super::{Attempt, Cluster, Subject, explain};
use crate::error::Error;
use crate::output;
use crate::settings::Project;

/// A service as stored, and how it got there.
pub(crate) struct Applied {
    /// What the server holds now.
    pub(crate) service: AnkkaService,
    /// What the request did.
    pub(crate) change: Change,
    /// The server's time when it answered.
    pub(crate) at: Timestamp,
}

/// What a request did to a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It was not there before.
    Created,
    /// It is different now.
    Configured,
    /// It was like this before.
    Unchanged,
}

impl Change {
    /// The word kubectl has for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
        }
    }
}

/// A descriptor on its way into the cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// The service's name.
    pub(crate) name: &'a str,
    /// The descriptor's `service` object.
    pub(crate) service: &'a ServiceSpec,
    /// Of a rollback, the generation whose descriptor it is.
    pub(crate) rolled_back_to: Option<i64>,
}

impl Cluster {
    /// Stores the descriptor's `service` object, taking it over from whoever else wrote it and saying so. Commands' fields
    /// stay as they are. `dry_run` lets the server do everything but store it.
    pub(crate) async fn apply(&self, project: &Project, wanted: Wanted<'_>, dry_run: bool) -> Result<Applied, Error> {
        let Wanted { name, service, rolled_back_to } = wanted;
        let attempt = Attempt {
            verb: if rolled_back_to.is_some() { "roll back" } else { "apply" },
            subject: Subject::Service(name, project),
        };
        let mut params = PatchParams {
            dry_run,
            field_validation: Some(ValidationDirective::Strict),
            ..PatchParams::apply(labels::CLI_MANAGER)
        };
        let annotations: BTreeMap<_, _> =
            rolled_back_to.map(|generation| (labels::ROLLED_BACK_TO, generation.to_string())).into_iter().collect();
        let mut body = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": AnkkaService::kind(&()),
            "metadata": { "name": name },
            "spec": { "service": service },
        });
        if !annotations.is_empty() {
            body["metadata"]["annotations"] = json!(annotations);
        }
        let body = Patch::Apply(body);
        let answer = match self.patch(attempt, name, project, &params, &body).await? {
            Ok(answer) => answer,
            Err(conflict) if other_managers(&conflict).is_empty() => return Err(explain::refused(attempt, &conflict)),
            Err(conflict) => {
                for manager in other_managers(&conflict) {
                    let took = if dry_run { "would take" } else { "took" };
                    output::warning(&format!("{took} over from '{manager}'"));
                }
                params.force = true;
                self.patch(attempt, name, project, &params, &body)
                    .await?
                    .map_err(|status| explain::refused(attempt, &status))?
            }
        };
        let Answer { service, created, at, took } = answer;
        let change = if created { Change::Created } else { change(&service, at - took) };
        Ok(Applied { service, change, at })
    }
}

/// Whether a request that the server got at `since` or later changed the service.
fn change(service: &AnkkaService, since: Timestamp) -> Change {
    if service.metadata.generation == Some(1) {
        return Change::Unchanged;
    }
    let reported = service.status.as_ref().and_then(|status| status.observed_generation);
    if reported.is_some() && reported >= service.metadata.generation {
        return Change::Unchanged;
    }
    let written = service
        .managed_fields()
        .iter()
        .find(|entry| {
            entry.manager.as_deref() == Some(labels::CLI_MANAGER) && entry.operation.as_deref() == Some("Apply")
        })
        .and_then(|entry| entry.time.as_ref());
    // Both times are cut to whole seconds.
    match written {
        Some(time) if time.0 + SignedDuration::from_secs(2) <= since => Change::Unchanged,
        _ => Change::Configured,
    }
}

/// The managers a conflict names, each once.
fn other_managers(status: &Status) -> Vec<String> {
    let mut managers: Vec<String> = status
        .details
        .iter()
        .flat_map(|details| &details.causes)
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .filter_map(|cause| Some(cause.message.split('"').nth(1)?.to_owned()))
        .collect();
    managers.sort();
    managers.dedup();
    managers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(time: &str, generation: i64, observed: Option<i64>) -> AnkkaService {
        serde_json::from_value(json!({
            "metadata": {
                "name": "cart",
                "generation": generation,
                "managedFields": [{ "manager": "ankka", "operation": "Apply", "time": time }],
            },
            "spec": { "service": { "image": "i:1" } },
            "status": { "observedGeneration": observed, "readyInstances": 0, "desiredInstances": 1 },
        }))
        .expect("is a service")
    }

    #[test]
    fn an_entry_older_than_the_request_was_not_written_by_it() {
        let since: Timestamp = "2026-11-30T12:00:10.5Z".parse().expect("is a time");
        assert_eq!(change(&stored("2026-11-30T12:00:08Z", 2, Some(1)), since), Change::Unchanged);
        assert_eq!(change(&stored("2026-11-30T12:00:10Z", 2, Some(1)), since), Change::Configured);
        assert_eq!(change(&stored("2026-11-30T12:00:10Z", 2, None), since), Change::Configured);
    }

    #[test]
    fn a_changed_service_is_not_in_its_first_generation() {
        let since: Timestamp = "2026-11-30T12:00:10Z".parse().expect("is a time");
        assert_eq!(change(&stored("2026-11-30T12:00:10Z", 1, None), since), Change::Unchanged);
    }

    #[test]
    fn a_generation_already_reported_on_is_not_new() {
        let since: Timestamp = "2026-11-30T12:00:10Z".parse().expect("is a time");
        assert_eq!(change(&stored("2026-11-30T12:00:10Z", 2, Some(2)), since), Change::Unchanged);
    }
}
