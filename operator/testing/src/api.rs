//! An API server in memory: enough of one for our controllers, with faults on demand.
//!
//! Objects are kept by path. UID, resourceVersion, generation, `managedFields`, preconditions, the status subresource,
//! label selectors, watches and the garbage collector behave as the real ones do; other controllers answer at once.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use futures::{StreamExt, channel::mpsc};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tower::{BoxError, service_fn};

use crate::{
    controllers,
    fault::{Fault, Write},
    fields,
    reply::{Answer, answer, form, status},
    watch::{Watch, is_collection},
};

type Refusal = (u16, &'static str);

const GATEWAY_API: &str = "/apis/gateway.networking.k8s.io/v1";

/// The API server.
#[derive(Clone, Default)]
pub struct Api(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    version: u64,
    uids: u64,
    writes: Vec<Write>,
    fault: Option<(usize, Fault)>,
    gateway_api: bool,
    dead: bool,
    database_down: bool,
    rollouts_held: bool,
    alone: bool,
    watches: Vec<Watch>,
    history: Vec<(u64, String, Option<Value>, Option<Value>)>,
}

impl Api {
    /// One of a cluster in which only the controller that is tested runs.
    #[must_use]
    pub fn without_others() -> Self {
        Self(Arc::new(Mutex::new(State { alone: true, ..State::default() })))
    }

    /// A copy of all objects, without faults, watches and memory of writes.
    #[must_use]
    pub fn copy(&self) -> Self {
        let state = self.lock();
        let copy = State {
            objects: state.objects.clone(),
            version: state.version,
            uids: state.uids,
            gateway_api: state.gateway_api,
            database_down: state.database_down,
            alone: state.alone,
            ..State::default()
        };
        Self(Arc::new(Mutex::new(copy)))
    }

    /// A client of an operator that has just been started.
    pub fn client(&self) -> Client {
        self.lock().dead = false;
        let api = self.clone();
        Client::new(service_fn(move |request| serve(api.clone(), request)), "default")
    }

    /// From now on, the write of this number (from 0) goes wrong.
    pub fn fail(&self, number: usize, fault: Fault) {
        let mut state = self.lock();
        state.writes.clear();
        state.fault = Some((number, fault));
    }

    /// The operator dies of something else than a write.
    pub fn kill(&self) {
        self.lock().dead = true;
    }

    /// Whether the operator has died.
    pub fn is_dead(&self) -> bool {
        self.lock().dead
    }

    /// Whether the database server is down: a database that is asked for is not made meanwhile.
    pub fn database_down(&self, down: bool) {
        let mut state = self.lock();
        state.database_down = down;
        for (path, object) in state.objects.clone() {
            if controllers::answer(&path, &object, down).is_some() {
                state.store(&path, object);
            }
        }
    }

    /// Whether rollouts stand still: a Deployment that is changed keeps its status until [`Self::roll_out`].
    pub fn hold_rollouts(&self, held: bool) {
        self.lock().rollouts_held = held;
    }

    /// The instances of a Deployment are replaced.
    pub fn roll_out(&self, path: &str) {
        let mut state = self.lock();
        let mut object = state.objects[path].clone();
        if let Some(status) = controllers::answer(path, &object, state.database_down) {
            object["status"] = status;
            state.store(path, object);
        }
    }

    /// The writes since the last call.
    pub fn writes(&self) -> Vec<Write> {
        std::mem::take(&mut self.lock().writes)
    }

    /// Somebody else makes an object.
    ///
    /// # Panics
    /// When there is one already.
    pub fn put(&self, path: &str, object: Value) {
        self.lock().create(path, object, "kubectl").expect("the test's own object");
    }

    /// Somebody else changes an object.
    pub fn edit(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut state = self.lock();
        let mut object = state.objects[path].clone();
        change(&mut object);
        state.replace(path, object, "kubectl").expect("the test's own change");
    }

    /// Somebody else reports on an object.
    pub fn judge(&self, path: &str, status: &Value) {
        self.lock().replace_status(path, &json!({"metadata": {}, "status": status})).expect("the test's own word");
    }

    /// Somebody else deletes an object; the garbage collector takes what it owns.
    pub fn delete(&self, path: &str) {
        let mut state = self.lock();
        let uid = state.objects[path]["metadata"]["uid"].clone();
        state.remove(path);
        let owned: Vec<String> = state
            .objects
            .iter()
            .filter(|(_, object)| {
                object["metadata"]["ownerReferences"]
                    .as_array()
                    .is_some_and(|all| all.iter().any(|owner| owner["uid"] == uid))
            })
            .map(|(path, _)| path.clone())
            .collect();
        for path in owned {
            state.remove(&path);
        }
    }

    /// The watches fall too far behind: objects go without a word, and then every watch is told to list anew.
    pub fn lose(&self, gone: &[&str]) {
        let mut state = self.lock();
        for path in gone {
            state.objects.remove(*path).expect("it is there");
        }
        state.version += 1;
        state.history.clear();
        let status = json!({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired"});
        let line = format!("{}\n", json!({"type": "ERROR", "object": status}));
        for watch in std::mem::take(&mut state.watches) {
            let _ = watch.sender.unbounded_send(line.clone().into());
        }
    }

    /// The cluster gets the Gateway API, or loses it with all routes and every watch of them.
    pub fn has_gateway_api(&self, present: bool) {
        let mut state = self.lock();
        state.gateway_api = present;
        if !present {
            let routes: Vec<String> =
                state.objects.keys().filter(|path| path.starts_with(GATEWAY_API)).cloned().collect();
            for path in routes {
                state.remove(&path);
            }
            state.watches.retain(|watch| !watch.collection.starts_with(GATEWAY_API));
        }
    }

    fn overtake(&self, verb: &str, path: &str) {
        let Some(mut object) = self.get(path) else { return };
        if verb == "delete" {
            self.delete(path);
            let metadata = json!({"name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"]});
            object["metadata"] = metadata;
            self.put(path, object);
        } else {
            self.edit(path, |object| object["metadata"]["annotations"]["other.io/overtaken"] = "1".into());
        }
    }

    /// An object, as it is stored.
    pub fn get(&self, path: &str) -> Option<Value> {
        self.lock().objects.get(path).cloned()
    }

    /// Every object, without what differs from run to run: UIDs, versions, times, and who wrote which field when.
    pub fn end_state(&self) -> BTreeMap<String, Value> {
        let mut objects = self.lock().objects.clone();
        for object in objects.values_mut() {
            let metadata = object["metadata"].as_object_mut().expect("metadata");
            for field in ["uid", "resourceVersion", "managedFields", "creationTimestamp"] {
                metadata.remove(field);
            }
            for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
                condition["lastTransitionTime"] = Value::Null;
            }
        }
        objects
    }

    /// The resourceVersion of every object.
    pub fn versions(&self) -> BTreeMap<String, Value> {
        let state = self.lock();
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        state.objects.iter().map(|(path, object)| (path.clone(), version(object))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics while it holds this")
    }
}

async fn serve(api: Api, request: Request<Body>) -> Result<Answer, BoxError> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let body: Value = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? };
    let path = parts.uri.path().to_owned();
    let query: BTreeMap<String, String> = form(parts.uri.query().unwrap_or_default());
    if parts.method == Method::GET {
        return read(&api, &path, &query);
    }
    let verb = match parts.method {
        Method::POST => "create",
        Method::PUT if query.contains_key("dryRun") => "probe",
        Method::PUT => "update",
        Method::DELETE => "delete",
        other => return Err(format!("{other} {path} is not expected").into()),
    };
    let fault = {
        let mut state = api.lock();
        if state.dead {
            return Err("the operator is dead".into());
        }
        let number = state.writes.len();
        let target = if verb == "create" { created(&path, &body) } else { path.clone() };
        state.writes.push(Write { verb, path: target, done: false });
        state.fault.take_if(|(at, _)| *at == number).map(|(_, fault)| fault)
    };
    match fault {
        Some(Fault::CrashBefore) => {
            api.lock().dead = true;
            return Err("connection reset".into());
        }
        Some(Fault::Refused(code)) => return Ok(status(code, "Injected")),
        Some(Fault::Silence) => std::future::pending().await,
        Some(Fault::Overtaken) => api.overtake(verb, path.trim_end_matches("/status")),
        _ => {}
    }
    let result = api.lock().write(verb, &path, body, &query);
    match fault {
        Some(Fault::CrashAfter) => api.lock().dead = true,
        Some(Fault::CrashWithoutReply) => {
            api.lock().dead = true;
            return Err("connection reset".into());
        }
        Some(Fault::ReplyLost) => return Err("connection reset".into()),
        _ => {}
    }
    Ok(match result {
        Ok(object) => answer(200, &object),
        Err((code, reason)) => status(code, reason),
    })
}

