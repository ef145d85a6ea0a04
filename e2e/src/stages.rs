//! Every stage of our resources as the controllers' own code says it: what tools of others are asked to read.

use std::collections::BTreeMap;

use ankka_crds::{
    AnkkaDatabase, AnkkaProject, AnkkaService, AnkkaServiceSpec, Installation,
    compat::Platform,
    resources::{AnkkaDatabaseSpec, AnkkaDatabaseStatus, AnkkaProjectSpec, NOT_OBSERVED},
};
use ankka_database::status::{Outcome, told, with_times};
use ankka_desired::{
    Action, Cause, DatabaseServer, DatabaseState, Facts, Gateway, PodState, Problem, ProjectFacts, RouteFacts, Seen,
    Settings, WorkloadState, decide,
    project::{self, NamespaceSeen},
};
use anyhow::{Context, Result};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::paths::workspace;

const UID: &str = "0a1b2c3d-0000-4444-8888-00000000000f";

/// One stage of one resource.
#[derive(Clone, Debug)]
pub struct Stage {
    /// What is the case, as the documentation calls it.
    pub name: &'static str,
    /// The object as it is stored then.
    pub object: Value,
}

/// All stages, in the order of the documentation.
pub fn all() -> Vec<Stage> {
    [services(), projects(), databases()].into_iter().flatten().collect()
}

/// What `docs/reference/statuses.md` says of one stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// What is the case.
    pub stage: String,
    /// The word of a service; empty where there is none.
    pub lifecycle: String,
    /// `Type=Status Reason` of each condition.
    pub conditions: String,
    /// Whether `kubectl wait --for=condition=Ready` ends.
    pub kubectl: String,
    /// What kstatus computes.
    pub kstatus: String,
    /// What Argo CD shows with the health check of the documentation.
    pub argo: String,
}

/// The table of the documentation.
///
/// # Errors
/// When it cannot be read.
pub fn documented() -> Result<Vec<Row>> {
    let path = workspace().join("docs/reference/statuses.md");
    let page = std::fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<_> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").map(str::trim).collect();
        let [stage, lifecycle, conditions, kubectl, kstatus, argo] = cells.try_into().ok()?;
        let text = |cell: &str| cell.replace('`', "");
        Some(Row {
            stage: text(stage),
            lifecycle: text(lifecycle),
            conditions: text(conditions),
            kubectl: text(kubectl),
            kstatus: text(kstatus),
            argo: text(argo),
        })
    });
    Ok(rows.skip_while(|row| row.stage != "Stage").skip(1).collect())
}

fn stage(name: &'static str, object: &impl serde::Serialize) -> Stage {
    Stage { name, object: serde_json::to_value(object).expect("resources have string keys only") }
}

/// An object that nobody has looked at, as the API server fills in its status.
fn unobserved(name: &'static str, object: &impl serde::Serialize) -> Stage {
    let mut stage = stage(name, object);
    stage.object["status"] = json!({ "observedGeneration": NOT_OBSERVED });
    stage
}

fn deleted(metadata: &mut ObjectMeta) {
    metadata.deletion_timestamp = Some(Time("2026-11-30T12:00:00Z".parse().expect("a time")));
}

