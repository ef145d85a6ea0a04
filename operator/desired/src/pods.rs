//! How a pod is doing, and why it is not ready.
//!
//! `terminated.message` is never read: with `FallbackToLogsOnError` it holds the end of the log, and what a program logs is
//! not the platform's to publish.

use ankka_crds::names::SERVICE_CONTAINER;
use ankka_crds::{labels, names};
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, EnvVar, Pod, PodStatus};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::cause::Missing;
use crate::facts::created;
use crate::objects::{DATABASE_USER, MANAGEMENT_PORT, READY_MISSES, READY_PATH, READY_PERIOD};
use crate::text;
use crate::{Cause, PodState, Problem};

/// How long an instance may run without being ready before that is said.
const PATIENCE: SignedDuration = SignedDuration::from_secs(READY_PERIOD as i64 * READY_MISSES as i64);

impl PodState {
    /// What of a pod the status needs.
    pub fn of(pod: &Pod) -> Self {
        let meta = &pod.metadata;
        let status = pod.status.clone().unwrap_or_default();
        let template = meta.labels.as_ref().and_then(|labels| labels.get("pod-template-hash"));
        let containers = status.container_statuses.as_deref().unwrap_or_default();
        let ready = condition_is(&status, "Ready", "True");
        let running = !containers.is_empty() && containers.iter().all(|container| state(container).running.is_some());
        let started = containers.iter().filter_map(|container| Some(state(container).running?.started_at?.0));
        Self {
            name: meta.name.clone().unwrap_or_default(),
            template: template.cloned().unwrap_or_default(),
            created: created(meta),
            ready,
            terminating: meta.deletion_timestamp.is_some(),
            problem: if ready { None } else { problem(pod, &status) },
            running,
            silent_since: if ready || !running { None } else { started.max() },
            restarts: containers.iter().map(|container| container.restart_count).sum(),
            login: login(pod),
            image_digest: containers
                .iter()
                .find(|container| container.name == SERVICE_CONTAINER)
                .and_then(|container| image_digest(&container.image_id)),
        }
    }

    /// Why the pod is not ready, for a pod that has had its time: its node's word, or that it runs and does not answer.
    pub fn overdue_problem(&self) -> Option<Problem> {
        let unanswered = || {
            (self.running && !self.ready).then(|| {
                let name = &self.name;
                let text = format!(
                    "NotReady: instance {name} is running but does not answer GET {READY_PATH} on port {MANAGEMENT_PORT}"
                );
                Problem::new(Cause::Silent, text)
            })
        };
        self.problem.clone().or_else(unanswered)
    }

    /// When the pod will have missed as many probes in a row as take an instance out of service. Its node counts the same
    /// misses; nothing has to be asked for to know of them.
    pub(crate) fn silent_at(&self) -> Option<Timestamp> {
        self.silent_since?.checked_add(PATIENCE).ok()
    }
}

/// The generation of the database login that the pod was made for. A container that was started again since has read a later
/// one, which nothing says: it counts as what it was made for.
fn login(pod: &Pod) -> Option<i64> {
    let meta = &pod.metadata;
    let secret = names::database_secret(meta.labels.as_ref()?.get(labels::SERVICE)?);
    let reads = |variable: &EnvVar| {
        let source = variable.value_from.as_ref().and_then(|source| source.secret_key_ref.as_ref());
        variable.name == DATABASE_USER && source.is_some_and(|source| source.name == secret)
    };
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    if !containers.flat_map(|container| container.env.iter().flatten()).any(reads) {
        return None;
    }
    let annotation = meta.annotations.as_ref().and_then(|annotations| annotations.get(labels::DATABASE_CREDENTIAL));
    annotation.map_or(Some(0), |generation| generation.parse().ok())
}

fn problem(pod: &Pod, status: &PodStatus) -> Option<Problem> {
    // The node gave the whole pod up, e.g. `Evicted`.
    if status.phase.as_deref() == Some("Failed")
        && let Some(reason) = &status.reason
    {
        return Some(Problem::new(Cause::Evicted, text::reason(reason, status.message.as_deref())));
    }
    let unscheduled = status.conditions.iter().flatten().find(|condition| {
        condition.type_ == "PodScheduled" && condition.status == "False" && condition.reason.is_some()
    });
    if let Some(condition) = unscheduled {
        let reason = condition.reason.as_deref().unwrap_or_default();
        return Some(Problem::new(Cause::Unschedulable, text::reason(reason, condition.message.as_deref())));
    }
    let init = status.init_container_statuses.iter().flatten();
    init.chain(status.container_statuses.iter().flatten()).find_map(|container| container_problem(pod, container))
}