fn read(api: &Api, path: &str, query: &BTreeMap<String, String>) -> Result<Answer, BoxError> {
    let mut state = api.lock();
    if state.dead {
        return Err("the operator is dead".into());
    }
    if path.starts_with(GATEWAY_API) && !state.gateway_api {
        return Ok(status(404, "NotFound"));
    }
    if path == GATEWAY_API {
        let route = json!({"name": "httproutes", "singularName": "httproute", "namespaced": true, "kind": "HTTPRoute", "verbs": ["list", "watch"]});
        return Ok(answer(200, &json!({"groupVersion": "gateway.networking.k8s.io/v1", "resources": [route]})));
    }
    if let Some(object) = state.objects.get(path) {
        return Ok(answer(200, object));
    }
    let selector =
        query.get("labelSelector").and_then(|text| text.split_once('=')).map(|(a, b)| (a.to_owned(), b.to_owned()));
    if query.contains_key("watch") {
        let since: u64 = query["resourceVersion"].parse()?;
        let (sender, receiver) = mpsc::unbounded();
        let watch = Watch { collection: path.to_owned(), selector, sender };
        for (_, path, old, new) in state.history.iter().filter(|(version, ..)| *version > since) {
            watch.tell(path, old.as_ref(), new.as_ref());
        }
        state.watches.push(watch);
        let frames = receiver.map(|line| Ok::<_, BoxError>(hyper::body::Frame::data(line)));
        return Ok(Response::new(StreamBody::new(frames).boxed_unsync()));
    }
    if !is_collection(path) {
        return Ok(status(404, "NotFound"));
    }
    let watch = Watch { collection: path.to_owned(), selector, sender: mpsc::unbounded().0 };
    let items: Vec<&Value> =
        state.objects.iter().filter(|(path, object)| watch.wants(path, object)).map(|(_, object)| object).collect();
    Ok(answer(200, &json!({"metadata": {"resourceVersion": state.version.to_string()}, "items": items})))
}

