//! Acting: the only place that writes children.
//!
//! Every action is safe to repeat after a crash at any point. Creating is a POST, so that what is already there is never
//! overwritten; changing is a read and a PUT that carries the UID and resourceVersion that were read; deleting carries the
//! UID. What turns out to be different from what was decided on goes into the cache, and is judged again.

use std::sync::Arc;

use ankka_crds::AnkkaDatabase;
use ankka_desired::{Action, Child, ChildKind, HttpRoute, RouteState, Seen, WorkloadState, merged, scaled};
use futures::future::join_all;
use k8s_openapi::{api::apps::v1::Deployment, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::core::DeserializeGuard;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    cache::{Cache, Progress, ServiceId, Source, database_progress, version_of},
    error::Error,
    wire::{Target, Wire},
};

/// How acting went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was written.
    Done,
    /// Something was not as it had been decided on: judge again.
    Judge,
}

impl Outcome {
    pub(crate) fn and(self, other: Self) -> Self {
        if self == Self::Done { other } else { self }
    }
}

/// Writes children of services.
#[derive(Clone)]
pub struct Actor {
    /// Sends the requests.
    pub wire: Wire,
    /// Learns the answers.
    pub cache: Arc<Cache>,
}

/// Metadata of an answer; nothing else of it is decoded.
#[derive(Deserialize)]
pub(crate) struct Answer {
    #[serde(default)]
    pub(crate) metadata: ObjectMeta,
}

/// What an answer says about a child.
struct Found {
    metadata: ObjectMeta,
    progress: Progress,
}

impl From<Answer> for Found {
    fn from(answer: Answer) -> Self {
        Self { metadata: answer.metadata, progress: Progress::None }
    }
}

impl From<Deployment> for Found {
    fn from(deployment: Deployment) -> Self {
        let progress = Progress::Workload(WorkloadState::of(&deployment));
        Self { metadata: deployment.metadata, progress }
    }
}

impl From<HttpRoute> for Found {
    fn from(route: HttpRoute) -> Self {
        let progress = Progress::Route(RouteState::of(&route));
        Self { metadata: route.metadata, progress }
    }
}

impl From<DeserializeGuard<AnkkaDatabase>> for Found {
    fn from(database: DeserializeGuard<AnkkaDatabase>) -> Self {
        let (metadata, progress) = database_progress(database);
        Self { metadata, progress }
    }
}

/// Forgets the record of who wrote which field, where a PUT has found nothing to change: a field that somebody else set to
/// the wanted value stays theirs in the record, and writing it again would not make it ours.
pub(crate) fn trust_unchanged(answer: &mut ObjectMeta, put: &Value) {
    if answer.resource_version.as_deref() == put["metadata"]["resourceVersion"].as_str() {
        answer.managed_fields = None;
    }
}

impl Actor {
    /// Carries out what was decided about one service. All that is to be changed is read at once. What the instances need is
    /// written before them; what does not depend on each other goes out together; routes and deletions come last. After an
    /// error nothing of a later stage is sent.
    pub async fn all(&self, id: &ServiceId, actions: Vec<Action>) -> Result<Outcome, Error> {
        let mut stages: [Vec<(Action, Option<Value>)>; 4] = Default::default();
        for result in join_all(actions.into_iter().map(|action| self.with_live(id, action))).await {
            let (action, live) = result?;
            stages[stage(&action)].push((action, live));
        }
        let mut outcome = Outcome::Done;
        for stage in stages {
            for result in join_all(stage.into_iter().map(|(action, live)| self.one(id, action, live))).await {
                outcome = outcome.and(result?);
            }
            if outcome == Outcome::Judge {
                break;
            }
        }
        Ok(outcome)
    }

    /// Looks again at an object that no watch tells about.
    pub async fn probe(&self, id: &ServiceId, kind: ChildKind) -> Result<(), Error> {
        let place = Place::new(id, kind);
        let found = match kind {
            ChildKind::Deployment => self.read::<Deployment>(&place).await?,
            ChildKind::HttpRoute => self.read::<HttpRoute>(&place).await?,
            ChildKind::Database => self.read::<DeserializeGuard<AnkkaDatabase>>(&place).await?,
            _ => self.read::<Answer>(&place).await?,
        };
        match found {
            Some(found) => self.found(&place, found, Source::Probed),
            None => self.gone(&place),
        }
        Ok(())
    }

    /// An action with the object as it is, where that is changed.
    async fn with_live(&self, id: &ServiceId, action: Action) -> Result<(Action, Option<Value>), Error> {
        let live = match action {
            Action::Update { .. } | Action::Scale { .. } => {
                self.wire.get(Place::new(id, action.kind()).target()).await?
            }
            Action::Create(_) | Action::Delete { .. } => None,
        };
        Ok((action, live))
    }

    async fn one(&self, id: &ServiceId, action: Action, live: Option<Value>) -> Result<Outcome, Error> {
        let place = Place::new(id, action.kind());
        match action {
            Action::Create(child) => self.create(&place, &child).await,
            Action::Update { uid, child } => {
                self.change(&place, live, &uid, |live| merged(live, &child), |seen| seen.settled(&child)).await
            }
            Action::Scale { uid, replicas, .. } => {
                self.change(&place, live, &uid, |live| scaled(live, replicas), |_| true).await
            }
            Action::Delete { uid, .. } => self.delete(&place, uid).await,
        }
    }

