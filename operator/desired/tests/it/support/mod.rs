//! Fixtures: a service as stored, what surrounds it, and a small model of the API server.

pub(crate) mod model;

use std::collections::BTreeMap;

use ankka_crds::compat::Platform;
use ankka_crds::exposure::Domain;
use ankka_crds::{AnkkaService, AnkkaServiceSpec, Installation, labels};
use ankka_desired::revisions::RevisionSeen;
use ankka_desired::{
    Action, Child, ChildKind, Claim, DatabaseServer, DatabaseState, Decision, Facts, Gateway, PodState, ProjectFacts,
    RouteFacts, RouteState, Seen, Settings, WorkloadState, decide,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) const NAMESPACE: &str = "ankka-shop";
pub(crate) const UID: &str = "0a1b2c3d-0000-4444-8888-00000000000f";

/// Everything a decision rests on, owned.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) service: AnkkaService,
    pub(crate) project: Option<ProjectFacts>,
    pub(crate) settings: Settings,
    pub(crate) children: BTreeMap<ChildKind, Seen>,
    pub(crate) workload: Option<WorkloadState>,
    pub(crate) database: Option<DatabaseState>,
    pub(crate) pods: Vec<PodState>,
    pub(crate) now: Timestamp,
    pub(crate) routes_served: bool,
    pub(crate) route: Option<RouteState>,
    pub(crate) rivals: Vec<Claim>,
    pub(crate) revisions: Vec<RevisionSeen>,
}

pub(crate) fn settings() -> Settings {
    Settings {
        prefix: "ankka".to_owned(),
        own_namespace: "ankka-system".to_owned(),
        platform: Platform { version: "0.2.0".to_owned(), major: 0, minor: 2, protocol: (1, 0) },
        installation: Installation::default(),
        database: DatabaseServer::Provisioned,
        sidecar_image: Some("registry.example.com/ankka/sidecar:0.2.0".to_owned()),
        image_pull_secrets: vec!["installation-pull".to_owned()],
        domain: Some(Domain { base: "apps.example.com".to_owned(), port: 443 }),
        gateway: Gateway::default(),
        progress_deadline_seconds: 600,
    }
}

impl World {
    /// A new service in a project, of which nothing is there yet but its database. `input` is a descriptor, with `paused`, `exposed` and
    /// `restarts` beside its fields.
    pub(crate) fn new(input: &Value) -> Self {
        let service = serde_json::from_value(input["service"].clone()).expect("a service object");
        let spec = AnkkaServiceSpec {
            service,
            paused: input["paused"].as_bool().unwrap_or_default(),
            exposed: input["exposed"].as_bool().unwrap_or_default(),
            restarts: input["restarts"].as_i64().unwrap_or_default(),
            ..Default::default()
        };
        let mut service = AnkkaService::new(input["name"].as_str().expect("a name"), spec);
        service.metadata.namespace = Some(NAMESPACE.to_owned());
        service.metadata.uid = Some(UID.to_owned());
        service.metadata.generation = Some(1);
        let image_pull_secrets = vec!["project-pull".to_owned(), "installation-pull".to_owned()];
        Self {
            service,
            project: Some(ProjectFacts { image_pull_secrets, terminating: false }),
            settings: settings(),
            children: BTreeMap::new(),
            workload: None,
            database: Some(provisioned()),
            pods: Vec::new(),
            now: "2026-11-30T12:00:00Z".parse().expect("a time"),
            routes_served: true,
            route: None,
            rivals: Vec::new(),
            revisions: Vec::new(),
        }
    }

    /// A minimal service called `cart`, with more fields of the descriptor's `service` object.
    pub(crate) fn cart(more: Value) -> Self {
        let mut service = json!({ "image": "registry.example.com/acme/cart:1" });
        let more = serde_json::from_value::<serde_json::Map<_, _>>(more).expect("an object");
        service.as_object_mut().expect("an object").extend(more);
        Self::new(&json!({ "name": "cart", "service": service }))
    }