fn created(collection: &str, body: &Value) -> String {
    format!("{collection}/{}", body["metadata"]["name"].as_str().unwrap_or_default())
}

/// What a real API server does not store when it is empty: a RoleBinding's list of subjects, for one.
fn omit_empty(object: &mut Value) {
    if object["subjects"].as_array().is_some_and(Vec::is_empty) {
        object.as_object_mut().expect("an object").remove("subjects");
    }
}

impl State {
    fn write(
        &mut self,
        verb: &str,
        path: &str,
        body: Value,
        query: &BTreeMap<String, String>,
    ) -> Result<Value, Refusal> {
        let manager = query.get("fieldManager").map_or("unknown", String::as_str);
        let result = match verb {
            "create" => self.create(&created(path, &body), body, manager),
            "probe" => self.probe(path, body),
            "update" => match path.strip_suffix("/status") {
                Some(path) => self.replace_status(path, &body),
                None => self.replace(path, body, manager),
            },
            _ => {
                let live = self.objects.get(path).ok_or((404, "NotFound"))?;
                let asked = &body["preconditions"]["uid"];
                if asked.is_null() || *asked == live["metadata"]["uid"] {
                    Ok(self.remove(path))
                } else {
                    Err((409, "Conflict"))
                }
            }
        };
        if let Some(write) = self.writes.last_mut() {
            write.done = result.is_ok();
        }
        result
    }

