//! What is said about a service: the documented word, why, and the conditions that every Kubernetes tool reads.

use ankka_crds::resources::{Condition, ProvisioningStatus};
use ankka_crds::validated::Storage;
use ankka_crds::{AnkkaServiceStatus, ValidatedService};

use crate::database;
use crate::logins;
use crate::objects::Blueprint;
use crate::route::{Exposure, Report};
use crate::{Action, ChildKind, Facts, workload};

/// Why a service that asks for a bucket gets none.
pub(crate) const NO_STORE: &str = "the installation has no object store";

/// The documented words, as statuses hold them.
pub const LIFECYCLES: [&str; 7] = [
    Lifecycle::NotDeployed.word(),
    Lifecycle::UpdateInProgress.word(),
    Lifecycle::Ready.word(),
    Lifecycle::PartiallyReady.word(),
    Lifecycle::Unavailable.word(),
    Lifecycle::Failed.word(),
    Lifecycle::Paused.word(),
];

/// The documented words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    NotDeployed,
    UpdateInProgress,
    Ready,
    PartiallyReady,
    Unavailable,
    Failed,
    Paused,
}

impl Lifecycle {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::NotDeployed => "NotDeployed",
            Self::UpdateInProgress => "UpdateInProgress",
            Self::Ready => "Ready",
            Self::PartiallyReady => "PartiallyReady",
            Self::Unavailable => "Unavailable",
            Self::Failed => "Failed",
            Self::Paused => "Paused",
        }
    }
}

/// Reasons of conditions: a closed set, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Ready,
    Paused,
    UpdateInProgress,
    WaitingForDeletion,
    WaitingForDatabase,
    WaitingForObjectStorage,
    Provisioned,
    Recovered,
    DatabaseProvisioningFailed,
    InstancesDown,
    NotDeployed,
    DeadlineExceeded,
    InvalidDescriptor,
    NoProject,
    NoSidecarImage,
    NoDatabaseServer,
    NoObjectStore,
    NameTaken,
    Incompatible,
}

impl Reason {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Paused => "Paused",
            Self::UpdateInProgress => "UpdateInProgress",
            Self::WaitingForDeletion => "WaitingForDeletion",
            Self::WaitingForDatabase => "WaitingForDatabase",
            Self::Provisioned => "Provisioned",
            Self::Recovered => "Recovered",
            Self::DatabaseProvisioningFailed => "DatabaseProvisioningFailed",
            Self::NoDatabaseServer => "NoDatabaseServer",
            Self::WaitingForObjectStorage => "WaitingForObjectStorage",
            Self::InstancesDown => "InstancesDown",
            Self::NotDeployed => "NotDeployed",
            Self::DeadlineExceeded => "DeadlineExceeded",
            Self::InvalidDescriptor => "InvalidDescriptor",
            Self::NoProject => "NoProject",
            Self::NoSidecarImage => "NoSidecarImage",
            Self::NoObjectStore => "NoObjectStore",
            Self::NameTaken => "NameTaken",
            Self::Incompatible => "Incompatible",
        }
    }
}

/// Why nothing is started, and running instances are left alone.
#[derive(Debug)]
pub(crate) struct Hold {
    verdict: Verdict,
    service: Option<Box<ValidatedService>>,
}

impl Hold {
    /// It cannot succeed as things are.
    pub(crate) fn failed(reason: Reason, detail: impl Into<String>) -> Self {
        Self { verdict: Verdict::new(Lifecycle::Failed, reason, Some(detail.into())), service: None }
    }

    /// The image was built for another platform.
    pub(crate) fn incompatible(detail: String) -> Self {
        Self { verdict: Verdict::new(Lifecycle::Unavailable, Reason::Incompatible, Some(detail)), service: None }
    }

    /// Something the instances need is being made.
    pub(crate) fn waiting(reason: Reason) -> Self {
        Self { verdict: Verdict::new(Lifecycle::UpdateInProgress, reason, None), service: None }
    }

    /// Whether the descriptor breaks no rule.
    pub(crate) fn is_of_valid(&self) -> bool {
        self.service.is_some()
    }

