//! A model of the API server: objects with UIDs and resourceVersions, and a record of who owns which field, kept as
//! Kubernetes keeps it for updates.

use std::collections::{BTreeMap, BTreeSet};

use ankka_crds::labels;
use ankka_desired::{Action, ChildKind, DatabaseState, Seen, merged, scaled};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};

type Path = Vec<String>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Api {
    objects: BTreeMap<ChildKind, Object>,
    counter: u64,
    /// What the database controller has answered: how many logins it has issued.
    logins: Option<i64>,
    /// Writes that changed something.
    pub(crate) writes: u64,
}

#[derive(Clone, Debug)]
struct Object {
    body: Value,
    owners: BTreeMap<String, BTreeSet<Path>>,
}

/// Why a write was refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    AlreadyExists,
    NotFound,
    Conflict,
}

impl Api {
    /// Carries out one action, as the controller does.
    pub(crate) fn act(&mut self, action: &Action) -> Result<(), Refused> {
        match action {
            Action::Create(child) => self.create(labels::MANAGER, child.kind, child.body.clone()),
            Action::Update { uid, child } => {
                let live = self.get(child.kind).ok_or(Refused::NotFound)?;
                if live["metadata"]["uid"] != *uid {
                    return Err(Refused::Conflict);
                }
                self.update(labels::MANAGER, child.kind, merged(&live, child))
            }
            Action::Scale { uid, replicas, .. } => {
                let live = self.get(ChildKind::Deployment).ok_or(Refused::NotFound)?;
                if live["metadata"]["uid"] != *uid {
                    return Err(Refused::Conflict);
                }
                self.update(labels::MANAGER, ChildKind::Deployment, scaled(&live, *replicas))
            }
            Action::Delete { kind, uid, .. } => {
                let live = self.get(*kind).ok_or(Refused::NotFound)?;
                if live["metadata"]["uid"] != *uid {
                    return Err(Refused::Conflict);
                }
                self.objects.remove(kind);
                self.writes += 1;
                Ok(())
            }
        }
    }

    pub(crate) fn create(&mut self, manager: &str, kind: ChildKind, mut body: Value) -> Result<(), Refused> {
        if self.objects.contains_key(&kind) {
            return Err(Refused::AlreadyExists);
        }
        self.counter += 1;
        self.writes += 1;
        body["metadata"]["uid"] = json!(format!("uid-{}", self.counter));
        body["metadata"]["resourceVersion"] = json!(self.counter.to_string());
        body["metadata"]["generation"] = json!(1);
        body["metadata"]["creationTimestamp"] = json!(self.time());
        if kind == ChildKind::Service {
            body["spec"]["clusterIP"] = json!("10.0.0.7");
            body["spec"]["clusterIPs"] = json!(["10.0.0.7"]);
        }
        if kind == ChildKind::Deployment {
            body["spec"]["template"]["spec"]["schedulerName"] = json!("default-scheduler");
        }
        let owners = [(manager.to_owned(), leaves(&body).into_keys().collect())].into();
        self.objects.insert(kind, Object { body, owners });
        Ok(())
    }

    pub(crate) fn update(&mut self, manager: &str, kind: ChildKind, mut body: Value) -> Result<(), Refused> {
        let object = self.objects.get_mut(&kind).ok_or(Refused::NotFound)?;
        for precondition in ["uid", "resourceVersion"] {
            if body["metadata"][precondition] != object.body["metadata"][precondition] {
                return Err(Refused::Conflict);
            }
        }
        if kind == ChildKind::Deployment {
            body["spec"]["template"]["spec"]["schedulerName"] = json!("default-scheduler");
        }
        if body == object.body {
            return Ok(());
        }
        if content(&body) != content(&object.body) {
            let generation = object.body["metadata"]["generation"].as_i64().unwrap_or_default();
            body["metadata"]["generation"] = json!(generation + 1);
        }
        let (before, after) = (leaves(&object.body), leaves(&body));
        let changed: BTreeSet<_> = after
            .iter()
            .filter(|(path, value)| before.get(*path) != Some(value))
            .map(|(path, _)| path.clone())
            .collect();
        for (owner, paths) in &mut object.owners {
            paths.retain(|path| after.contains_key(path) && (owner == manager || !changed.contains(path)));
        }
        object.owners.entry(manager.to_owned()).or_default().extend(changed);
        object.owners.retain(|_, paths| !paths.is_empty());
        self.counter += 1;
        self.writes += 1;
        body["metadata"]["resourceVersion"] = json!(self.counter.to_string());
        object.body = body;
        Ok(())
    }

    /// Somebody else changes an object.
    pub(crate) fn edit(&mut self, manager: &str, kind: ChildKind, change: impl FnOnce(&mut Value)) {
        let mut body = self.objects[&kind].body.clone();
        change(&mut body);
        self.update(manager, kind, body).expect("an edit of what was just read");
    }

    /// The stored object, with its `managedFields`.
    pub(crate) fn get(&self, kind: ChildKind) -> Option<Value> {
        let object = self.objects.get(&kind)?;
        let mut body = object.body.clone();
        body["metadata"]["managedFields"] = object
            .owners
            .iter()
            .map(|(manager, paths)| json!({ "manager": manager, "operation": "Update", "fieldsV1": tree(paths) }))
            .collect();
        Some(body)
    }

