//! Settings, from environment variables. A value that cannot be is refused by name; nothing is guessed.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use ankka_crds::names;
use ankka_runtime::{
    queue::Timing,
    settings::{Reader, Refusal},
};

use crate::{
    password::Password,
    server::{Connection, Tls},
};

/// Everything that is set from outside.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Prefix of project namespaces.
    pub prefix: String,
    /// The namespace the platform itself runs in.
    pub own_namespace: String,
    /// Where the server is, and who administers it.
    pub connection: Connection,
    /// The cluster from which this one takes the server over.
    pub take_over: Option<String>,
    /// How many databases are worked on at a time, each with a connection.
    pub connections: usize,
    /// How long a login that was replaced is still accepted.
    pub grace: Duration,
    /// When databases are looked at again.
    pub timing: Timing,
    /// The name of this replica.
    pub pod: String,
    /// Where metrics and health are served.
    pub listen: SocketAddr,
}

impl Settings {
    /// Reads all settings by `variable`, which answers with a variable's value, or refuses all that cannot be.
    ///
    /// # Errors
    /// Every value that cannot be.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Vec<Refusal>> {
        let mut reader = Reader::new(variable);
        let prefix =
            reader.text_that("ANKKA_K8S_NAMESPACE_PREFIX", names::DEFAULT_PREFIX, names::is_prefix, names::PREFIX_RULE);
        let timing = reader.timing(
            "ANKKA_DATABASE_RESYNC_SECONDS",
            ("ANKKA_DATABASE_RETRY_MIN_BACKOFF_SECONDS", 1),
            ("ANKKA_DATABASE_RETRY_MAX_BACKOFF_SECONDS", 30),
        );
        let settings = Self {
            prefix,
            own_namespace: reader.text("POD_NAMESPACE", "ankka-system"),
            connection: connection(&mut reader),
            take_over: reader.get("ANKKA_DATABASE_TAKE_OVER"),
            connections: reader.number("ANKKA_DATABASE_CONNECTIONS", 4, 1..=64),
            grace: reader.seconds("ANKKA_DATABASE_CREDENTIAL_GRACE_SECONDS", 3600, 1..=31_536_000),
            timing,
            pod: reader.text("POD_NAME", "ankka-database"),
            listen: reader.address("ANKKA_LISTEN", SocketAddr::from(([0, 0, 0, 0], 8080))),
        };
        reader.finish(settings)
    }
}

fn connection(reader: &mut Reader<impl Fn(&str) -> Option<String>>) -> Connection {
    Connection {
        host: reader
            .required("ANKKA_DATABASE_HOST", "the name or address of the PostgreSQL server")
            .unwrap_or_default(),
        port: reader.number("ANKKA_DATABASE_PORT", 5432, 1..=65535),
        tls: tls(reader),
        authorities: reader.get("ANKKA_DATABASE_CA_FILE").map(PathBuf::from),
        user: reader
            .required("ANKKA_DATABASE_USER", "the login of an administrator of that server")
            .unwrap_or_default(),
        password: Password::from(
            reader.required("ANKKA_DATABASE_PASSWORD", "that administrator's password").unwrap_or_default(),
        ),
        maintenance_database: reader.text("ANKKA_DATABASE_MAINTENANCE_DATABASE", "postgres"),
        connect_timeout: reader.seconds("ANKKA_DATABASE_CONNECT_TIMEOUT_SECONDS", 5, 1..=300),
        statement_timeout: reader.seconds("ANKKA_DATABASE_STATEMENT_TIMEOUT_SECONDS", 30, 1..=3600),
    }
}

fn tls(reader: &mut Reader<impl Fn(&str) -> Option<String>>) -> Tls {
    let Some(value) = reader.get("ANKKA_DATABASE_TLS") else { return Tls::default() };
    match value.as_str() {
        "disable" => Tls::Disable,
        "require" => Tls::Require,
        "verify-ca" => Tls::VerifyCa,
        "verify-full" => Tls::VerifyFull,
        _ => {
            reader.refuse("ANKKA_DATABASE_TLS", &value, "disable, require, verify-ca or verify-full".to_owned());
            Tls::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use ankka_crds::settings;

    use super::*;

    const NEEDED: [(&str, &str); 3] = [
        ("ANKKA_DATABASE_HOST", "db.example.com"),
        ("ANKKA_DATABASE_USER", "admin"),
        ("ANKKA_DATABASE_PASSWORD", "do not show"),
    ];

    fn read(variables: &[(&str, &str)]) -> Result<Settings, Vec<String>> {
        Settings::read(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
            .map_err(|refused| refused.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_server_and_its_administrator_are_enough() {
        let settings = read(&NEEDED).expect("valid");
        assert_eq!((settings.connection.port, settings.connection.tls), (5432, Tls::VerifyFull));
        assert_eq!((settings.connections, settings.grace), (4, Duration::from_hours(1)));
        assert_eq!(settings.timing.resync, Duration::from_mins(5));
        assert!(!format!("{settings:?}").contains("do not show"));
    }

    #[test]
    fn what_is_missing_or_cannot_be_is_refused_by_name() {
        assert_eq!(
            read(&[("ANKKA_DATABASE_TLS", "prefer"), ("ANKKA_DATABASE_CONNECTIONS", "0")]).expect_err("refused"),
            [
                "ANKKA_DATABASE_HOST is ''; it must be the name or address of the PostgreSQL server",
                "ANKKA_DATABASE_TLS is 'prefer'; it must be disable, require, verify-ca or verify-full",
                "ANKKA_DATABASE_USER is ''; it must be the login of an administrator of that server",
                "ANKKA_DATABASE_PASSWORD is ''; it must be that administrator's password",
                "ANKKA_DATABASE_CONNECTIONS is '0'; it must be a whole number from 1 to 64",
            ]
        );
    }

    #[test]
    fn what_is_read_is_what_the_reference_lists_with_its_defaults() {
        let read = std::cell::RefCell::new(std::collections::BTreeSet::new());
        let note = |name: &str| {
            read.borrow_mut().insert(name.to_owned());
            None
        };
        Settings::read(note).expect_err("the server is required");
        ankka_runtime::settings::log_filter(note).expect("nothing is required");
        ankka_telemetry::Collector::read(note).expect("nothing is required");
        let mut listed = settings::names(settings::DATABASE);
        listed.insert("RUST_LOG".to_owned());
        assert_eq!(read.into_inner(), listed);
        let needed = |name: &str| NEEDED.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let given = |name: &str| settings::default_of(settings::DATABASE, name).or_else(|| needed(name));
        assert_eq!(format!("{:?}", Settings::read(given)), format!("{:?}", Settings::read(needed)));
    }
}