    /// The service it is about, where it could be validated.
    pub(crate) fn about(self, service: ValidatedService) -> Self {
        Self { service: Some(Box::new(service)), ..self }
    }
}

/// The word, for people and for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    lifecycle: Lifecycle,
    reason: Reason,
    detail: Option<String>,
}

impl Verdict {
    pub(crate) const fn new(lifecycle: Lifecycle, reason: Reason, detail: Option<String>) -> Self {
        Self { lifecycle, reason, detail }
    }

    /// Whether instances of before may stay, because something stands in the way of those that are to replace them.
    fn is_held_up(&self) -> bool {
        match self.lifecycle {
            Lifecycle::Failed => true,
            Lifecycle::UpdateInProgress => self.detail.is_some(),
            _ => self.reason == Reason::Incompatible && self.lifecycle != Lifecycle::Paused,
        }
    }
}

/// The status of a service whose children are being made what they should be.
pub(crate) fn of_running(
    facts: &Facts<'_>,
    blueprint: &Blueprint<'_>,
    exposure: &Exposure<'_>,
    actions: &[Action],
    waiting: &[ChildKind],
    obstacle: Option<Verdict>,
) -> AnkkaServiceStatus {
    let verdict = if blueprint.paused {
        Verdict::new(Lifecycle::Paused, Reason::Paused, None)
    } else if let Some(kind) = waiting.first() {
        let name = kind.name_for(&blueprint.service.name);
        let detail = format!("waiting for the {} '{name}' of before, which is being deleted, to be gone", kind.word());
        Verdict::new(Lifecycle::UpdateInProgress, Reason::WaitingForDeletion, Some(detail))
    } else if let Some(obstacle) = obstacle {
        while_running(facts, obstacle)
    } else if actions.iter().any(|action| action.kind() == ChildKind::Deployment) {
        Verdict::new(Lifecycle::UpdateInProgress, Reason::UpdateInProgress, None)
    } else {
        workload::verdict(facts, blueprint.instances())
    };
    let address = blueprint.service.port.map(|port| address(&blueprint.service.name, blueprint.namespace, port));
    let writes = actions.iter().any(|action| action.kind() == ChildKind::HttpRoute);
    let route = Report::of_running(facts, exposure, writes);
    let database = database::status(facts, blueprint.service, true);
    let about = About { service: Some(blueprint.service), database, address, desired: blueprint.instances() };
    Report::tell(route.as_ref(), assemble(facts, verdict, about))
}

/// What is said of instances of before, where they run although no new ones may be started.
fn while_running(facts: &Facts<'_>, mut verdict: Verdict) -> Verdict {
    if facts.workload.is_some_and(|workload| workload.ready > 0) {
        verdict.detail = verdict.detail.map(|detail| format!("{detail}; running instances are left running"));
    }
    verdict
}

/// The status of a service of which nothing is started. A pause counts before any failure.
pub(crate) fn of_held(facts: &Facts<'_>, hold: &Hold, exposure: Option<&Exposure<'_>>) -> AnkkaServiceStatus {
    let paused = facts.service.spec.paused;
    let mut verdict = hold.verdict.clone();
    if matches!(verdict.reason, Reason::Incompatible | Reason::NoDatabaseServer) && !paused {
        verdict = while_running(facts, verdict);
    }
    if paused {
        verdict = Verdict { lifecycle: Lifecycle::Paused, reason: Reason::Paused, ..verdict };
    }
    let service = hold.service.as_deref();
    let desired = match service {
        _ if paused => 0,
        Some(service) => service.instances,
        None => facts.workload.map_or(0, |workload| workload.desired),
    };
    let made = facts.children.get(&ChildKind::Service).is_some_and(|seen| seen.owned_by(facts.uid()));
    let address = match service.map(|service| service.port) {
        _ if !made => None,
        Some(port) => port.map(|port| address(facts.name(), facts.namespace(), port)),
        None => old(facts).address,
    };
    let route = exposure.and_then(|exposure| Report::of_held(facts, exposure));
    let database = match service {
        None => old(facts).database,
        Some(service) => database::status(facts, service, false),
    };
    Report::tell(route.as_ref(), assemble(facts, verdict, About { service, database, address, desired }))
}

