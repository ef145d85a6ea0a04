//! The Secret with a login, written without ever being read.
//!
//! A PUT without a resourceVersion answers with what was sent and nothing else. It is the whole protocol: 404 means that there
//! is none, and it is created; 422 on `type`, which nobody can change, means that a stranger's is there; 200 means that
//! what is there now is ours. One that says the same as before moves no resourceVersion and is stored nowhere. What somebody has
//! changed in it, its metadata included, is put right by the same request, which no comparison with earlier intents could see.

use ankka_crds::names::{self, DATABASE_SECRET_TYPE};
use ankka_runtime::{
    error::Error,
    wire::{Target, Wire},
};
use serde_json::{Value, json};

use crate::{names::Names, password::Password, server::Connection};

/// What came of writing it.
#[derive(Debug)]
pub enum Written {
    /// It holds the login.
    Done,
    /// A stranger's has its name, and was left alone.
    Stranger(String),
}

/// The Secret of the service `name` in `namespace`, with this login.
pub fn body(
    namespace: &str,
    name: &str,
    names: &Names,
    connection: &Connection,
    login: &str,
    password: &Password,
) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": names::database_secret(name), "namespace": namespace, "labels": names.labels()},
        "type": DATABASE_SECRET_TYPE,
        "data": {
            "ANKKA_DB_HOST": base64(&connection.host),
            "ANKKA_DB_PORT": base64(&connection.port.to_string()),
            "ANKKA_DB_NAME": base64(&names.database),
            "ANKKA_DB_USER": base64(login),
            "ANKKA_DB_PASSWORD": base64(password.expose()),
        },
    })
}

fn base64(text: &str) -> Value {
    json!(k8s_openapi::ByteString(text.as_bytes().to_vec()))
}

/// Writes the Secret of the service `name` in `namespace`.
///
/// # Errors
/// When the API server refused or did not answer.
pub async fn write(wire: &Wire, namespace: &str, name: &str, body: &Value) -> Result<Written, Error> {
    let secret = names::database_secret(name);
    let collection = format!("/api/v1/namespaces/{namespace}/secrets");
    let target = Target { collection: &collection, kind: "Secret", name: &secret, namespace: Some(namespace) };
    let answer = match wire.update::<serde::de::IgnoredAny>(target, body).await {
        Err(error) if error.code() == Some(404) => wire.create::<serde::de::IgnoredAny>(target, body).await,
        other => other,
    };
    match answer {
        Ok(_) => Ok(Written::Done),
        Err(error) if error.fields().contains(&"type") => Ok(Written::Stranger(format!(
            "a secret named '{secret}' already exists in '{namespace}' and is not managed by ankka; rename or delete it"
        ))),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::server::Tls;

    #[test]
    fn it_holds_the_five_variables_and_says_whose_it_is() {
        let connection = Connection {
            host: "db.example.com".to_owned(),
            port: 5433,
            tls: Tls::Disable,
            authorities: None,
            user: "admin".to_owned(),
            password: Password::from("secret".to_owned()),
            maintenance_database: "postgres".to_owned(),
            connect_timeout: Duration::from_secs(1),
            statement_timeout: Duration::from_secs(1),
        };
        let password = Password::from("Abc123".to_owned());
        let body = body("ankka-shop", "cart", &Names::new("shop", "cart"), &connection, "shop.cart#1", &password);
        let secret: k8s_openapi::api::core::v1::Secret = serde_json::from_value(body).expect("a Secret");
        let data: Vec<(String, String)> = secret
            .data
            .into_iter()
            .flatten()
            .map(|(key, value)| (key, String::from_utf8(value.0).expect("text")))
            .collect();
        let expected = [
            ("ANKKA_DB_HOST", "db.example.com"),
            ("ANKKA_DB_NAME", "shop.cart"),
            ("ANKKA_DB_PASSWORD", "Abc123"),
            ("ANKKA_DB_PORT", "5433"),
            ("ANKKA_DB_USER", "shop.cart#1"),
        ];
        assert_eq!(data, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert_eq!(secret.type_.as_deref(), Some("ankka.dev/database-credential"));
        assert_eq!(secret.metadata.labels, Some(ankka_crds::labels::identity("shop", "cart")));
        assert!(secret.metadata.owner_references.is_none(), "deleting the service leaves it");
    }
}
