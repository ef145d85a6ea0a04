//! One instance, as small as the decision about it needs.

use ankka_crds::labels;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod};
use kube::ResourceExt;

/// What is known of one instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Instance {
    /// Its pod's name.
    pub(crate) name: String,
    /// Hash of the template it was made from.
    pub(crate) template: String,
    /// When it was made.
    pub(crate) created: Option<Timestamp>,
    /// Generation of the database login it was started with.
    pub(crate) login: i64,
    /// It takes requests.
    pub(crate) ready: bool,
    /// It is being stopped.
    pub(crate) terminating: bool,
    /// Every container runs.
    pub(crate) running: bool,
    /// How often the container that crashed most has crashed.
    pub(crate) crashes: i32,
    /// Why it is not ready, when the node or the scheduler says so.
    pub(crate) trouble: Option<Trouble>,
    /// The last lines it wrote before its last crash, once they were fetched.
    pub(crate) last_words: Option<String>,
}

/// Why an instance is not ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// One word of Kubernetes', e.g. `ErrImagePull`.
    pub(crate) reason: String,
    /// A sentence; may be empty.
    pub(crate) message: String,
    /// The container it is about; none when it is the whole instance.
    pub(crate) container: Option<String>,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.message.is_empty() {
            out.write_str(&self.reason)
        } else {
            write!(out, "{}: {}", self.reason, self.message)
        }
    }
}

impl Instance {
    /// Reads a pod.
    pub(crate) fn of(pod: &Pod) -> Self {
        let status = pod.status.clone().unwrap_or_default();
        let condition = |name: &str| status.conditions.iter().flatten().find(|condition| condition.type_ == name);
        let containers: Vec<_> =
            status.init_container_statuses.iter().chain(&status.container_statuses).flatten().collect();
        let ready = condition("Ready").is_some_and(|ready| ready.status == "True");
        let unscheduled =
            condition("PodScheduled").filter(|scheduled| scheduled.status == "False").map(|scheduled| Trouble {
                reason: scheduled.reason.clone().unwrap_or_else(|| "Unschedulable".to_owned()),
                message: scheduled.message.clone().unwrap_or_default(),
                container: None,
            });
        let evicted = status.reason.as_ref().map(|reason| Trouble {
            reason: reason.clone(),
            message: status.message.clone().unwrap_or_default(),
            container: None,
        });
        let trouble = containers.iter().find_map(|container| trouble(container)).or(unscheduled).or(evicted);
        Self {
            name: pod.name_any(),
            template: pod.labels().get("pod-template-hash").cloned().unwrap_or_default(),
            login: pod
                .annotations()
                .get(labels::DATABASE_CREDENTIAL)
                .and_then(|generation| generation.parse().ok())
                .unwrap_or_default(),
            created: pod.creation_timestamp().map(|time| time.0),
            ready,
            terminating: pod.metadata.deletion_timestamp.is_some(),
            running: !containers.is_empty() && containers.iter().all(|container| running(container)),
            crashes: containers.iter().map(|container| crashes(container)).max().unwrap_or_default(),
            trouble: trouble.filter(|_| !ready),
            last_words: None,
        }
    }

    /// What a person who waits for it should know.
    pub(crate) fn text(&self) -> String {
        match &self.trouble {
            _ if self.terminating => "stopping".to_owned(),
            _ if self.ready => "ready".to_owned(),
            Some(trouble) => trouble.to_string(),
            None if self.running => "running; its readiness probe has not passed yet".to_owned(),
            None => "starting".to_owned(),
        }
    }
}