fn services() -> Vec<Stage> {
    let running = |ready| workload(3, 3, ready);
    let problem = PodState {
        name: "cart-1".to_owned(),
        template: "new".to_owned(),
        problem: Some(Problem::new(Cause::Image, "ImagePullBackOff: manifest unknown")),
        ..PodState::default()
    };
    let late = WorkloadState { deadline_exceeded: Some("timed out".to_owned()), ..workload(4, 1, 3) };
    let ready = World::new(json!({})).settled(running(3));
    let mut behind = ready.told();
    behind.metadata.generation = Some(2);
    let mut going = ready.told();
    deleted(&mut going.metadata);
    let paused = World { paused: true, ..World::new(json!({})) };
    let paused = paused.settled(WorkloadState { desired: 0, ..workload(0, 0, 0) });
    let foreign = json!({ "runtime": "9.0.0" });
    vec![
        unobserved("a service that nobody has looked at", &World::new(json!({})).service()),
        stage("a new service", &World::new(json!({})).told()),
        stage("its instances start", &World::new(json!({})).settled(starting(running(0))).told()),
        stage("all instances are ready", &ready.told()),
        stage("a change that nobody has looked at", &behind),
        stage("new instances replace old ones", &World::new(json!({})).settled(workload(4, 1, 3)).told()),
        stage(
            "a new instance meets an obstacle",
            &World { pods: vec![problem], ..World::new(json!({})).settled(workload(4, 1, 3)) }.told(),
        ),
        stage("the rollout made no progress in time", &World::new(json!({})).settled(late).told()),
        stage("some instances are down", &World::new(json!({})).settled(running(2)).told()),
        stage("all instances are down", &World::new(json!({})).settled(running(0)).told()),
        stage("paused", &paused.told()),
        stage("the descriptor is invalid", &World::new(json!({ "image": "" })).told()),
        stage("built for another platform, nothing runs", &World::new(foreign.clone()).told()),
        stage("built for another platform, running", &World::new(foreign).running(running(3)).told()),
        stage("in no project's namespace", &World { project: None, ..World::new(json!({})) }.told()),
        stage("it waits for its database", &World::with_database("waiting for database").told()),
        stage("its database cannot be made", &World::with_database("database provisioning failed").told()),
        stage(
            "the installation has no database server",
            &World { server: DatabaseServer::None, ..World::new(json!({ "env": [] })) }.told(),
        ),
        stage(
            "ready, its route is rejected",
            &World { exposed: true, ..World::new(json!({})) }.settled(running(3)).told(),
        ),
        stage("a service that is being deleted", &going),
    ]
}

/// A service of three instances, `total` pods of which `updated` are of the newest template.
fn workload(total: i32, updated: i32, ready: i32) -> WorkloadState {
    WorkloadState {
        generation: 1,
        observed_generation: 1,
        desired: 3,
        total,
        updated,
        ready,
        complete: true,
        ..WorkloadState::default()
    }
}

fn starting(state: WorkloadState) -> WorkloadState {
    WorkloadState { complete: false, ..state }
}

/// What a decision about a service rests on.
struct World {
    more: Value,
    paused: bool,
    exposed: bool,
    project: Option<ProjectFacts>,
    children: BTreeMap<ankka_desired::ChildKind, Seen>,
    workload: Option<WorkloadState>,
    pods: Vec<PodState>,
    server: DatabaseServer,
    database: Option<DatabaseState>,
}

impl World {
    /// A service with a database of its own, of which nothing is there, with these fields in its descriptor.
    fn new(more: Value) -> Self {
        Self {
            more,
            paused: false,
            exposed: false,
            project: Some(ProjectFacts::default()),
            children: BTreeMap::new(),
            workload: None,
            pods: Vec::new(),
            server: DatabaseServer::Provisioned,
            database: None,
        }
    }

    /// A service whose database the platform makes, with this phase of it.
    fn with_database(phase: &str) -> Self {
        let database = DatabaseState { phase: Some(phase.to_owned()), ..DatabaseState::default() };
        Self { database: Some(database), ..Self::new(json!({ "env": [] })) }
    }

    /// All its objects are as they should be, and its Deployment does like this.
    fn settled(self, workload: WorkloadState) -> Self {
        let made = self.decide().actions.into_iter().filter_map(|action| match action {
            Action::Create(child) => Some((child.kind, seen(&child.body))),
            _ => None,
        });
        Self { children: made.collect(), workload: Some(workload), ..self }
    }

    /// Instances of before run like this.
    fn running(self, workload: WorkloadState) -> Self {
        Self { workload: Some(workload), ..self }
    }

    fn service(&self) -> AnkkaService {
        let mut service = json!({
            "image": "registry.example.com/acme/cart:1",
            "env": [{ "name": "ANKKA_DB_HOST", "value": "db.example.com" }],
            "resources": { "autoscaling": { "minInstances": 3 } },
        });
        if let (Some(service), Some(more)) = (service.as_object_mut(), self.more.as_object()) {
            service.extend(more.clone());
        }
        let spec = AnkkaServiceSpec {
            service: serde_json::from_value(service).expect("a service"),
            paused: self.paused,
            exposed: self.exposed,
            ..AnkkaServiceSpec::default()
        };
        let mut service = AnkkaService::new("cart", spec);
        service.metadata.namespace = Some("ankka-shop".to_owned());
        service.metadata.uid = Some(UID.to_owned());
        service.metadata.generation = Some(1);
        service
    }