/// What is said beside the verdict.
struct About<'a> {
    /// The service, where it could be validated.
    service: Option<&'a ValidatedService>,
    database: Option<ProvisioningStatus>,
    address: Option<String>,
    /// Instances asked for.
    desired: i32,
}

fn assemble(facts: &Facts<'_>, verdict: Verdict, about: About<'_>) -> AnkkaServiceStatus {
    let old = old(facts);
    // While instances come and go the digest of before stays: it is said once, when they are there.
    let image_digest = match verdict.lifecycle {
        Lifecycle::Ready | Lifecycle::PartiallyReady => {
            workload::newest(facts.pods).iter().rev().filter(|pod| pod.ready).find_map(|pod| pod.image_digest.clone())
        }
        _ => old.image_digest,
    };
    let object_storage = match about.service {
        None => old.object_storage,
        Some(service) => object_storage(service, facts.settings.installation.store.is_some()),
    };
    let generation = facts.service.metadata.generation;
    let database = about.database.map(|said| logins::told(facts, said, verdict.is_held_up()));
    let mut conditions = conditions(&verdict, generation);
    conditions.extend(database.as_ref().and_then(|database| database::condition(facts, database)));
    conditions.extend(object_storage.as_ref().and_then(|storage| storage_condition(storage, generation)));
    AnkkaServiceStatus {
        observed_generation: generation,
        lifecycle: Some(verdict.lifecycle.word().to_owned()),
        detail: verdict.detail,
        ready_instances: facts.workload.map_or(0, |workload| i64::from(workload.ready)),
        desired_instances: i64::from(about.desired),
        address: about.address,
        route: None,
        image_digest,
        database,
        object_storage,
        conditions,
    }
}

fn old(facts: &Facts<'_>) -> AnkkaServiceStatus {
    facts.service.status.clone().unwrap_or_default()
}

fn address(service: &str, namespace: &str, port: u16) -> String {
    format!("http://{service}.{namespace}.svc.cluster.local:{port}")
}

fn object_storage(service: &ValidatedService, has_store: bool) -> Option<ProvisioningStatus> {
    let (phase, detail) = match service.storage {
        Storage::None => return None,
        Storage::Supplied => ("supplied", None),
        Storage::Provisioned { .. } if has_store => ("waiting for object storage", None),
        Storage::Provisioned { .. } => ("object storage provisioning failed", Some(NO_STORE.to_owned())),
    };
    Some(ProvisioningStatus { phase: phase.to_owned(), detail, former_logins: Vec::new() })
}

/// `Ready` always; `Reconciling` and `Stalled` only while they are true.
fn conditions(verdict: &Verdict, generation: Option<i64>) -> Vec<Condition> {
    let stuck = verdict.lifecycle == Lifecycle::Failed || verdict.reason == Reason::Incompatible;
    let (ready, also) = match verdict.lifecycle {
        Lifecycle::Ready | Lifecycle::Paused => ("True", None),
        _ if stuck => ("False", Some("Stalled")),
        Lifecycle::UpdateInProgress => ("Unknown", Some("Reconciling")),
        _ => ("False", Some("Reconciling")),
    };
    let message = verdict.detail.clone().unwrap_or_default();
    let mut conditions = vec![condition("Ready", ready, verdict.reason, message.clone(), generation)];
    conditions.extend(also.map(|type_| condition(type_, "True", verdict.reason, message, generation)));
    conditions
}

fn storage_condition(storage: &ProvisioningStatus, generation: Option<i64>) -> Option<Condition> {
    let (status, reason) = match storage.detail {
        _ if storage.phase == "supplied" => return None,
        Some(_) => ("False", Reason::NoObjectStore),
        None => ("Unknown", Reason::WaitingForObjectStorage),
    };
    Some(condition("StorageReady", status, reason, storage.detail.clone().unwrap_or_default(), generation))
}

/// One condition, without its time.
pub(crate) fn condition(
    type_: &str,
    status: &str,
    reason: Reason,
    message: String,
    generation: Option<i64>,
) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.word().to_owned(),
        message,
        observed_generation: generation,
        last_transition_time: String::new(),
    }
}
