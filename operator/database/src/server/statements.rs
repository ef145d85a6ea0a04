//! Steps, and the statements that carry them out. Every name is quoted, and no password is in any of them: the server is sent
//! what it keeps instead.

use std::time::Duration;

use postgres_protocol::escape::{escape_identifier, escape_literal};

use super::facts::ENDS;
use crate::{names::Names, password::PasswordKey};

/// One change on the server. Each happens wholly or not at all, and is safe to repeat when it was not seen to have happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make the role that owns the database; it logs in when it is the login in use.
    MakeOwner {
        /// It is the login in use.
        logs_in: bool,
    },
    /// Let the administrator, who is no superuser, act as the owner.
    Control,
    /// Make the database, closed to everybody.
    MakeDatabase,
    /// Let nobody but the owner connect, and then let it be connected to.
    Open,
    /// Make the login of a later generation, which acts as the owner.
    MakeLogin(i64),
    /// Have the login of a later generation act as the owner.
    BindLogin(i64),
    /// Let a login log in with the password that is derived for it.
    SetPassword(i64),
}

impl Step {
    /// What it does, as errors say it.
    pub fn doing(&self, names: &Names) -> String {
        let (database, login) = (&names.database, |generation: &i64| names.login(*generation));
        match self {
            Self::MakeOwner { .. } => format!("create role '{database}'"),
            Self::Control => format!("become a member of role '{database}'"),
            Self::MakeDatabase => format!("create database '{database}'"),
            Self::Open => format!("restrict who may connect to database '{database}'"),
            Self::MakeLogin(generation) => format!("create login '{}'", login(generation)),
            Self::BindLogin(generation) => format!("have login '{}' act as '{database}'", login(generation)),
            Self::SetPassword(generation) => format!("set the password of login '{}'", login(generation)),
        }
    }

    /// What metrics count it as: a verb and a kind.
    pub(super) fn counted(&self) -> (&'static str, &'static str) {
        match self {
            Self::MakeOwner { .. } | Self::MakeLogin(_) => ("create", "role"),
            Self::MakeDatabase => ("create", "database"),
            Self::Open => ("update", "database"),
            Self::Control | Self::BindLogin(_) | Self::SetPassword(_) => ("update", "role"),
        }
    }

    /// The statements, which the server carries out in one transaction. `superuser` is what the administrator is.
    pub(super) fn sql(&self, names: &Names, key: &PasswordKey, superuser: bool, version: u32) -> String {
        let owner = escape_identifier(&names.database);
        let login = |generation: &i64| escape_identifier(&names.login(*generation));
        let password = |generation: i64| {
            format!("LOGIN PASSWORD {}", escape_literal(&key.password(&names.login(generation)).verifier()))
        };
        let acts = |login: &str| {
            format!("GRANT {owner} TO {login}; ALTER ROLE {login} SET role = {};", escape_literal(&names.database))
        };
        match self {
            Self::MakeOwner { logs_in } => {
                let login = if *logs_in { password(0) } else { "NOLOGIN".to_owned() };
                let control = if superuser { String::new() } else { control(&owner, version) };
                format!("CREATE ROLE {owner} {login};{control}")
            }
            Self::Control => control(&owner, version),
            // Closed: between this and the next step everybody might connect. From template0, because one that somebody is
            // connected to cannot be copied.
            Self::MakeDatabase => {
                format!("CREATE DATABASE {owner} OWNER {owner} TEMPLATE template0 ALLOW_CONNECTIONS false")
            }
            Self::Open => format!(
                "REVOKE CONNECT ON DATABASE {owner} FROM PUBLIC; ALTER DATABASE {owner} ALLOW_CONNECTIONS true;"
            ),
            Self::MakeLogin(generation) => {
                let login = login(generation);
                format!("CREATE ROLE {login} {};{}", password(*generation), acts(&login))
            }
            Self::BindLogin(generation) => acts(&login(generation)),
            Self::SetPassword(generation) => format!("ALTER ROLE {} {};", login(generation), password(*generation)),
        }
    }
}

/// From 16 on, who makes a role may administer it but not act as it, until they allow themselves to.
fn control(owner: &str, version: u32) -> String {
    let options = if version >= 160_000 { " WITH INHERIT TRUE, SET TRUE" } else { "" };
    format!("GRANT {owner} TO CURRENT_USER{options};")
}

/// Gives each of these logins an end, unless it has one: an end is never moved.
pub(super) fn end(logins: &[String], grace: Duration) -> String {
    let ends = logins.iter().map(|login| {
        format!(
            "IF EXISTS (SELECT FROM pg_roles WHERE rolname = {login} AND coalesce(rolvaliduntil, 'infinity') = 'infinity') THEN \
             EXECUTE format('ALTER ROLE %I VALID UNTIL %L', {login}, \
             date_trunc('second', now()) + make_interval(secs => {})); END IF;",
            grace.as_secs(),
            login = escape_literal(login),
        )
    });
    format!("DO {}", escape_literal(&format!("BEGIN {} END", ends.collect::<String>())))
}

/// Asks for the ends of these logins: one row each, name and end.
pub(super) fn ends(logins: &[String]) -> String {
    let names: Vec<String> = logins.iter().map(|login| escape_literal(login)).collect();
    format!("SELECT rolname, {ENDS} FROM pg_roles WHERE rolname IN ({})", names.join(", "))
}

/// The platform's own database on the server: only the administrator may connect to it.
pub(super) const OWN_DATABASE: &str = "ankka";