    async fn create(&self, place: &Place<'_>, child: &Child) -> Result<Outcome, Error> {
        match self.written(place, true, &child.body).await {
            // Somebody's, or our own from before a crash: the decision tells them apart.
            Err(error) if error.code() == Some(409) => {
                self.probe(place.id, place.kind).await?;
                Ok(Outcome::Judge)
            }
            result => result.map(|_| Outcome::Done),
        }
    }

    /// Puts `body` of what is there, and asks for another judgement when the answer is not `settled` by that.
    async fn change(
        &self,
        place: &Place<'_>,
        live: Option<Value>,
        uid: &str,
        body: impl FnOnce(&Value) -> Value,
        settled: impl FnOnce(&Seen) -> bool,
    ) -> Result<Outcome, Error> {
        let Some(live) = live else {
            self.gone(place);
            return Ok(Outcome::Judge);
        };
        let metadata = metadata_of(&live);
        if metadata.uid.as_deref() != Some(uid) || metadata.deletion_timestamp.is_some() {
            self.probe(place.id, place.kind).await?;
            return Ok(Outcome::Judge);
        }
        match self.written(place, false, &conditional(body(&live), metadata)).await {
            Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(Outcome::Judge),
            result => result.map(|seen| if settled(&seen) { Outcome::Done } else { Outcome::Judge }),
        }
    }

    async fn delete(&self, place: &Place<'_>, uid: String) -> Result<Outcome, Error> {
        match self.wire.delete(place.target(), uid).await {
            Ok(()) => {
                self.gone(place);
                Ok(Outcome::Done)
            }
            Err(error) if matches!(error.code(), Some(404 | 409)) => {
                // Gone already, or another object by now.
                self.probe(place.id, place.kind).await?;
                Ok(Outcome::Judge)
            }
            Err(error) => Err(error),
        }
    }

    async fn written(&self, place: &Place<'_>, new: bool, body: &Value) -> Result<Seen, Error> {
        let mut found = match place.kind {
            ChildKind::Deployment => self.write::<Deployment>(place, new, body).await?,
            ChildKind::HttpRoute => self.write::<HttpRoute>(place, new, body).await?,
            ChildKind::Database => self.write::<DeserializeGuard<AnkkaDatabase>>(place, new, body).await?,
            _ => self.write::<Answer>(place, new, body).await?,
        };
        trust_unchanged(&mut found.metadata, body);
        let seen = Seen::of(&found.metadata);
        self.found(place, found, Source::Answered);
        Ok(seen)
    }

    async fn read<T: DeserializeOwned + Into<Found>>(&self, place: &Place<'_>) -> Result<Option<Found>, Error> {
        Ok(self.wire.get::<T>(place.target()).await?.map(Into::into))
    }

    async fn write<T: DeserializeOwned + Into<Found>>(
        &self,
        place: &Place<'_>,
        new: bool,
        body: &Value,
    ) -> Result<Found, Error> {
        let target = place.target();
        let answer: T =
            if new { self.wire.create(target, body).await? } else { self.wire.update(target, body).await? };
        Ok(answer.into())
    }

    fn found(&self, place: &Place<'_>, found: Found, source: Source) {
        let (version, seen) = (version_of(&found.metadata), Seen::of(&found.metadata));
        self.cache.put_child(place.id, place.kind, version, seen, found.progress, source);
    }

    fn gone(&self, place: &Place<'_>) {
        self.cache.remove_child(place.id, place.kind, u64::MAX);
    }
}

/// Where a service's child of one kind is.
struct Place<'a> {
    id: &'a ServiceId,
    kind: ChildKind,
    name: String,
    collection: String,
}

impl<'a> Place<'a> {
    fn new(id: &'a ServiceId, kind: ChildKind) -> Self {
        let root = if kind.group().is_empty() { "/api" } else { "/apis" };
        let collection = format!("{root}/{}/namespaces/{}/{}", kind.api_version(), id.namespace, kind.plural());
        Self { id, kind, name: kind.name_for(&id.name), collection }
    }

    fn target(&self) -> Target<'_> {
        Target {
            collection: &self.collection,
            kind: self.kind.kind(),
            name: &self.name,
            namespace: Some(&self.id.namespace),
        }
    }
}

fn stage(action: &Action) -> usize {
    match (action, action.kind()) {
        (Action::Delete { .. }, _) | (_, ChildKind::HttpRoute) => 3,
        (_, ChildKind::Deployment) => 2,
        (_, ChildKind::RoleBinding) => 1,
        _ => 0,
    }
}

/// `body` as a PUT that succeeds only for the object and the state of it that were read.
pub(crate) fn conditional(mut body: Value, read: ObjectMeta) -> Value {
    body["metadata"]["uid"] = read.uid.into();
    body["metadata"]["resourceVersion"] = read.resource_version.into();
    body
}

pub(crate) fn metadata_of(object: &Value) -> ObjectMeta {
    ObjectMeta::deserialize(&object["metadata"]).unwrap_or_default()
}
