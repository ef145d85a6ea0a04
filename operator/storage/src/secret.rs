//! The Secret with a credential, written without ever being read.
//!
//! What is there is told by a PUT that is only tried: 404 means that there is none, 422 on `type`, which nobody can change, that a
//! stranger's is there, and 200 that it is ours, with its resourceVersion and nothing else of it. The write itself is then a POST, or a
//! PUT on the condition that nobody else has written since: so of two writers that overlap one knows that it was too late.

use ankka_crds::names::{self, STORAGE_SECRET_TYPE};
use ankka_runtime::{
    error::Error,
    wire::{Target, Wire},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{names::Names, store::NewKey};

/// What is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSeen {
    /// There is none.
    Absent,
    /// It is ours, in this resourceVersion.
    Ours(String),
    /// A stranger's has its name, for which this is the message.
    Stranger(String),
}

/// What came of writing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// It holds the credential, in this resourceVersion.
    Done(String),
    /// Somebody else has written since it was looked at.
    Raced,
}

/// The Secret of one service.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// The service's names.
    pub names: &'a Names,
}

/// Of an answer, what is used: what was sent comes back with it, and is left where it is.
#[derive(Deserialize)]
struct Stored {
    metadata: ObjectMeta,
}

impl Stored {
    fn version(self) -> String {
        self.metadata.resource_version.unwrap_or_default()
    }
}

impl Place<'_> {
    /// What is there.
    ///
    /// # Errors
    /// When the API server refused or did not answer.
    pub async fn look(self, wire: &Wire) -> Result<SecretSeen, Error> {
        let (name, collection) = (names::storage_secret(self.names.service()), self.collection());
        match wire.probe::<Stored>(self.target(&name, &collection), &self.body(None, None)).await {
            Ok(stored) => Ok(SecretSeen::Ours(stored.version())),
            Err(error) if error.code() == Some(404) => Ok(SecretSeen::Absent),
            Err(error) if error.fields().contains(&"type") => Ok(SecretSeen::Stranger(format!(
                "a secret named '{name}' already exists in '{}' and is not managed by ankka; rename or delete it",
                self.namespace
            ))),
            Err(error) => Err(error),
        }
    }

    /// Writes the credential, if what is there is what was seen.
    ///
    /// # Errors
    /// When the API server refused or did not answer.
    pub async fn write(self, wire: &Wire, seen: &SecretSeen, key: &NewKey) -> Result<Written, Error> {
        let (name, collection) = (names::storage_secret(self.names.service()), self.collection());
        let target = self.target(&name, &collection);
        let answer = match seen {
            SecretSeen::Ours(version) => wire.update::<Stored>(target, &self.body(Some(key), Some(version))).await,
            _ => wire.create::<Stored>(target, &self.body(Some(key), None)).await,
        };
        match answer {
            Ok(stored) => Ok(Written::Done(stored.version())),
            // Gone or changed, or one that was made since. A namespace that is gone is seen by the next pass, too.
            Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(Written::Raced),
            Err(error) => Err(error),
        }
    }

    fn collection(self) -> String {
        format!("/api/v1/namespaces/{}/secrets", self.namespace)
    }

    fn target<'a>(self, name: &'a str, collection: &'a str) -> Target<'a>
    where
        Self: 'a,
    {
        Target { collection, kind: "Secret", name, namespace: Some(self.namespace) }
    }

    fn body(self, key: Option<&NewKey>, version: Option<&str>) -> Value {
        let mut body = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": names::storage_secret(self.names.service()),
                "namespace": self.namespace,
                "labels": self.names.labels(),
            },
            "type": STORAGE_SECRET_TYPE,
        });
        if let Some(version) = version {
            body["metadata"]["resourceVersion"] = version.into();
        }
        if let Some(key) = key {
            body["data"] = json!({
                "ANKKA_S3_ACCESS_KEY": base64(&key.id),
                "ANKKA_S3_SECRET_KEY": base64(key.secret.expose()),
            });
        }
        body
    }
}

fn base64(text: &str) -> Value {
    json!(k8s_openapi::ByteString(text.as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_the_two_variables_and_says_whose_it_is() {
        let names = Names::new("shop", "reports");
        let place = Place { namespace: "ankka-shop", names: &names };
        let key = NewKey { id: "GK1".to_owned(), secret: "s3cret".to_owned().into() };
        let secret: k8s_openapi::api::core::v1::Secret =
            serde_json::from_value(place.body(Some(&key), Some("7"))).expect("a Secret");
        let data: Vec<(String, String)> = secret
            .data
            .into_iter()
            .flatten()
            .map(|(key, value)| (key, String::from_utf8(value.0).expect("text")))
            .collect();
        let expected = [("ANKKA_S3_ACCESS_KEY", "GK1"), ("ANKKA_S3_SECRET_KEY", "s3cret")];
        assert_eq!(data, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert_eq!(secret.type_.as_deref(), Some("ankka.dev/storage-credential"));
        assert_eq!(secret.metadata.name.as_deref(), Some("reports-storage"));
        assert_eq!(secret.metadata.resource_version.as_deref(), Some("7"));
        assert_eq!(secret.metadata.labels, Some(ankka_crds::labels::identity("shop", "reports")));
        assert!(secret.metadata.owner_references.is_none(), "deleting the service leaves it");
    }

    #[test]
    fn what_is_only_tried_says_nothing_of_the_data() {
        let names = Names::new("shop", "reports");
        let body = Place { namespace: "ankka-shop", names: &names }.body(None, None);
        assert_eq!((&body["data"], &body["metadata"]["resourceVersion"]), (&Value::Null, &Value::Null));
    }
}