    fn create(&mut self, path: &str, mut object: Value, manager: &str) -> Result<Value, Refusal> {
        if self.objects.contains_key(path) {
            return Err((409, "AlreadyExists"));
        }
        if path.starts_with(GATEWAY_API) && !self.gateway_api {
            return Err((404, "NotFound"));
        }
        if let Some((_, rest)) = path.split_once("/namespaces/")
            && let Some((namespace, _)) = rest.split_once('/')
            && !self.objects.contains_key(&format!("/api/v1/namespaces/{namespace}"))
        {
            return Err((404, "NotFound"));
        }
        self.uids += 1;
        object["metadata"]["uid"] = format!("00000000-0000-4000-8000-{:012x}", self.uids).into();
        object["metadata"]["generation"] = 1.into();
        object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        omit_empty(&mut object);
        fields::record(None, &mut object, manager);
        Ok(self.store(path, object))
    }

    /// What replacing the object would answer: what was sent, with the stored resourceVersion.
    fn probe(&self, path: &str, mut object: Value) -> Result<Value, Refusal> {
        let live = self.replaceable(path, &object)?;
        object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        Ok(object)
    }

    /// The stored object, when `object` may take its place.
    fn replaceable(&self, path: &str, object: &Value) -> Result<&Value, Refusal> {
        let live = self.objects.get(path).ok_or((404, "NotFound"))?;
        if path.contains("/secrets/") && object["type"] != live["type"] {
            return Err((422, "type"));
        }
        self.check(path, object)?;
        Ok(live)
    }

    fn replace(&mut self, path: &str, mut object: Value, manager: &str) -> Result<Value, Refusal> {
        let live = self.replaceable(path, &object)?.clone();
        omit_empty(&mut object);
        for field in ["uid", "generation", "creationTimestamp", "resourceVersion", "managedFields"] {
            object["metadata"][field] = live["metadata"][field].clone();
        }
        match live.get("status") {
            Some(status) => object["status"] = status.clone(),
            None => drop(object.as_object_mut().expect("an object").remove("status")),
        }
        if object == live {
            return Ok(live);
        }
        if object["spec"] != live["spec"] {
            let generation = live["metadata"]["generation"].as_i64().unwrap_or_default();
            object["metadata"]["generation"] = (generation + 1).into();
        }
        fields::record(Some(&live), &mut object, manager);
        Ok(self.store(path, object))
    }

    fn replace_status(&mut self, path: &str, body: &Value) -> Result<Value, Refusal> {
        self.check(path, body)?;
        let mut object = self.objects[path].clone();
        object["status"] = body["status"].clone();
        if object == self.objects[path] {
            return Ok(object);
        }
        Ok(self.store(path, object))
    }

    /// The conditions that a body carries: the object it is about, and the state of it.
    fn check(&self, path: &str, body: &Value) -> Result<(), Refusal> {
        let live = &self.objects.get(path).ok_or((404, "NotFound"))?["metadata"];
        let differs = |field: &str| body["metadata"].get(field).is_some_and(|value| *value != live[field]);
        if differs("uid") || differs("resourceVersion") { Err((409, "Conflict")) } else { Ok(()) }
    }

    fn store(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let old = self.objects.insert(path.to_owned(), object.clone());
        self.tell(path, old, Some(object.clone()));
        let held = self.rollouts_held && path.contains("/deployments/");
        if !self.alone
            && !held
            && let Some(status) = controllers::answer(path, &object, self.database_down)
        {
            let mut answered = object.clone();
            answered["status"] = status;
            self.store(path, answered);
        }
        object
    }

    fn remove(&mut self, path: &str) -> Value {
        self.version += 1;
        let mut old = self.objects.remove(path).expect("it is there");
        old["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.tell(path, Some(old.clone()), None);
        old
    }

    fn tell(&mut self, path: &str, old: Option<Value>, new: Option<Value>) {
        self.watches.retain(|watch| !watch.sender.is_closed());
        for watch in &self.watches {
            watch.tell(path, old.as_ref(), new.as_ref());
        }
        self.history.push((self.version, path.to_owned(), old, new));
    }
}