    pub(crate) fn seen(&self) -> BTreeMap<ChildKind, Seen> {
        let seen = |kind: &ChildKind| {
            let meta: ObjectMeta = serde_json::from_value(self.get(*kind)?["metadata"].clone()).expect("metadata");
            Some((*kind, Seen::of(&meta)))
        };
        self.objects.keys().filter_map(seen).collect()
    }

    /// How far the database is.
    pub(crate) fn database(&self) -> Option<DatabaseState> {
        let asked = self.get(ChildKind::Database)?["spec"]["credentialGeneration"].as_i64().unwrap_or_default();
        let waiting = DatabaseState { asked, created: "2026-11-30T10:00:00Z".to_owned(), ..Default::default() };
        Some(match self.logins {
            None => waiting,
            Some(in_place) => DatabaseState {
                phase: Some("provisioned".to_owned()),
                secret: Some("cart-db".to_owned()),
                in_place,
                ..waiting
            },
        })
    }

    /// The database controller does what is asked of it. False when there is nothing to do.
    pub(crate) fn fulfil(&mut self) -> bool {
        let wanted = self.database().map(|database| database.asked);
        let behind = wanted.is_some() && self.logins < wanted;
        if behind {
            self.logins = wanted;
        }
        behind
    }

    /// The garbage collector removes what a service that is gone has left.
    pub(crate) fn collect_garbage(&mut self, present: &str) {
        let owned = |object: &Object| object.body["metadata"]["ownerReferences"][0]["uid"].as_str().map(str::to_owned);
        self.objects.retain(|_, object| owned(object).is_none_or(|uid| uid == present));
    }

    /// What is there, apart from what the server hands out.
    pub(crate) fn state(&self) -> BTreeMap<ChildKind, Value> {
        let plain = |(kind, object): (&ChildKind, &Object)| {
            let mut body = object.body.clone();
            let metadata = body["metadata"].as_object_mut().expect("metadata");
            metadata.remove("uid");
            for field in ["resourceVersion", "generation", "creationTimestamp"] {
                metadata.remove(field);
            }
            (*kind, body)
        };
        self.objects.iter().map(plain).collect()
    }

    /// Removes an object, whoever's it is.
    pub(crate) fn remove(&mut self, kind: ChildKind) {
        self.writes += u64::from(self.objects.remove(&kind).is_some());
    }

    /// Takes over an object as it is in another cluster.
    pub(crate) fn adopt(&mut self, kind: ChildKind, from: &Self) {
        self.objects.extend(from.objects.get(&kind).map(|object| (kind, object.clone())));
        self.counter = self.counter.max(from.counter);
    }

    /// The next resourceVersion, for an object that is kept elsewhere.
    pub(crate) fn tick(&mut self) -> u64 {
        self.counter += 1;
        self.writes += 1;
        self.counter
    }

    /// The server's time: one second a write.
    pub(crate) fn time(&self) -> String {
        let (minutes, seconds) = (self.counter / 60, self.counter % 60);
        format!("2026-11-30T{:02}:{:02}:{seconds:02}Z", 10 + minutes / 60, minutes % 60)
    }
}

/// What the API server counts generations of.
fn content(body: &Value) -> Value {
    let mut content = body.clone();
    for key in ["metadata", "status"] {
        content.as_object_mut().expect("an object").remove(key);
    }
    content
}

/// Every field with its value; what Kubernetes holds as one piece is one field.
fn leaves(body: &Value) -> BTreeMap<Path, Value> {
    let mut found = BTreeMap::new();
    let own = ["labels", "annotations", "ownerReferences"];
    for (key, value) in body.as_object().expect("an object") {
        match key.as_str() {
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                for key in own {
                    if let Some(value) = value.get(key) {
                        walk(vec!["f:metadata".to_owned(), format!("f:{key}")], key, value, &mut found);
                    }
                }
            }
            key => walk(vec![format!("f:{key}")], key, value, &mut found),
        }
    }
    found
}

fn walk(path: Path, field: &str, value: &Value, found: &mut BTreeMap<Path, Value>) {
    let below = |key: String| path.iter().cloned().chain([key]).collect::<Path>();
    match value {
        Value::Object(fields) if !ATOMIC.contains(&field) && !fields.is_empty() => {
            for (key, value) in fields {
                walk(below(format!("f:{key}")), key, value, found);
            }
        }
        Value::Array(items) if key_of(field).is_some() => {
            for item in items {
                let names = key_of(field).unwrap_or_default();
                let names = names.iter().filter(|name| item.get(**name).is_some());
                let key: Map<_, _> = names.map(|name| ((*name).to_owned(), item[*name].clone())).collect();
                walk(below(format!("k:{}", Value::Object(key))), field, item, found);
            }
        }
        whole => {
            found.insert(path, whole.clone());
        }
    }
}

const ATOMIC: [&str; 7] =
    ["selector", "labelSelector", "roleRef", "fieldRef", "configMapKeyRef", "secretKeyRef", "imagePullSecrets"];

fn key_of(list: &str) -> Option<&'static [&'static str]> {
    match list {
        "containers" | "env" | "imagePullSecrets" => Some(&["name"]),
        "ports" => Some(&["containerPort", "port", "protocol"]),
        "topologySpreadConstraints" => Some(&["topologyKey", "whenUnsatisfiable"]),
        "ownerReferences" => Some(&["uid"]),
        _ => None,
    }
}

fn tree(paths: &BTreeSet<Path>) -> Value {
    let mut root = json!({});
    for path in paths {
        let mut node = &mut root;
        for key in path {
            node = &mut node[key.as_str()];
            if node.is_null() {
                *node = json!({});
            }
        }
    }
    root
}
