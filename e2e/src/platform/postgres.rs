//! PostgreSQL, as a process on the bridge: Debian's programs, data that goes with the platform, and an administrator of the services'
//! databases who is no superuser. It does not wait for the disk: what it holds need not survive the machine.

use std::{
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use rand::{RngExt, distr::Alphanumeric};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    addresses::{NODE, POSTGRES_PORT},
    layout::Layout,
    pki,
    process::Daemon,
};
use crate::{digest::hex, packages, paths, run::Run};

/// Name of the server inside the cluster.
pub(crate) const HOST: &str = "postgres.database.svc.cluster.local";
/// The port under that name.
pub(crate) const PORT: u16 = 5432;
/// Makes the services' databases and roles.
const ADMINISTRATOR: &str = "ankka_administrator";
/// May do everything, through the socket only.
const SUPERUSER: &str = "postgres";
/// What is in the data folder and in the state once both are whole.
const READY: &str = "postgres-initialised";

/// The server as tests and the installation see it.
#[derive(Clone, Debug)]
pub struct Server {
    /// Name inside the cluster.
    pub host: &'static str,
    /// Port under that name.
    pub port: u16,
    /// Where it listens on this machine.
    pub address: std::net::SocketAddr,
    /// The role that makes databases and roles, and its password.
    pub administrator: (&'static str, String),
    /// The authority that signed its certificate.
    pub authority: PathBuf,
    /// What the server has written: every connection and every statement.
    pub log: PathBuf,
    programs: PathBuf,
    socket: PathBuf,
}

impl Server {
    /// Runs `statements` in `database` as the superuser. Returns rows as lines, with `|` between values.
    ///
    /// # Errors
    /// When the server does not answer or refuses one of them.
    pub async fn sql(&self, database: &str, statements: impl Into<Vec<u8>>) -> Result<String> {
        let [program, arguments @ ..] = self.psql();
        let quiet = ["--no-psqlrc", "--no-align", "--tuples-only", "--quiet", "--set=ON_ERROR_STOP=1"];
        let run = Run::new(program).args(arguments).args([format!("--dbname={database}")]).args(quiet);
        Ok(run.input(statements).text().await?.trim_end().to_owned())
    }

    /// A command line that connects to it as the superuser.
    pub fn psql(&self) -> [String; 4] {
        [
            self.programs.join("psql").display().to_string(),
            format!("--host={}", self.socket.display()),
            format!("--port={POSTGRES_PORT}"),
            format!("--username={SUPERUSER}"),
        ]
    }
}

pub(crate) fn daemon(layout: &Layout) -> Result<Daemon> {
    let data = data(layout);
    let settings = [
        format!("listen_addresses={NODE}"),
        format!("port={POSTGRES_PORT}"),
        format!("unix_socket_directories={}", data.display()),
        format!("hba_file={}", data.join("hosts.conf").display()),
        "max_connections=500".to_owned(),
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", data.join("server.crt").display()),
        format!("ssl_key_file={}", data.join("server.key").display()),
        "fsync=off".to_owned(),
        "synchronous_commit=off".to_owned(),
        "full_page_writes=off".to_owned(),
        "wal_level=minimal".to_owned(),
        "max_wal_senders=0".to_owned(),
        "log_connections=on".to_owned(),
        "log_disconnections=on".to_owned(),
        "log_statement=all".to_owned(),
        "log_timezone=UTC".to_owned(),
        "log_line_prefix=%m [%p] %u@%d %r %a ".to_owned(),
    ];
    let arguments = ["-D".to_owned(), data.display().to_string()];
    let settings = settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]);
    // It listens on the bridge alone, where requests through a service address come from any address of this machine.
    let access =
        format!("local all {SUPERUSER} trust\nhost all {SUPERUSER} all reject\nhost all all all scram-sha-256\n");
    let mut daemon = Daemon::new(programs()?.join("postgres"), arguments.into_iter().chain(settings))
        .file(data.join("hosts.conf"), access);
    daemon.user = Some(owner()?);
    daemon.interrupt = true;
    Ok(daemon)
}

pub(crate) async fn healthy() -> Result<()> {
    let (host, port) = (NODE.to_string(), POSTGRES_PORT.to_string());
    Run::new(programs()?.join("pg_isready")).args(["--host", &host, "--port", &port]).text().await.map(drop)
}

