//! What is on the server of one service: asked for in one statement, answered in one piece.

use postgres_protocol::escape::escape_literal;
use serde::Deserialize;

use crate::names::Names;

/// Everything on the server that belongs to one service.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Observed {
    /// The administrator is a superuser.
    pub superuser: bool,
    /// The cluster that the server is claimed for.
    #[serde(default)]
    pub cluster: Option<String>,
    /// The database of that name.
    pub database: Option<DatabaseSeen>,
    /// The role of that name.
    pub owner: Option<RoleSeen>,
    /// Further roles that may be logins of this service.
    #[serde(default)]
    pub logins: Vec<RoleSeen>,
}

/// A database.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct DatabaseSeen {
    /// The role that owns it.
    pub owner: String,
    /// It takes connections.
    pub open: bool,
    /// Everybody may connect.
    pub public: bool,
}

/// A role.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct RoleSeen {
    /// Its name.
    pub name: String,
    /// It may log in.
    pub login: bool,
    /// It is a superuser.
    pub superuser: bool,
    /// When the server stops accepting its password, RFC 3339 in whole seconds.
    pub ends_at: Option<String>,
    /// Of the owner: the administrator may act as it. Of a login: it acts as the owner.
    pub bound: bool,
}

/// The question whose answer, in one column, is the key as hexadecimal digits, and in the next an [`Observed`] as JSON.
pub(super) fn question(names: &Names, version: u32) -> String {
    let database = escape_literal(&names.database);
    // A range, which the index on names can answer. '~' comes after everything that a name of ours can go on with.
    let first = escape_literal(names.beginning());
    let end = escape_literal(&format!("{}~", names.beginning()));
    // Before 16, who is a member may act as the role.
    let may_act = if version >= 160_000 { "SET" } else { "MEMBER" };
    format!(
        "WITH owner AS (SELECT * FROM pg_roles WHERE rolname = {database}), \
         login AS (SELECT r.*, EXISTS (SELECT FROM pg_auth_members m JOIN owner o ON m.roleid = o.oid WHERE m.member = r.oid) \
             AND 'role=' || {database} = ANY (coalesce(r.rolconfig, '{{}}')) AS bound \
             FROM pg_roles r WHERE r.rolname >= {first} AND r.rolname < {end} AND r.rolname ~ '#[0-9]+$') \
         SELECT (SELECT encode(key, 'hex') FROM ankka.password_key), json_build_object(\
         'superuser', (SELECT rolsuper FROM pg_roles WHERE rolname = current_user), \
         'cluster', (SELECT cluster FROM ankka.installation), \
         'database', (SELECT json_build_object('owner', pg_get_userbyid(datdba), 'open', datallowconn, 'public', \
             EXISTS (SELECT FROM aclexplode(coalesce(datacl, acldefault('d', datdba))) WHERE grantee = 0 AND privilege_type = 'CONNECT')) \
             FROM pg_database WHERE datname = {database}), \
         'owner', (SELECT json_build_object('name', rolname, 'login', rolcanlogin, 'superuser', rolsuper, 'ends_at', {ENDS}, \
             'bound', pg_has_role(current_user, oid, '{may_act}')) FROM owner), \
         'logins', (SELECT coalesce(json_agg(json_build_object('name', rolname, 'login', rolcanlogin, 'superuser', rolsuper, \
             'ends_at', {ENDS}, 'bound', bound) ORDER BY oid), '[]') FROM login))",
    )
}

/// When a role's password ends, as text.
pub(super) const ENDS: &str =
    "to_char(nullif(rolvaliduntil, 'infinity') AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')";