    fn decide(&self) -> ankka_desired::Decision {
        decide(&Facts {
            service: &self.service(),
            project: self.project.as_ref(),
            settings: &settings(self.server),
            children: &self.children,
            workload: self.workload.as_ref(),
            database: self.database.as_ref(),
            pods: &self.pods,
            now: Timestamp::UNIX_EPOCH,
            route: RouteFacts::default(),
            revisions: &[],
        })
    }

    /// The service with the status that the controller writes.
    fn told(&self) -> AnkkaService {
        let status = ankka_desired::with_times(None, self.decide().status, "2026-11-30T12:00:00Z");
        AnkkaService { status, ..self.service() }
    }
}

fn settings(database: DatabaseServer) -> Settings {
    Settings {
        database,
        prefix: "ankka".to_owned(),
        own_namespace: "ankka-system".to_owned(),
        platform: Platform::new(env!("CARGO_PKG_VERSION")).expect("cargo's version is MAJOR.MINOR.PATCH"),
        installation: Installation::default(),
        sidecar_image: None,
        image_pull_secrets: Vec::new(),
        domain: None,
        gateway: Gateway::default(),
        progress_deadline_seconds: 600,
    }
}

/// An object as it was written.
fn seen(body: &Value) -> Seen {
    let mut metadata: ObjectMeta = serde_json::from_value(body["metadata"].clone()).expect("metadata");
    metadata.uid = Some("made".to_owned());
    Seen::of(&metadata)
}

fn projects() -> Vec<Stage> {
    let strangers = NamespaceSeen { uid: "theirs".to_owned(), ..NamespaceSeen::default() };
    let terminating = NamespaceSeen { terminating: true, ..own_namespace() };
    let mut going = project(Some(&own_namespace()));
    deleted(&mut going.metadata);
    vec![
        unobserved("a project that nobody has looked at", &named()),
        stage("a project with its namespace", &project(Some(&own_namespace()))),
        stage("a namespace of before is being deleted", &project(Some(&terminating))),
        stage("the namespace is somebody else's", &project(Some(&strangers))),
        stage("a project that is being deleted", &going),
    ]
}

fn named() -> AnkkaProject {
    let mut project = AnkkaProject::new("shop", AnkkaProjectSpec::default());
    project.metadata.generation = Some(1);
    project
}

fn judged(project: &AnkkaProject, namespace: Option<&NamespaceSeen>) -> project::Decision {
    project::decide(&project::Facts {
        project,
        prefix: "ankka",
        own_namespace: "ankka-system",
        gateway_namespace: "ankka-gateway",
        proxy_namespaces: &[],
        namespace,
        policy: None,
        administrators: None,
    })
}

/// The project with the status that the controller writes.
fn project(namespace: Option<&NamespaceSeen>) -> AnkkaProject {
    let project = named();
    let status = judged(&project, namespace).status;
    AnkkaProject { status: ankka_desired::project_with_times(None, status, "2026-11-30T12:00:00Z"), ..project }
}

fn own_namespace() -> NamespaceSeen {
    let actions = judged(&named(), None).actions;
    let Some(project::Action::Create(namespace)) = actions.first() else {
        unreachable!("a new project has no namespace")
    };
    let metadata = serde_json::from_value(namespace.body["metadata"].clone()).expect("metadata");
    NamespaceSeen::of(&metadata)
}

fn databases() -> Vec<Stage> {
    let told = |name, outcome| {
        let mut database = AnkkaDatabase::new("cart", AnkkaDatabaseSpec::default());
        database.metadata.generation = Some(1);
        let status = told(&database, AnkkaDatabaseStatus::default(), outcome);
        database.status = with_times(None, status, "2026-11-30T12:00:00Z");
        stage(name, &database)
    };
    vec![
        told("a database is being made", Outcome::Making),
        told("the database server is waited for", Outcome::Waiting("connection refused")),
        told("a database cannot be made", Outcome::Failed("Refused", "permission denied")),
        told("a database is there", Outcome::Provisioned),
    ]
}