/// Makes the data folder, unless it is there. One that an earlier platform left is no use to this one.
pub(crate) async fn prepare(layout: &Layout) -> Result<()> {
    let data = data(layout);
    if data.join(READY).exists() && layout.file(READY).exists() {
        return Ok(());
    }
    remove(layout)?;
    let (user, group) = owner()?;
    let own = |path: &Path, mode: u32| -> Result<()> {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
        chown(path, Some(user), Some(group)).with_context(|| format!("failed to give {} away", path.display()))
    };
    std::fs::create_dir(&data).with_context(|| format!("failed to create {}", data.display()))?;
    own(&data, 0o700)?;
    Run::new(programs()?.join("initdb"))
        .args(["--pgdata".as_ref(), data.as_os_str()])
        .args(["--username", SUPERUSER, "--auth", "reject", "--encoding", "UTF8", "--locale", "C.UTF-8"])
        .args(["--no-sync", "--no-instructions"])
        .user(user, group)
        .text()
        .await
        .context("failed to make PostgreSQL's data folder")?;
    for (from, to) in [(layout.certificate("postgres"), "server.crt"), (layout.key("postgres"), "server.key")] {
        std::fs::copy(&from, data.join(to)).with_context(|| format!("failed to copy {from}"))?;
        own(&data.join(to), 0o600)?;
    }
    paths::write(&data.join(READY), "")?;
    paths::write(&layout.file(READY), "")
}

/// Makes the administrator: it may make roles and databases, and is no superuser.
pub(crate) async fn administrator(layout: &Layout) -> Result<()> {
    let server = server(layout)?;
    let (name, password) = &server.administrator;
    // The log of statements is no place for a password.
    let statements = format!(
        "SET log_statement = 'none';
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}') THEN CREATE ROLE {name} LOGIN; END IF;
        END $$;
        ALTER ROLE {name} CREATEROLE CREATEDB PASSWORD '{password}';"
    );
    server.sql("postgres", statements).await.map(drop).context("failed to make the administrator of databases")
}

pub(crate) fn server(layout: &Layout) -> Result<Server> {
    Ok(Server {
        host: HOST,
        port: PORT,
        address: (NODE, POSTGRES_PORT).into(),
        administrator: (ADMINISTRATOR, password(layout)?),
        authority: layout.certificate("ca").into(),
        log: layout.processes.log(super::Component::Postgres.name()),
        programs: programs()?,
        socket: data(layout),
    })
}

/// What gives the server its name inside the cluster, as YAML.
pub(crate) fn manifests() -> String {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "database"}});
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "postgres", "namespace": "database"},
        "spec": {"ports": [{"name": "postgres", "port": PORT, "targetPort": POSTGRES_PORT}]},
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "postgres",
            "namespace": "database",
            "labels": {"kubernetes.io/service-name": "postgres", "endpointslice.kubernetes.io/managed-by": "ankka-local"},
        },
        "addressType": "IPv4",
        "ports": [{"name": "postgres", "port": POSTGRES_PORT, "protocol": "TCP"}],
        "endpoints": [{"addresses": [NODE], "conditions": {"ready": true}}],
    });
    [namespace, service, slice].map(|object| object.to_string()).join("\n---\n")
}

/// Removes the data. The server must have ended.
pub(crate) fn remove(layout: &Layout) -> Result<()> {
    let data = data(layout);
    match std::fs::remove_dir_all(&data) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("failed to remove {}", data.display()))
        }
        _ => Ok(()),
    }
}

/// Outside the state, which only root may enter; named after it.
fn data(layout: &Layout) -> PathBuf {
    let state = Sha256::new_with_prefix(layout.paths.state.display().to_string());
    PathBuf::from(format!("/var/tmp/ankka-postgres-{}", hex(state, 4)))
}

fn programs() -> Result<PathBuf> {
    packages::postgres_programs().context("PostgreSQL is not installed (Debian's package: postgresql)")
}

/// The server refuses to run as root. Debian's package makes a user for it.
fn owner() -> Result<(u32, u32)> {
    for name in ["postgres", "nobody"] {
        if let Some(user) = nix::unistd::User::from_name(name)? {
            return Ok((user.uid.as_raw(), user.gid.as_raw()));
        }
    }
    bail!("there is no user to run PostgreSQL as, neither postgres nor nobody")
}

/// The administrator's password: made at first use, kept in the state.
fn password(layout: &Layout) -> Result<String> {
    let file = layout.file("database-password");
    if let Ok(password) = std::fs::read_to_string(&file) {
        return Ok(password);
    }
    let password: String = rand::rng().sample_iter(Alphanumeric).take(40).map(char::from).collect();
    pki::secret(&file, &password)?;
    Ok(password)
}
