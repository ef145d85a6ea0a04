//! A cluster with one service in it, and everybody who works on that.

use std::collections::{BTreeMap, VecDeque};

use ankka_crds::labels::ROLLED_BACK_TO;
use ankka_crds::{AnkkaService, AnkkaServiceSpec, AnkkaServiceStatus, ServiceSpec, digest, history, names};
use ankka_desired::revisions::{Recording, RevisionSeen, renewed};
use ankka_desired::{Action, ChildKind, Claim, ProjectFacts, RouteState, Seen, Settings, with_times};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::database::Databases;
use super::gateway::Gateway;
use super::step::{Change as Surroundings, Command, Controller, Fault, Pass};
use super::store::{self, Answer, Change};
use super::workload::Workload;
use crate::support::model::{Api, Refused};
use crate::support::{NAMESPACE, World, settings, told};

/// Observations that are remembered.
const REMEMBERED: usize = 8;

/// Everything there is.
pub(super) struct Cluster {
    pub(super) api: Api,
    pub(super) service: Option<AnkkaService>,
    /// ControllerRevisions with descriptors, by name.
    pub(super) kept: BTreeMap<String, Value>,
    pub(super) databases: Databases,
    pub(super) workload: Workload,
    pub(super) gateway: Gateway,
    pub(super) quota: Option<usize>,
    /// Objects of others that have a child's name, as they were made.
    pub(super) strangers: BTreeMap<ChildKind, Value>,
    /// Children that a write of the operator's found nothing to change in, by resourceVersion. It forgets them when it ends.
    confirmed: BTreeMap<ChildKind, Value>,
    settings: Settings,
    project: bool,
    routes_served: bool,
    rival: Option<Claim>,
    /// What the operator has observed, newest first; none while there was no service.
    observed: VecDeque<Option<World>>,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            api: Api::default(),
            service: None,
            kept: BTreeMap::new(),
            databases: Databases::default(),
            workload: Workload::default(),
            gateway: Gateway::default(),
            quota: None,
            strangers: BTreeMap::new(),
            confirmed: BTreeMap::new(),
            settings: settings(),
            project: true,
            routes_served: true,
            rival: None,
            observed: VecDeque::new(),
        }
    }
}

impl Cluster {
    /// The same installation with nothing in it but the service as it is asked for, and what outlives services.
    pub(super) fn fresh(&self, spec: &AnkkaServiceSpec) -> Self {
        let mut api = Api::default();
        api.adopt(ChildKind::Database, &self.api);
        let metadata = self.service.as_ref().map(|service| service.metadata.clone()).unwrap_or_default();
        let service = AnkkaService { metadata, spec: spec.clone(), status: None };
        Self {
            api,
            service: Some(service),
            databases: self.databases.clone(),
            settings: self.settings.clone(),
            workload: self.workload.fresh(),
            ..Self::default()
        }
    }

    /// Generation of the login that is in place, once there is one.
    pub(super) fn in_place(&self) -> Option<i64> {
        let status = self.databases.stored(&self.api.get(ChildKind::Database)?).status?;
        status.secret.map(|_| status.credential_generation)
    }

    /// Somebody applies a descriptor: everything beside it stays as it is.
    pub(super) fn apply(&mut self, descriptor: ServiceSpec, rolled_back_to: Option<i64>) -> Answer {
        let mut wanted = self.service.clone().unwrap_or_else(|| {
            let mut service = AnkkaService::new("cart", AnkkaServiceSpec::default());
            service.metadata.namespace = Some(NAMESPACE.to_owned());
            service
        });
        wanted.spec.service = descriptor;
        if let Some(generation) = rolled_back_to {
            let annotations = wanted.metadata.annotations.get_or_insert_default();
            annotations.insert(ROLLED_BACK_TO.to_owned(), generation.to_string());
        }
        self.store(Change { wanted, version: None })
    }

    /// A command made from what `read` was; `again`: whoever is refused reads anew and tries again.
    pub(super) fn command(&mut self, read: Option<AnkkaService>, command: Command, again: bool) -> Answer {
        let in_place = self.in_place();
        let Some(change) = read.and_then(|read| store::command(&read, command, in_place)) else {
            return Answer::Unchanged;
        };
        match self.store(change) {
            Answer::Conflict if again => self.command(self.service.clone(), command, false),
            answer => answer,
        }
    }

    /// The generation and descriptor of the so many-th change in the history that had another descriptor than now.
    pub(super) fn earlier(&self, number: usize) -> Option<(i64, ServiceSpec)> {
        let service = self.service.as_ref()?;
        let changes = history::of(service);
        let present = digest::of_descriptor("cart", &service.spec.service);
        let change = changes.iter().filter(|change| change.digest != present).nth(number)?;
        Some((change.generation, self.kept(&change.digest)?))
    }

    /// The descriptor that is kept under this digest.
    pub(super) fn kept(&self, digest: &str) -> Option<ServiceSpec> {
        let revision = self.kept.get(&names::revision("cart", digest))?;
        serde_json::from_value(revision["data"]["service"].clone()).ok()
    }

