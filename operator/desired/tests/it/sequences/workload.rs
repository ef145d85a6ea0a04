//! A model of the Deployment controller, the nodes and what instances become: one instance comes or goes a turn.

use ankka_desired::{Cause, PodState, Problem, WorkloadState};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};

use super::step::BAD;

/// What there is of one Deployment.
#[derive(Clone, Debug, Default)]
pub(super) struct Workload {
    uid: String,
    /// The newest template last.
    sets: Vec<Set>,
    observed: i64,
    complete: bool,
    /// It was rolled out without an instance, and then scaled: Kubernetes sets that no deadline.
    scaled: bool,
    overdue: bool,
    refused: bool,
    made: usize,
}

#[derive(Clone, Debug)]
struct Set {
    hash: String,
    template: Value,
    instances: Vec<Instance>,
}

#[derive(Clone, Debug)]
struct Instance {
    number: usize,
    ready: bool,
    crashing: bool,
}

impl Set {
    fn ready(&self) -> usize {
        self.instances.iter().filter(|instance| instance.ready).count()
    }

    fn image(&self) -> &str {
        let containers = self.template["spec"]["containers"].as_array().expect("containers");
        let service = containers.iter().find(|container| container["name"] == "service").expect("a service");
        service["image"].as_str().unwrap_or_default()
    }

    /// Why an instance cannot start.
    fn obstacle(&self, login: bool) -> Option<&'static str> {
        if self.image().ends_with(BAD) {
            return Some("ImagePullBackOff: no such image");
        }
        let needs_login = self.template.to_string().contains(r#""name":"cart-db""#);
        (needs_login && !login).then_some("CreateContainerConfigError: secret \"cart-db\" not found")
    }
}

impl Workload {
    /// What there is before a Deployment that becomes what this one is.
    pub(super) fn fresh(&self) -> Self {
        Self { scaled: self.complete, ..Self::default() }
    }

    /// One step. False when there is nothing to do. `login`: whether the Secret with the database's login is there.
    pub(super) fn turn(&mut self, deployment: Option<&Value>, quota: Option<usize>, login: bool) -> bool {
        let Some(deployment) = deployment else {
            let was = !self.uid.is_empty();
            *self = Self { made: self.made, scaled: self.scaled, ..Self::default() };
            return was;
        };
        let moved = self.observe(deployment) || self.start(login) || self.grow_or_shrink(deployment, quota);
        self.overdue &= !moved;
        let desired = desired(deployment);
        if let [newest] = self.sets.as_slice()
            && newest.instances.len() == desired
            && newest.ready() == desired
            && !self.complete
        {
            (self.complete, self.overdue) = (true, false);
            return true;
        }
        moved
    }

    /// A rollout that goes nowhere is found to. False when there is none.
    pub(super) fn deadline(&mut self) -> bool {
        let stuck = !self.uid.is_empty() && !self.complete && !self.scaled && !self.overdue;
        self.overdue |= stuck;
        stuck
    }

    fn observe(&mut self, deployment: &Value) -> bool {
        let uid = deployment["metadata"]["uid"].as_str().unwrap_or_default();
        if self.uid != uid {
            *self = Self { uid: uid.to_owned(), made: self.made, scaled: self.scaled, ..Self::default() };
        }
        let generation = deployment["metadata"]["generation"].as_i64().unwrap_or_default();
        if self.observed == generation {
            return false;
        }
        self.observed = generation;
        let template = &deployment["spec"]["template"];
        match self.sets.iter().position(|set| set.template == *template) {
            Some(at) if at + 1 == self.sets.len() => {}
            Some(at) => {
                let set = self.sets.remove(at);
                self.sets.push(set);
                self.complete = false;
            }
            None => {
                let hash = format!("{:08x}", self.made + self.sets.len());
                self.sets.push(Set { hash, template: template.clone(), instances: Vec::new() });
                self.complete = false;
            }
        }
        true
    }

    /// An instance becomes ready.
    fn start(&mut self, login: bool) -> bool {
        for set in &mut self.sets {
            let startable = set.obstacle(login).is_none();
            let waiting = set.instances.iter_mut().find(|instance| !instance.ready && !instance.crashing);
            if let Some(instance) = waiting.filter(|_| startable) {
                instance.ready = true;
                return true;
            }
        }
        false
    }

