//! The decision: from facts to an ordered list of actions and a status.

use ankka_crds::{AnkkaServiceStatus, Context, ValidatedService, compat, names, validate, validated};
use k8s_openapi::jiff::Timestamp;

use crate::database;
use crate::objects::{self, Blueprint};
use crate::revisions::{self, Recording};
use crate::route::Exposure;
use crate::status::{self, Hold, Reason};
use crate::{Cause, Child, ChildKind, Facts, Problem, Seen};
use crate::{logins, text, workload};

/// One write. Each is safe to repeat after a crash at any point.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// POST: an object of that name already there is somebody else's.
    Create(Child),
    /// Read, then PUT [`crate::merged`] with the UID and resourceVersion that were read; foreign labels and annotations stay.
    Update {
        /// UID of the object that was seen.
        uid: String,
        /// What it should be.
        child: Child,
    },
    /// Read the Deployment, then PUT [`crate::scaled`] with the UID and resourceVersion that were read: the number of
    /// instances changes and nothing else. For a service that cannot be rendered and is paused.
    Scale {
        /// Name of the Deployment.
        name: String,
        /// UID of the Deployment that was seen.
        uid: String,
        /// Instances.
        replicas: i32,
    },
    /// DELETE with the UID as precondition.
    Delete {
        /// Its kind.
        kind: ChildKind,
        /// Its name.
        name: String,
        /// UID of the object that was seen.
        uid: String,
    },
}

impl Action {
    /// The kind of object it writes.
    pub fn kind(&self) -> ChildKind {
        match self {
            Self::Create(child) | Self::Update { child, .. } => child.kind,
            Self::Scale { .. } => ChildKind::Deployment,
            Self::Delete { kind, .. } => *kind,
        }
    }
}

/// What to do about one service, and what to say about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Writes, in order.
    pub actions: Vec<Action>,
    /// Writes of the history, once everything else is done. A descriptor that breaks a rule is not kept: nobody could go
    /// back to it.
    pub recordings: Vec<Recording>,
    /// The status once they are done. Conditions carry no times: [`crate::with_times`] keeps the old one or sets the present.
    pub status: AnkkaServiceStatus,
    /// When there may be another thing to say although nothing has changed.
    pub review: Option<Timestamp>,
    /// The sidecar's image of before, when instances are to be replaced because the installation has another one and for no
    /// other reason: that may wait for its turn, and is decided anew with that image meanwhile.
    pub upgrade: Option<String>,
}

/// Decides about one service.
///
/// A service that is being deleted, or whose namespace is, is left as it is: what goes is the garbage collector's.
pub fn decide(facts: &Facts<'_>) -> Decision {
    if facts.service.metadata.deletion_timestamp.is_some() || facts.project.is_some_and(|project| project.terminating) {
        let status = facts.service.status.clone().unwrap_or_default();
        return Decision { actions: Vec::new(), recordings: Vec::new(), status, review: None, upgrade: None };
    }
    let judged = judge(facts);
    let is_valid = judged.as_ref().map_or_else(Hold::is_of_valid, |_| true);
    let recordings = if is_valid { revisions::recordings(facts) } else { Vec::new() };
    let decision = judged.and_then(|service| converge(facts, service));
    Decision { recordings, ..decision.unwrap_or_else(|hold| hold_still(facts, &hold)) }
}

/// The service as it can be run, or why nothing is started.
fn judge(facts: &Facts<'_>) -> Result<ValidatedService, Hold> {
    let name = facts.name();
    let project = project_of(facts)?;
    let context = Context { project: Some(project), installation: Some(&facts.settings.installation) };
    let service = validate(name, &facts.service.spec.service, context).map_err(|problems| {
        let messages: Vec<_> = problems.into_iter().map(|problem| problem.message).collect();
        Hold::failed(Reason::InvalidDescriptor, text::cut(&messages.join("; "), text::PROBLEMS_LIMIT))
    })?;

    if service.hosting != validated::Hosting::Embedded && facts.settings.sidecar_image.is_none() {
        return Err(Hold::failed(Reason::NoSidecarImage, "operator has no sidecar image").about(service));
    }
    if let Some(range) = compat::check(&service, &facts.settings.platform) {
        let told = Problem::new(Cause::Incompatible, range).told(facts.place());
        return Err(Hold::incompatible(told).about(service));
    }
    if let Some(detail) = database::refusal(facts, &service) {
        return Err(Hold::failed(Reason::NoDatabaseServer, detail).about(service));
    }
    if matches!(service.storage, validated::Storage::Provisioned { .. }) {
        let hold = match facts.settings.installation.store {
            None => Hold::failed(Reason::NoObjectStore, format!("object storage: {}", status::NO_STORE)),
            Some(_) => Hold::waiting(Reason::WaitingForObjectStorage),
        };
        return Err(hold.about(service));
    }
    Ok(service)
}