fn container_problem(pod: &Pod, container: &ContainerStatus) -> Option<Problem> {
    let state = state(container);
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.as_deref().unwrap_or_default();
        let message = waiting.message.as_deref();
        return match reason {
            "" | "ContainerCreating" | "PodInitializing" => None,
            // The two take turns for as long as the image cannot be pulled; the second one carries the words of the first.
            "ErrImagePull" | "ImagePullBackOff" => {
                let cause =
                    message.map(|message| message.split_once("ErrImagePull: ").map_or(message, |(_, cause)| cause));
                Some(Problem::new(Cause::Image, text::reason("ImagePullBackOff", cause)))
            }
            "CrashLoopBackOff" => {
                let end = last_end(container);
                let why = end.and_then(|end| end.reason.as_deref()).map(|why| format!(" ({why})")).unwrap_or_default();
                let told = text::reason(reason, Some(&format!("{}{why}", ended(container, end))));
                Some(Problem::new(cause_of(end), told))
            }
            "CreateContainerConfigError" => {
                Some(misconfigured(pod, &container.name, reason, message.unwrap_or_default()))
            }
            "InvalidImageName" => Some(Problem::new(Cause::ImageName, text::reason(reason, message))),
            _ => Some(Problem::new(Cause::Other, text::reason(reason, message))),
        };
    }
    // Between two starts, or started again and not ready yet: the last end is still the reason.
    let end = state.terminated.as_ref().or_else(|| (!container.ready).then(|| last_end(container))?)?;
    if end.exit_code == 0 && state.terminated.is_none() {
        return None;
    }
    let told = text::reason(end.reason.as_deref().unwrap_or("Error"), Some(&ended(container, Some(end))));
    Some(Problem::new(cause_of(Some(end)), told))
}

fn cause_of(end: Option<&ContainerStateTerminated>) -> Cause {
    match end {
        Some(end) if is_of_another_architecture(end) => Cause::Architecture,
        Some(end) if end.reason.as_deref() == Some("OOMKilled") => Cause::Memory,
        _ => Cause::Crash,
    }
}

/// Whether the program is for another processor. The runtime says so when it starts the program; where the program's own
/// process is the first to find out, its complaint is all there is in the log.
fn is_of_another_architecture(end: &ContainerStateTerminated) -> bool {
    const COMPLAINT: &str = "exec format error";
    let message = end.message.as_deref().unwrap_or_default().trim_end();
    let of_the_runtime = end.reason.as_deref() == Some("StartError") && message.contains(COMPLAINT);
    let program = message.strip_prefix("exec ").and_then(|rest| rest.strip_suffix(COMPLAINT)?.strip_suffix(": "));
    of_the_runtime || program.is_some_and(|program| !program.contains('\n'))
}

/// How the container ended, in our own words.
fn ended(container: &ContainerStatus, end: Option<&ContainerStateTerminated>) -> String {
    let name = &container.name;
    let end = match end {
        None => format!("container {name} does not stay up"),
        Some(end) if is_of_another_architecture(end) => format!(
            "container {name} could not be started, exit code {}: its program is built for another architecture (exec format \
             error)",
            end.exit_code
        ),
        Some(end) if end.reason.as_deref() == Some("StartError") => {
            format!("container {name} could not be started, exit code {}", end.exit_code)
        }
        Some(end) => format!("container {name} ended with exit code {}", end.exit_code),
    };
    match container.restart_count {
        0 => end,
        1 => format!("{end}, restarted once"),
        times => format!("{end}, restarted {times} times"),
    }
}

/// What a node says of a container that it cannot configure: mostly that an entry of a Secret is missing.
fn misconfigured(pod: &Pod, container: &str, reason: &str, message: &str) -> Problem {
    if let Some(secret) = missing_secret(message) {
        let reader = reader_of(pod, container, secret);
        let read = reader.as_ref().map(|(key, variable)| format!(", whose key \"{key}\" env var {variable} reads"));
        let told = text::reason(reason, Some(&format!("{message}{}", read.unwrap_or_default())));
        return Problem::missing(Missing { secret: secret.to_owned(), key: reader.map(|(key, _)| key) }, told);
    }
    let told = text::reason(reason, Some(message));
    match missing_key(message) {
        Some((key, secret)) => Problem::missing(Missing { secret: secret.to_owned(), key: Some(key.to_owned()) }, told),
        None => Problem::new(Cause::Other, told),
    }
}

/// The Secret that a node says is missing; a node names the key only when the Secret is there.
fn missing_secret(message: &str) -> Option<&str> {
    message.strip_prefix("secret \"")?.strip_suffix("\" not found")
}

/// The key that a node says is missing, and the Secret that lacks it.
fn missing_key(message: &str) -> Option<(&str, &str)> {
    let (key, secret) = message.strip_prefix("couldn't find key ")?.split_once(" in Secret ")?;
    Some((key, secret.split_once('/')?.1))
}

/// Which key of the Secret the container reads, and the variable that does.
fn reader_of(pod: &Pod, container: &str, secret: &str) -> Option<(String, String)> {
    let containers = &pod.spec.as_ref()?.containers;
    let env = containers.iter().find(|candidate| candidate.name == container)?.env.as_deref()?;
    env.iter().find_map(|variable| {
        let read = variable.value_from.as_ref()?.secret_key_ref.as_ref()?;
        (read.name == secret).then(|| (read.key.clone(), variable.name.clone()))
    })
}

fn last_end(container: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    container.last_state.as_ref()?.terminated.as_ref()
}

fn state(container: &ContainerStatus) -> ContainerState {
    container.state.clone().unwrap_or_default()
}

fn condition_is(status: &PodStatus, type_: &str, wanted: &str) -> bool {
    status.conditions.iter().flatten().any(|condition| condition.type_ == type_ && condition.status == wanted)
}

/// The digest in an image id as nodes report it: `registry/image@sha256:…`, or the bare digest of an imported image.
fn image_digest(image_id: &str) -> Option<String> {
    let digest = image_id.rsplit_once('@').map_or(image_id, |(_, digest)| digest);
    digest.starts_with("sha256:").then(|| digest.to_owned())
}