    /// One more of the newest template, one fewer of another: never fewer ready ones than desired, and one too many at most.
    fn grow_or_shrink(&mut self, deployment: &Value, quota: Option<usize>) -> bool {
        let desired = desired(deployment);
        let total = self.total();
        let ready: usize = self.sets.iter().map(Set::ready).sum();
        let Some((newest, old)) = self.sets.split_last_mut() else { return false };
        let excess = |set: &mut Set, spare: bool| {
            let unready = set.instances.iter().position(|instance| !instance.ready);
            let last = spare.then(|| set.instances.len().checked_sub(1)).flatten();
            unready.or(last).map(|at| set.instances.remove(at)).is_some()
        };
        if newest.instances.len() > desired && excess(newest, true) {
            return true;
        }
        if old.iter_mut().any(|set| excess(set, ready > desired)) {
            return true;
        }
        let before = self.sets.len();
        let last = before - 1;
        let mut at = 0;
        self.sets.retain(|set| (!set.instances.is_empty(), at == last, at += 1).0 || at - 1 == last);
        if self.sets.len() < before {
            return true;
        }
        let surge = usize::from(before > 1);
        let Some(newest) = self.sets.last_mut() else { return false };
        let wanted = newest.instances.len() < desired && total < desired + surge;
        if wanted && quota.is_none_or(|quota| total < quota) {
            self.made += 1;
            newest.instances.push(Instance { number: self.made, ready: false, crashing: false });
            self.refused = false;
            return true;
        }
        let was = std::mem::replace(&mut self.refused, wanted);
        was != wanted
    }

    /// So many instances fail, the first ones.
    pub(super) fn crash(&mut self, count: usize) {
        for instance in self.sets.iter_mut().flat_map(|set| &mut set.instances).take(count) {
            (instance.ready, instance.crashing) = (false, true);
        }
    }

    /// Those that fail are well again.
    pub(super) fn heal(&mut self) {
        for instance in self.sets.iter_mut().flat_map(|set| &mut set.instances) {
            instance.crashing = false;
        }
    }

    fn total(&self) -> usize {
        self.sets.iter().map(|set| set.instances.len()).sum()
    }

    /// The Deployment with the status its controller writes, as the operator reads it.
    pub(super) fn state(&self, deployment: &Value) -> WorkloadState {
        let mut deployment = deployment.clone();
        if deployment["metadata"]["uid"] == *self.uid {
            deployment["status"] = self.status(desired(&deployment));
        }
        let deployment: Deployment = serde_json::from_value(deployment).expect("a Deployment");
        WorkloadState::of(&deployment)
    }

    fn status(&self, desired: usize) -> Value {
        let newest = self.sets.last().filter(|_| desired > 0 || self.total() > 0);
        let ready: usize = self.sets.iter().map(Set::ready).sum();
        let (progressing, reason) = match (self.overdue, self.complete || self.scaled) {
            (true, _) => ("False", "ProgressDeadlineExceeded"),
            (false, true) => ("True", "NewReplicaSetAvailable"),
            (false, false) => ("True", "ReplicaSetUpdated"),
        };
        let mut conditions =
            vec![json!({ "type": "Progressing", "status": progressing, "reason": reason, "message": "no progress" })];
        if self.refused {
            conditions.push(json!({ "type": "ReplicaFailure", "status": "True", "message": "exceeded quota" }));
        }
        json!({
            "observedGeneration": self.observed,
            "replicas": self.total(),
            "updatedReplicas": newest.map_or(0, |set| set.instances.len()),
            "readyReplicas": ready,
            "conditions": conditions,
        })
    }

    /// The instances, as the operator sees them.
    pub(super) fn pods(&self, login: bool) -> Vec<PodState> {
        let all = self.sets.iter().flat_map(|set| set.instances.iter().map(move |instance| (set, instance)));
        let problem = |text: &str| Some(Problem::new(Cause::Other, text));
        let pod = |(set, instance): (&Set, &Instance)| PodState {
            name: format!("cart-{}-{:05}", set.hash, instance.number),
            template: set.hash.clone(),
            created: format!(
                "2026-11-30T{:02}:{:02}:{:02}Z",
                10 + instance.number / 3600,
                instance.number / 60 % 60,
                instance.number % 60
            ),
            ready: instance.ready,
            terminating: false,
            problem: match () {
                () if instance.ready => None,
                () if instance.crashing => problem("CrashLoopBackOff: exit code 1"),
                () => set.obstacle(login).and_then(problem),
            },
            running: instance.ready,
            silent_since: None,
            restarts: i32::from(instance.crashing),
            login: None,
            image_digest: instance.ready.then(|| format!("sha256:{}", set.image())),
        };
        all.map(pod).collect()
    }
}

fn desired(deployment: &Value) -> usize {
    deployment["spec"]["replicas"].as_u64().and_then(|replicas| usize::try_from(replicas).ok()).unwrap_or(1)
}