fn project_of<'a>(facts: &Facts<'a>) -> Result<&'a str, Hold> {
    let namespace = facts.namespace();
    let project = names::project_of(&facts.settings.prefix, namespace);
    match (project, facts.project) {
        (Some(project), Some(_)) => Ok(project),
        (Some(project), None) => Err(Hold::failed(
            Reason::NoProject,
            format!(
                "namespace '{namespace}' is no project's; create the project with: ankka projects create {project}"
            ),
        )),
        (None, _) => Err(Hold::failed(
            Reason::NoProject,
            format!(
                "namespace '{namespace}' is no project's; apply the service to a project, whose namespace is '{}-<project>'",
                facts.settings.prefix
            ),
        )),
    }
}

/// Makes the children what they should be, unless one of their names is somebody else's.
fn converge(facts: &Facts<'_>, service: ValidatedService) -> Result<Decision, Hold> {
    let uid = facts.uid();
    let exposure = Exposure::of(facts, project_of(facts)?);
    let blueprint = blueprint(facts, &service, &exposure);
    let wanted = objects::children(&blueprint);
    let strangers = strangers(facts, &service.name, &wanted);
    if !strangers.is_empty() {
        return Err(Hold::failed(Reason::NameTaken, strangers.join("; ")).about(service));
    }

    let obstacle = database::obstacle(facts, &service);
    let mut wanted = wanted.into_iter().peekable();
    let mut actions = Vec::new();
    let mut waiting = Vec::new();
    for kind in ChildKind::all() {
        let child = wanted.next_if(|child| child.kind == kind);
        match (child, facts.children.get(&kind)) {
            // Instances run without a route, and there is nothing to say but that it is pending.
            (Some(_), Some(seen)) if is_going(seen, &service.name, uid) && kind == ChildKind::HttpRoute => {}
            (Some(_), Some(seen)) if is_going(seen, &service.name, uid) => waiting.push(kind),
            // An instance that started now would hold an identity or settings that are about to go. A pause starts none.
            (Some(_), _)
                if kind == ChildKind::Deployment
                    && !blueprint.paused
                    && waiting.iter().copied().any(is_needed_to_start) => {}
            (Some(_), _) if kind == ChildKind::Deployment && obstacle.is_some() => actions.extend(pause(facts)),
            (Some(child), None) => actions.push(Action::Create(child)),
            (Some(child), Some(seen)) if !is_settled(facts, &blueprint, seen, &child) => {
                actions.push(Action::Update { uid: seen.uid.clone(), child });
            }
            (None, Some(seen)) if seen.owned_by(uid) && !seen.terminating => {
                actions.push(Action::Delete { kind, name: kind.name_for(&service.name), uid: seen.uid.clone() });
            }
            _ => {}
        }
    }
    let status = status::of_running(facts, &blueprint, &exposure, &actions, &waiting, obstacle);
    let upgrade = upgrade(facts, &blueprint, &actions);
    let review = workload::review(facts).into_iter().chain(logins::review(facts)).min();
    Ok(Decision { actions, recordings: Vec::new(), status, review, upgrade })
}

/// The sidecar's image of before, when the Deployment is what it should be but for that, and has instances to replace.
fn upgrade(facts: &Facts<'_>, blueprint: &Blueprint<'_>, actions: &[Action]) -> Option<String> {
    let updates =
        actions.iter().any(|action| matches!(action, Action::Update { .. }) && action.kind() == ChildKind::Deployment);
    let before = facts.workload?.sidecar.as_deref()?;
    if !updates || blueprint.instances() == 0 || blueprint.sidecar.is_none_or(|sidecar| sidecar == before) {
        return None;
    }
    let written = facts.children.get(&ChildKind::Deployment)?.rendered.as_deref()?;
    let of_before = objects::deployment(&Blueprint { sidecar: Some(before), ..blueprint.clone() });
    (of_before.rendered == written).then(|| before.to_owned())
}