    /// All children are as they should be, and so many instances of as many are ready.
    pub(crate) fn settled(mut self, ready: i32) -> Self {
        self.children = self.decided();
        let desired = self.replicas();
        self.workload = Some(WorkloadState {
            generation: 1,
            observed_generation: 1,
            desired,
            total: desired,
            updated: desired,
            ready,
            complete: true,
            ..Default::default()
        });
        self
    }

    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            service: &self.service,
            project: self.project.as_ref(),
            settings: &self.settings,
            children: &self.children,
            workload: self.workload.as_ref(),
            database: self.database.as_ref(),
            pods: &self.pods,
            revisions: &self.revisions,
            now: self.now,
            route: RouteFacts { served: self.routes_served, state: self.route.as_ref(), rivals: &self.rivals },
        }
    }

    pub(crate) fn decide(&self) -> Decision {
        decide(&self.facts())
    }

    /// The children of the service, as a first pass would create them.
    pub(crate) fn wanted(&self) -> Vec<Child> {
        let nothing = BTreeMap::new();
        let actions = decide(&Facts { children: &nothing, workload: None, ..self.facts() }).actions;
        let child = |action| match action {
            Action::Create(child) => child,
            other => panic!("{other:?} of a service of which nothing is there"),
        };
        actions.into_iter().map(child).collect()
    }

    /// All children as they should be now.
    pub(crate) fn decided(&self) -> BTreeMap<ChildKind, Seen> {
        self.wanted().iter().map(|child| (child.kind, seen(child, UID))).collect()
    }

    pub(crate) fn child(&self, kind: ChildKind) -> Option<Child> {
        self.wanted().into_iter().find(|child| child.kind == kind)
    }

    pub(crate) fn body(&self, kind: ChildKind) -> Value {
        self.child(kind).unwrap_or_else(|| panic!("no {kind:?}")).body
    }

    /// The pod template, as the bytes that go to the API server.
    pub(crate) fn template(&self) -> String {
        self.body(ChildKind::Deployment)["spec"]["template"].to_string()
    }

    fn replicas(&self) -> i32 {
        let replicas = &self.body(ChildKind::Deployment)["spec"]["replicas"];
        i32::try_from(replicas.as_i64().expect("replicas")).expect("a small number")
    }
}

/// A database whose login is in its Secret.
pub(crate) fn provisioned() -> DatabaseState {
    DatabaseState {
        created: "2026-11-30T10:00:00Z".to_owned(),
        phase: Some("provisioned".to_owned()),
        secret: Some("cart-db".to_owned()),
        ..Default::default()
    }
}

/// The child as its owner wrote it last.
pub(crate) fn seen(child: &Child, owner: &str) -> Seen {
    let mut meta: ObjectMeta = serde_json::from_value(child.body["metadata"].clone()).expect("metadata");
    meta.uid = Some(format!("uid-of-{}", child.kind.word()));
    for reference in meta.owner_references.iter_mut().flatten() {
        owner.clone_into(&mut reference.uid);
    }
    Seen::of(&meta)
}

/// Somebody's object, with no owner.
pub(crate) fn stranger() -> Seen {
    Seen { uid: "uid-of-a-stranger".to_owned(), ..Default::default() }
}

/// The identity labels of `cart`.
pub(crate) fn identity(service: &str) -> BTreeMap<String, String> {
    labels::identity("shop", service)
}

/// What an action does, in a few words.
pub(crate) fn told(actions: &[Action]) -> Vec<String> {
    let tell = |action: &Action| match action {
        Action::Create(child) => format!("create {}", child.kind.word()),
        Action::Update { child, .. } => format!("update {}", child.kind.word()),
        Action::Scale { replicas, .. } => format!("scale to {replicas}"),
        Action::Delete { kind, .. } => format!("delete {}", kind.word()),
    };
    actions.iter().map(tell).collect()
}