/// Whether the platform's own database still lacks its key, or lets everybody in: `t` or `f`.
pub(super) const IS_UNPREPARED: &str = "SELECT to_regclass('ankka.password_key') IS NULL \
    OR to_regclass('ankka.installation') IS NULL \
    OR has_database_privilege('public', current_database(), 'CONNECT')";

/// Makes the platform's own database what it should be. Whoever comes second waits for the first and changes nothing. The
/// server makes the key, so that it is in no statement.
pub(super) const PREPARE: &str = "SELECT pg_advisory_xact_lock(hashtext('ankka.password_key')); \
    REVOKE CONNECT ON DATABASE ankka FROM PUBLIC; \
    CREATE SCHEMA IF NOT EXISTS ankka; \
    CREATE TABLE IF NOT EXISTS ankka.password_key (\
        single boolean PRIMARY KEY DEFAULT true CHECK (single), key bytea NOT NULL CHECK (octet_length(key) = 32)); \
    CREATE TABLE IF NOT EXISTS ankka.installation (\
        single boolean PRIMARY KEY DEFAULT true CHECK (single), cluster text NOT NULL); \
    INSERT INTO ankka.password_key (key) \
        SELECT sha256(convert_to(string_agg(gen_random_uuid()::text, ''), 'UTF8')) FROM generate_series(1, 4) \
        ON CONFLICT DO NOTHING;";

/// Which cluster the server is claimed for.
pub(super) const CLAIMED_FOR: &str = "SELECT cluster FROM ankka.installation";

/// For whom the server is claimed. Names are made of project and service alone, so that two clusters on one server would share
/// the databases of services of the same name.
#[derive(Clone, Debug)]
pub struct Claim {
    /// This cluster.
    pub cluster: String,
    /// The cluster whose place it takes.
    pub take_over: Option<String>,
}

impl Claim {
    /// Whether there is something to claim on a server that is claimed for `present`.
    pub(super) fn is_open(&self, present: Option<&str>) -> bool {
        present.is_none_or(|present| present != self.cluster && Some(present) == self.take_over.as_deref())
    }

    /// Claims a server that is nobody's, or the other cluster's whose place is taken. Of two who come at once, one has it.
    pub(super) fn sql(&self) -> String {
        let otherwise = self.take_over.as_ref().map_or_else(
            || "NOTHING".to_owned(),
            |former| {
                format!("UPDATE SET cluster = excluded.cluster WHERE installation.cluster = {}", escape_literal(former))
            },
        );
        let cluster = escape_literal(&self.cluster);
        format!("INSERT INTO ankka.installation (cluster) VALUES ({cluster}) ON CONFLICT (single) DO {otherwise}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(step: &Step, superuser: bool, version: u32) -> String {
        let key = PasswordKey::from_hex(&"07".repeat(32)).expect("a key");
        let sql = step.sql(&Names::new("shop-eu", "order\"; DROP"), &key, superuser, version);
        // The salt differs each time.
        match sql.split_once("SCRAM") {
            Some((before, after)) => {
                format!("{before}SCRAM…{}", &after[after.find('\'').expect("the end of the literal")..])
            }
            None => sql,
        }
    }

    #[test]
    fn every_name_is_quoted_and_no_password_is_sent() {
        assert_eq!(
            sql(&Step::MakeOwner { logs_in: true }, true, 150_000),
            r#"CREATE ROLE "shop-eu.order""; DROP" LOGIN PASSWORD 'SCRAM…';"#
        );
        assert_eq!(
            sql(&Step::MakeDatabase, true, 150_000),
            r#"CREATE DATABASE "shop-eu.order""; DROP" OWNER "shop-eu.order""; DROP" TEMPLATE template0 ALLOW_CONNECTIONS false"#
        );
        assert_eq!(
            sql(&Step::MakeLogin(2), true, 150_000),
            r#"CREATE ROLE "shop-eu.order""; DROP#2" LOGIN PASSWORD 'SCRAM…';GRANT "shop-eu.order""; DROP" TO "shop-eu.order""; DROP#2"; ALTER ROLE "shop-eu.order""; DROP#2" SET role = 'shop-eu.order"; DROP';"#
        );
    }

    #[test]
    fn a_server_is_claimed_once_and_taken_over_from_the_cluster_that_was_named() {
        let claim =
            |take_over: Option<&str>| Claim { cluster: "b'".to_owned(), take_over: take_over.map(str::to_owned) };
        assert!(claim(None).is_open(None));
        assert!(!claim(None).is_open(Some("a")) && !claim(Some("b'")).is_open(Some("b'")));
        assert!(claim(Some("a")).is_open(Some("a")) && !claim(Some("a")).is_open(Some("c")));
        let insert = "INSERT INTO ankka.installation (cluster) VALUES ('b''') ON CONFLICT (single) DO";
        assert_eq!(claim(None).sql(), format!("{insert} NOTHING"));
        let update = "UPDATE SET cluster = excluded.cluster WHERE installation.cluster = 'a'";
        assert_eq!(claim(Some("a")).sql(), format!("{insert} {update}"));
    }

    #[test]
    fn an_administrator_who_is_no_superuser_lets_itself_act_as_the_owner() {
        let made = Step::MakeOwner { logs_in: false };
        assert!(sql(&made, false, 150_000).ends_with(r#"NOLOGIN;GRANT "shop-eu.order""; DROP" TO CURRENT_USER;"#));
        assert!(sql(&made, false, 160_000).ends_with("TO CURRENT_USER WITH INHERIT TRUE, SET TRUE;"));
        assert!(!sql(&made, true, 180_000).contains("GRANT"));
    }
}