/// Whether an object is what it should be. A database is asked for again when the request has not arrived; who wrote it last
/// does not matter, because nobody's request is taken back.
fn is_settled(facts: &Facts<'_>, blueprint: &Blueprint<'_>, seen: &Seen, child: &Child) -> bool {
    if child.kind != ChildKind::Database {
        return seen.settled(child);
    }
    let arrived =
        facts.database.map(|database| database.asked) == blueprint.database.as_ref().map(|wanted| wanted.asked);
    arrived && seen.is_labelled(child)
}

/// Objects that have the name of something the service wants and are somebody else's.
fn strangers(facts: &Facts<'_>, service: &str, wanted: &[Child]) -> Vec<String> {
    let (uid, namespace) = (facts.uid(), facts.namespace());
    let is_strange = |seen: &Seen| !seen.owned_by(uid) && !is_going(seen, service, uid);
    let taken = wanted.iter().filter(|child| facts.children.get(&child.kind).is_some_and(is_strange));
    let owned = taken.filter(|child| child.kind.is_owned());
    owned.map(|child| text::name_taken(child.kind, &child.name, namespace)).collect()
}

/// Whether the object is on its way out: it must be gone before ours can be made.
pub(crate) fn is_going(seen: &Seen, service: &str, uid: &str) -> bool {
    seen.terminating || seen.left_by_predecessor(service, uid)
}

fn is_needed_to_start(kind: ChildKind) -> bool {
    !matches!(kind, ChildKind::PodDisruptionBudget | ChildKind::Service | ChildKind::Deployment | ChildKind::HttpRoute)
}

/// Leaves everything as it is. Only a pause and the end of an exposure still take effect, without rendering anything.
fn hold_still(facts: &Facts<'_>, hold: &Hold) -> Decision {
    let exposure = project_of(facts).ok().map(|project| Exposure::of(facts, project));
    let closed = match &exposure {
        Some(exposure) => exposure.route().is_none(),
        None => !facts.service.spec.exposed,
    };
    let mut actions: Vec<_> = pause(facts).into_iter().collect();
    if let Some(seen) = ours(facts, ChildKind::HttpRoute).filter(|_| closed) {
        let kind = ChildKind::HttpRoute;
        actions.push(Action::Delete { kind, name: kind.name_for(facts.name()), uid: seen.uid.clone() });
    }
    let status = status::of_held(facts, hold, exposure.as_ref());
    Decision { actions, recordings: Vec::new(), status, review: logins::review(facts), upgrade: None }
}

/// What a pause takes where the Deployment cannot be rendered.
fn pause(facts: &Facts<'_>) -> Option<Action> {
    let seen = ours(facts, ChildKind::Deployment)?;
    let running = facts.workload.is_some_and(|workload| workload.desired != 0);
    (facts.service.spec.paused && running).then(|| Action::Scale {
        name: facts.name().to_owned(),
        uid: seen.uid.clone(),
        replicas: 0,
    })
}

/// The service's own object of this kind, unless it is on its way out.
fn ours<'a>(facts: &Facts<'a>, kind: ChildKind) -> Option<&'a Seen> {
    facts.children.get(&kind).filter(|seen| seen.owned_by(facts.uid()) && !seen.terminating)
}

fn blueprint<'a>(facts: &Facts<'a>, service: &'a ValidatedService, exposure: &Exposure<'a>) -> Blueprint<'a> {
    let settings = facts.settings;
    let namespace = facts.namespace();
    let mut pull_secrets: Vec<String> = Vec::new();
    let of_project = facts.project.map(|project| project.image_pull_secrets.as_slice()).unwrap_or_default();
    for name in settings.image_pull_secrets.iter().chain(of_project) {
        if !pull_secrets.contains(name) {
            pull_secrets.push(name.clone());
        }
    }
    Blueprint {
        service,
        project: names::project_of(&settings.prefix, namespace).unwrap_or_default(),
        namespace,
        uid: facts.uid(),
        generation: facts.service.metadata.generation.unwrap_or_default(),
        paused: facts.service.spec.paused,
        restarts: facts.service.spec.restarts,
        sidecar: settings.sidecar_image.as_deref().filter(|_| service.hosting != validated::Hosting::Embedded),
        pull_secrets,
        route: exposure.route().cloned(),
        database: database::wanted(facts, service),
        progress_deadline_seconds: settings.progress_deadline_seconds,
    }
}