    fn store(&mut self, change: Change) -> Answer {
        let now = self.api.time();
        store::store(&mut self.service, change, || self.api.tick(), &now)
    }

    /// The operator learns what there is.
    pub(super) fn observe(&mut self) {
        let world = self.service.as_ref().map(|service| self.world(service));
        self.observed.push_front(world);
        self.observed.truncate(REMEMBERED);
    }

    fn world(&self, service: &AnkkaService) -> World {
        let deployment = self.api.get(ChildKind::Deployment);
        let route = self.api.get(ChildKind::HttpRoute);
        let database = self.api.get(ChildKind::Database);
        let login = self.databases.secret.is_some();
        World {
            service: service.clone(),
            now: self.api.time().parse().expect("a time"),
            project: self.project.then(ProjectFacts::default),
            settings: self.settings.clone(),
            children: self.seen(),
            workload: deployment.map(|deployment| self.workload.state(&deployment)),
            database: database.map(|database| ankka_desired::DatabaseState::of(&self.databases.stored(&database))),
            pods: self.workload.pods(login),
            routes_served: self.routes_served,
            route: route.map(|route| self.gateway.state(&route)),
            rivals: self.rival.iter().cloned().collect(),
            revisions: self.kept.values().map(|kept| RevisionSeen::of(&metadata(kept))).collect(),
        }
    }

    fn seen(&self) -> BTreeMap<ChildKind, Seen> {
        let mut seen = self.api.seen();
        for (kind, version) in &self.confirmed {
            let live = self.api.get(*kind).filter(|live| live["metadata"]["resourceVersion"] == *version);
            if let Some(seen) = live.and(seen.get_mut(kind)) {
                (seen.own, seen.foreign) = Default::default();
            }
        }
        seen
    }

    /// The service as it was observed so long ago.
    pub(super) fn read_before(&self, age: usize) -> Option<AnkkaService> {
        self.observed_before(age).map(|world| world.service.clone())
    }

    fn observed_before(&self, age: usize) -> Option<&World> {
        self.observed.get(age.min(self.observed.len().checked_sub(1)?))?.as_ref()
    }

    /// One pass of the operator, over what it saw.
    pub(super) fn pass(&mut self, pass: Pass) {
        let (service, others) = (self.observed_before(pass.service), self.observed_before(pass.others));
        let (Some(service), Some(others)) = (service, others) else { return };
        let world = World { service: service.service.clone(), settings: self.settings.clone(), ..others.clone() };
        let decision = world.decide();
        for (at, action) in decision.actions.iter().enumerate() {
            let (send, go_on) = match pass.fault {
                Some(Fault::Before(fault)) if fault == at => (0, false),
                Some(Fault::After(fault)) if fault == at => (1, false),
                Some(Fault::ReplyLost(fault)) if fault == at => (2, false),
                _ => (1, true),
            };
            let done = (0..send).all(|_| self.act(action).is_ok());
            if !go_on {
                self.confirmed.clear();
            }
            if !done || !go_on {
                return;
            }
        }
        self.report(&world, decision.status);
        for recording in decision.recordings {
            if !self.record(recording) {
                return;
            }
        }
    }

    /// Writes the status, unless it is about another state of the service than the stored one.
    fn report(&mut self, world: &World, status: AnkkaServiceStatus) {
        let (Some(stored), now) = (&mut self.service, self.api.time()) else { return };
        let seen = &world.service.metadata;
        if stored.metadata.uid == seen.uid
            && stored.metadata.resource_version == seen.resource_version
            && let Some(status) = with_times(stored.status.as_ref(), status, &now)
        {
            stored.status = Some(status);
            stored.metadata.resource_version = Some(self.api.tick().to_string());
        }
    }

    /// Keeps a descriptor or lets one go. False when it is not as it was seen.
    fn record(&mut self, recording: Recording) -> bool {
        match recording {
            Recording::Create { name, mut body } => {
                body["metadata"]["uid"] = json!(format!("uid-{}", self.api.tick()));
                self.kept.insert(name, body).is_none()
            }
            Recording::Renew { name, uid, generation } => {
                let live = self.kept.get_mut(&name).filter(|live| live["metadata"]["uid"] == uid);
                let body = live.as_deref().map(|live| renewed(live, generation));
                self.api.tick();
                live.zip(body).map(|(live, body)| *live = body).is_some()
            }
            Recording::Delete { name, uid } => {
                self.api.tick();
                let is = |live: &Value| live["metadata"]["uid"] == uid;
                self.kept.get(&name).is_some_and(is) && self.kept.remove(&name).is_some()
            }
        }
    }

