//! Requests to the API server, one function a verb, with errors that say what was attempted on what.

use std::{fmt, sync::Arc};

use ankka_telemetry::SPANS;
use kube::{
    Client,
    api::{DeleteParams, GetParams, PostParams, Preconditions},
    core::Request,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use tracing::Instrument;

use crate::{error::Error, metrics::Metrics};

/// One object, as requests and people address it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Path of its collection.
    pub collection: &'a str,
    /// Its kind as metrics count it.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// Its namespace, when it is in one.
    pub namespace: Option<&'a str>,
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} '{}'", self.kind, self.name)?;
        self.namespace.map_or(Ok(()), |namespace| write!(formatter, " in '{namespace}'"))
    }
}

/// The connection to the API server.
#[derive(Clone)]
pub struct Wire {
    /// Sends writes only while the lease is held.
    pub client: Client,
    /// Under which name the API server notes who wrote a field.
    pub manager: &'static str,
    /// Counts the writes.
    pub metrics: Arc<Metrics>,
}

type Built = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

impl Wire {
    /// Reads an object; none when there is none.
    pub async fn get<T: DeserializeOwned>(&self, target: Target<'_>) -> Result<Option<T>, Error> {
        let request = Request::new(target.collection).get(target.name, &GetParams::default());
        absent_is_none(self.send("get", target, request).await)
    }

    /// Makes an object. An object of that name is an error with code 409.
    pub async fn create<T: DeserializeOwned>(&self, target: Target<'_>, body: &Value) -> Result<T, Error> {
        let request = Request::new(target.collection).create(&self.by_us(), body.to_string().into_bytes());
        self.write("create", target, request).await
    }

    /// Replaces an object, if it still is what `body` says by UID and resourceVersion; error code 409 otherwise.
    pub async fn update<T: DeserializeOwned>(&self, target: Target<'_>, body: &Value) -> Result<T, Error> {
        let request =
            Request::new(target.collection).replace(target.name, &self.by_us(), body.to_string().into_bytes());
        self.write("update", target, request).await
    }

    /// Whether the object could be replaced by `body`, which is not done. The answer holds what was sent and, of the object that is
    /// stored, its resourceVersion alone. No object is an error with code 404.
    pub async fn probe<T: DeserializeOwned>(&self, target: Target<'_>, body: &Value) -> Result<T, Error> {
        let parameters = PostParams { dry_run: true, ..self.by_us() };
        let request = Request::new(target.collection).replace(target.name, &parameters, body.to_string().into_bytes());
        self.send("probe", target, request).await
    }

    /// Replaces an object's status, on the same conditions.
    pub async fn update_status<T: DeserializeOwned>(&self, target: Target<'_>, body: &Value) -> Result<T, Error> {
        let request = Request::new(target.collection);
        let body = body.to_string().into_bytes();
        self.write("update", target, request.replace_subresource("status", target.name, &self.by_us(), body)).await
    }

    /// Deletes an object, if it has this UID.
    pub async fn delete(&self, target: Target<'_>, uid: String) -> Result<(), Error> {
        let preconditions = Some(Preconditions { uid: Some(uid), ..Preconditions::default() });
        let parameters = DeleteParams { preconditions, ..DeleteParams::background() };
        let request = Request::new(target.collection).delete(target.name, &parameters);
        self.write::<serde::de::IgnoredAny>("delete", target, request).await.map(drop)
    }

    fn by_us(&self) -> PostParams {
        PostParams { field_manager: Some(self.manager.to_owned()), ..PostParams::default() }
    }

    async fn write<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        target: Target<'_>,
        request: Built,
    ) -> Result<T, Error> {
        let answer = self.send(verb, target, request).await?;
        self.metrics.wrote(verb, target.kind);
        Ok(answer)
    }

    async fn send<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        target: Target<'_>,
        request: Built,
    ) -> Result<T, Error> {
        let answer = match request {
            Ok(request) => {
                let (kind, name, namespace) = (target.kind, target.name, target.namespace);
                let span = tracing::info_span!(target: SPANS, "request", verb, kind, name, namespace);
                self.client.request(request).instrument(span).await
            }
            Err(error) => Err(kube::Error::BuildRequest(error)),
        };
        answer.map_err(|cause| Error::Api { verb, object: target.to_string(), cause: Box::new(cause) })
    }
}

fn absent_is_none<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.code() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}