fn running(container: &ContainerStatus) -> bool {
    container.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// A restarted container has crashed as often as it was restarted, and once more while it lies down.
fn crashes(container: &ContainerStatus) -> i32 {
    let down = match &container.state {
        Some(ContainerState { terminated: Some(ended), .. }) => ended.exit_code != 0,
        Some(ContainerState { waiting: Some(waiting), .. }) => waiting.reason.as_deref() == Some("CrashLoopBackOff"),
        _ => false,
    };
    container.restart_count + i32::from(down)
}

fn trouble(container: &ContainerStatus) -> Option<Trouble> {
    let named =
        |reason: String, message: String| Some(Trouble { reason, message, container: Some(container.name.clone()) });
    let last = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
    let state = container.state.as_ref()?;
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.clone().unwrap_or_default();
        let message = waiting.message.clone().unwrap_or_default();
        return match (reason.as_str(), last) {
            // Not trouble: the usual way to start.
            ("" | "ContainerCreating" | "PodInitializing", _) => None,
            ("CrashLoopBackOff", Some(last)) => named(reason, ended(last)),
            _ => named(reason, message),
        };
    }
    if let Some(terminated) = state.terminated.as_ref().filter(|ended| ended.exit_code != 0) {
        return named(terminated.reason.clone().unwrap_or_else(|| "Error".to_owned()), ended(terminated));
    }
    // It runs again after a crash.
    let last = last.filter(|last| container.restart_count > 0 && last.exit_code != 0)?;
    named("Restarted".to_owned(), ended(last))
}

fn ended(state: &k8s_openapi::api::core::v1::ContainerStateTerminated) -> String {
    let why = state
        .reason
        .as_deref()
        .filter(|reason| *reason != "Error")
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default();
    let message = state.message.as_deref().map(|message| format!(": {}", message.trim())).unwrap_or_default();
    format!("it ended with exit code {}{why}{message}", state.exit_code)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn instance(status: &Value) -> Instance {
        let pod = json!({
            "metadata": { "name": "cart-1", "creationTimestamp": "2026-11-30T12:00:05Z", "labels": { "pod-template-hash": "new" } },
            "status": status,
        });
        Instance::of(&serde_json::from_value(pod).expect("is a pod"))
    }

    fn container(state: &Value, last: &Value, restarts: i32) -> Instance {
        instance(&json!({ "containerStatuses": [{
            "name": "service", "image": "i", "imageID": "", "ready": false, "restartCount": restarts, "state": state, "lastState": last,
        }] }))
    }

    #[test]
    fn an_instance_says_what_it_is_waiting_for() {
        let ended = json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled" } });
        let table = [
            (instance(&json!({})), "starting"),
            (instance(&json!({ "conditions": [{ "type": "Ready", "status": "True" }] })), "ready"),
            (
                instance(
                    &json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available" }] }),
                ),
                "Unschedulable: 0/1 nodes are available",
            ),
            (container(&json!({ "waiting": { "reason": "ContainerCreating" } }), &json!({}), 0), "starting"),
            (container(&json!({ "running": {} }), &json!({}), 0), "running; its readiness probe has not passed yet"),
            (
                container(&json!({ "waiting": { "reason": "InvalidImageName", "message": "bad" } }), &json!({}), 0),
                "InvalidImageName: bad",
            ),
            (
                container(&json!({ "waiting": { "reason": "CrashLoopBackOff", "message": "back-off" } }), &ended, 1),
                "CrashLoopBackOff: it ended with exit code 137 (OOMKilled)",
            ),
            (container(&json!({ "running": {} }), &ended, 1), "Restarted: it ended with exit code 137 (OOMKilled)"),
        ];
        for (instance, text) in table {
            assert_eq!(instance.text(), text, "{instance:?}");
        }
    }

    #[test]
    fn crashes_are_counted_while_the_container_lies_down_and_after() {
        let down = json!({ "terminated": { "exitCode": 1 } });
        let waiting = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
        let running = json!({ "running": {} });
        for (state, restarts, crashes) in
            [(&running, 0, 0), (&down, 0, 1), (&running, 1, 1), (&waiting, 1, 2), (&waiting, 2, 3), (&running, 3, 3)]
        {
            assert_eq!(container(state, &json!({}), restarts).crashes, crashes, "{state} after {restarts} restarts");
        }
    }
}