    /// Carries out an action, and sees to it that it may be carried out at all.
    fn act(&mut self, action: &Action) -> Result<(), Refused> {
        let kind = action.kind();
        if kind == ChildKind::HttpRoute && !self.routes_served {
            return Err(Refused::NotFound);
        }
        if let Action::Create(child) = action
            && kind == ChildKind::Deployment
            && child.body.to_string().contains(r#""name":"cart-db""#)
        {
            assert!(self.in_place().is_some() || self.databases.secret.is_some(), "instances before their login");
        }
        let writes = self.api.writes;
        let done = self.api.act(action);
        if done.is_ok() && self.api.writes == writes {
            self.confirmed.extend(self.api.get(kind).map(|live| (kind, live["metadata"]["resourceVersion"].clone())));
        }
        assert!(!(kind == ChildKind::Database && matches!(action, Action::Delete { .. })), "data was deleted");
        let changed = self.strangers.iter().find(|(kind, body)| self.api.get(**kind).as_ref() != Some(body));
        assert_eq!(changed, None, "{action:?} is about somebody else's object");
        done
    }

    /// Somebody else does one step. False when there was nothing to do.
    pub(super) fn turn(&mut self, controller: Controller) -> bool {
        let login = self.databases.secret.is_some();
        match controller {
            Controller::Workload => self.workload.turn(self.api.get(ChildKind::Deployment).as_ref(), self.quota, login),
            Controller::Deadline => self.workload.deadline(),
            Controller::Garbage => {
                let before = self.api.state().len();
                let present = self.service.as_ref().and_then(|service| service.metadata.uid.clone());
                let present = present.unwrap_or_default();
                self.api.collect_garbage(&present);
                let kept = self.kept.len();
                self.kept.retain(|_, revision| revision["metadata"]["ownerReferences"][0]["uid"] == present);
                self.api.state().len() < before || self.kept.len() < kept
            }
            Controller::Database => self.databases.turn(self.api.get(ChildKind::Database).as_ref()),
            Controller::Gateway => self.gateway.turn(self.api.get(ChildKind::HttpRoute).as_ref()),
        }
    }

    /// What surrounds the service changes.
    pub(super) fn surround(&mut self, change: Surroundings) {
        match change {
            Surroundings::Quota(quota) => self.quota = quota,
            Surroundings::Crash(count) => self.workload.crash(count),
            Surroundings::Heal => self.workload.heal(),
            Surroundings::DatabaseServer(up) => self.databases.up = up,
            Surroundings::Gateway(accepts) => self.gateway.accepts = accepts,
            Surroundings::GatewayApi(served) => {
                self.routes_served = served;
                if !served {
                    self.api.remove(ChildKind::HttpRoute);
                    self.strangers.remove(&ChildKind::HttpRoute);
                }
            }
            Surroundings::Rival(rival) => self.rival = rival.and_then(claim),
            Surroundings::Project(is) => self.project = is,
            Surroundings::Sidecar(version) => {
                self.settings.sidecar_image = Some(format!("registry.example.com/ankka/sidecar:0.2.{version}"));
            }
        }
    }

    /// Everything that stood in the way is gone.
    pub(super) fn calm(&mut self) {
        let calm = [
            Surroundings::Quota(None),
            Surroundings::Heal,
            Surroundings::DatabaseServer(true),
            Surroundings::Gateway(true),
            Surroundings::GatewayApi(true),
            Surroundings::Rival(None),
            Surroundings::Project(true),
        ];
        for change in calm {
            self.surround(change);
        }
        self.vacate();
    }

    /// Every object without an owner goes, apart from what outlives services.
    pub(super) fn vacate(&mut self) {
        for (kind, body) in self.api.state() {
            if kind != ChildKind::Database && body["metadata"]["ownerReferences"][0].is_null() {
                self.api.remove(kind);
            }
        }
        if self.strangers.remove(&ChildKind::Database).is_some() {
            self.api.remove(ChildKind::Database);
        }
        self.strangers.clear();
    }

    /// Works until nobody has anything left to do.
    pub(super) fn settle(&mut self) {
        use Controller::{Database, Deadline, Garbage, Gateway, Workload};
        for _ in 0..50 {
            while [Garbage, Workload, Database, Gateway].map(|controller| self.turn(controller)) != [false; 4] {}
            let before = (self.api.writes, self.confirmed.clone());
            self.observe();
            self.pass(Pass { service: 0, others: 0, fault: None });
            if (self.api.writes, &self.confirmed) == (before.0, &before.1) && !self.turn(Deadline) {
                return;
            }
        }
        let left = self.observed_before(0).map(|world| told(&world.decide().actions));
        panic!("it does not come to rest: {left:?}");
    }
}

fn metadata(object: &Value) -> ObjectMeta {
    serde_json::from_value(object["metadata"].clone()).expect("metadata")
}

/// What an older service claims, with a route of its own or without.
fn claim(routed: bool) -> Option<Claim> {
    let mut rival = AnkkaService::new("rival", AnkkaServiceSpec { exposed: true, ..Default::default() });
    rival.metadata =
        serde_json::from_value(json!({ "creationTimestamp": "2026-11-01T00:00:00Z", "uid": "rival" })).ok()?;
    let route = RouteState { created: "2026-11-01T00:00:00Z".to_owned(), ..Default::default() };
    Claim::of(&rival, routed.then_some(&route))
}
