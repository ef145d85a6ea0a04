//! Keeping descriptors: the only place that writes ControllerRevisions.

use std::sync::Arc;

use ankka_desired::revisions::{Recording, RevisionSeen, renewed};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::{
    act::{Answer, Outcome, conditional, metadata_of},
    cache::{Cache, ServiceId, Source, version_of},
    error::Error,
    wire::{Target, Wire},
};

/// Writes the history of services.
#[derive(Clone)]
pub struct Recorder {
    /// Sends the requests.
    pub wire: Wire,
    /// Learns the answers.
    pub cache: Arc<Cache>,
}

impl Recorder {
    /// Carries out what was decided about one service's history, one after the other: what is new is kept before anything
    /// is thrown away.
    pub async fn all(&self, id: &ServiceId, recordings: Vec<Recording>) -> Result<Outcome, Error> {
        let mut outcome = Outcome::Done;
        let collection = collection(id);
        for recording in recordings {
            let (Recording::Create { name, .. } | Recording::Renew { name, .. } | Recording::Delete { name, .. }) =
                &recording;
            let name = name.clone();
            outcome = outcome.and(self.one(id, target(id, &collection, &name), recording).await?);
        }
        Ok(outcome)
    }

    async fn one(&self, id: &ServiceId, target: Target<'_>, recording: Recording) -> Result<Outcome, Error> {
        let seen = !matches!(recording, Recording::Create { .. });
        let result = match recording {
            Recording::Create { body, .. } => self.wire.create::<Answer>(target, &body).await,
            Recording::Renew { uid, generation, .. } => {
                let Some(live) = self.wire.get::<Value>(target).await? else { return Ok(self.gone(id, target)) };
                let metadata = metadata_of(&live);
                if metadata.uid.as_deref() != Some(&uid) {
                    return Ok(self.found(id, &metadata, Source::Answered, Outcome::Judge));
                }
                self.wire.update(target, &conditional(renewed(&live, generation), metadata)).await
            }
            Recording::Delete { uid, .. } => match self.wire.delete(target, uid).await {
                Ok(()) => {
                    self.gone(id, target);
                    return Ok(Outcome::Done);
                }
                Err(error) => Err(error),
            },
        };
        match result {
            Ok(answer) => Ok(self.found(id, &answer.metadata, Source::Answered, Outcome::Done)),
            // Another one than was seen, or our own from before a crash: the decision tells them apart.
            Err(error) if error.code() == Some(409) || (seen && error.code() == Some(404)) => {
                self.probe(id, target.name).await?;
                Ok(Outcome::Judge)
            }
            Err(error) => Err(error),
        }
    }

    /// Looks again at an object that no watch tells about.
    pub async fn probe(&self, id: &ServiceId, name: &str) -> Result<(), Error> {
        let collection = collection(id);
        let target = target(id, &collection, name);
        match self.wire.get::<Answer>(target).await? {
            Some(found) => drop(self.found(id, &found.metadata, Source::Probed, Outcome::Judge)),
            None => drop(self.gone(id, target)),
        }
        Ok(())
    }

    fn found(&self, id: &ServiceId, metadata: &ObjectMeta, source: Source, outcome: Outcome) -> Outcome {
        self.cache.put_revision(id, version_of(metadata), &RevisionSeen::of(metadata), source);
        outcome
    }

    fn gone(&self, id: &ServiceId, target: Target<'_>) -> Outcome {
        self.cache.remove_revision(id, target.name, u64::MAX);
        Outcome::Judge
    }
}

fn collection(id: &ServiceId) -> String {
    format!("/apis/apps/v1/namespaces/{}/controllerrevisions", id.namespace)
}

fn target<'a>(id: &'a ServiceId, collection: &'a str, name: &'a str) -> Target<'a> {
    Target { collection, kind: "ControllerRevision", name, namespace: Some(&id.namespace) }
}
