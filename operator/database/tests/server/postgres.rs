//! A real PostgreSQL, for one test: of Debian's packages, in a folder of its own, ended with the test.

use std::{
    net::TcpListener,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, User, geteuid},
};
use tempfile::TempDir;
use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};

/// The superuser. Its name has to be quoted, as names may have to be.
pub(crate) const SUPERUSER: &str = "the super user";
pub(crate) const PASSWORD: &str = "its password";

/// A server that listens on a port of the loopback.
pub(crate) struct Server {
    pub(crate) port: u16,
    process: Option<Child>,
    folder: TempDir,
    options: Vec<String>,
    /// A connection of the superuser that is kept.
    asking: OnceCell<Client>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// Starts one with further settings, `name=value` each.
    pub(crate) fn with(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        own(folder.path());
        run(program("cp").arg("-r").arg(template()).arg(folder.path().join("data")));
        let options = options.iter().map(ToString::to_string).collect();
        let mut server = Self { port: free_port(), process: None, folder, options, asking: OnceCell::new() };
        server.up();
        server
    }

    /// Starts it again, on its port.
    pub(crate) fn up(&mut self) {
        let mut command = program(bin().join("postgres"));
        command.arg("-D").arg(self.data()).args(["-p", &self.port.to_string(), "-F"]);
        for option in
            ["listen_addresses=127.0.0.1", "unix_socket_directories=", "autovacuum=off", "full_page_writes=off"]
        {
            command.args(["-c", option]);
        }
        for option in &self.options {
            command.args(["-c", option]);
        }
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("postgres starts");
        let until = Instant::now() + Duration::from_secs(30);
        let state = self.data().join("postmaster.pid");
        while !std::fs::read_to_string(&state).is_ok_and(|text| text.lines().any(|line| line.trim() == "ready")) {
            assert!(process.try_wait().expect("it can be asked").is_none(), "PostgreSQL has ended");
            assert!(Instant::now() < until, "PostgreSQL does not become ready");
            std::thread::sleep(Duration::from_millis(20));
        }
        self.process = Some(process);
    }

    /// Ends it, as a power cut would.
    pub(crate) fn down(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let pid = i32::try_from(process.id()).expect("a process id");
        kill(Pid::from_raw(pid), Signal::SIGQUIT).expect("our own process can be ended");
        process.wait().expect("it ends");
    }

    /// Where its data is.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A connection of the superuser to a database.
    pub(crate) async fn superuser(&self, database: &str) -> Client {
        self.login(database, SUPERUSER, PASSWORD).await.expect("the superuser is let in")
    }

    /// A connection of anybody.
    pub(crate) async fn login(
        &self,
        database: &str,
        user: &str,
        password: &str,
    ) -> Result<Client, tokio_postgres::Error> {
        login(self.port, database, user, password).await
    }

    async fn asking(&self) -> &Client {
        self.asking.get_or_init(|| self.superuser("postgres")).await
    }

    /// What one column of one row says.
    pub(crate) async fn ask(&self, sql: &str) -> String {
        let client = self.asking().await;
        for message in client.simple_query(sql).await.expect("an answer") {
            if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
                return row.get(0).unwrap_or_default().to_owned();
            }
        }
        String::new()
    }

    /// The superuser does something.
    pub(crate) async fn run(&self, statements: &[&str]) {
        let client = self.asking().await;
        for statement in statements {
            client.batch_execute(statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
        }
    }

    /// Takes away everything that is not there from the beginning.
    pub(crate) async fn clear(&self) {
        let client = self.asking().await;
        for (list, drop) in [
            (
                "SELECT format('%I', datname) FROM pg_database WHERE NOT datistemplate AND datname <> 'postgres'",
                "DATABASE",
            ),
            (
                "SELECT format('%I', rolname) FROM pg_roles WHERE oid >= 16384 AND NOT rolsuper AND rolname <> 'admin'",
                "ROLE",
            ),
        ] {
            for message in client.simple_query(list).await.expect("a list") {
                if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
                    let name = row.get(0).expect("a name");
                    let force = if drop == "DATABASE" { " WITH (FORCE)" } else { "" };
                    client.batch_execute(&format!("DROP {drop} {name}{force}")).await.expect("it goes");
                }
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.down();
    }
}

/// A connection to the server at a port of the loopback.
pub(crate) async fn login(
    port: u16,
    database: &str,
    user: &str,
    password: &str,
) -> Result<Client, tokio_postgres::Error> {
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(port).dbname(database).user(user).password(password);
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(async { drop(connection.await) });
    Ok(client)
}

/// A server's data as it is in the beginning, made once.
fn template() -> &'static Path {
    static TEMPLATE: OnceLock<TempDir> = OnceLock::new();
    let folder = TEMPLATE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        own(folder.path());
        let secret = folder.path().join("password");
        std::fs::write(&secret, PASSWORD).expect("the password is written");
        own(&secret);
        let mut initdb = program(bin().join("initdb"));
        initdb.arg("-D").arg(folder.path().join("data")).args(["--no-sync", "--auth=scram-sha-256", "--encoding=UTF8"]);
        initdb.args(["--locale=C", &format!("--username={SUPERUSER}")]).arg("--pwfile").arg(secret);
        run(&mut initdb);
        folder
    });
    folder.path().join("data").leak()
}

/// The latest PostgreSQL that Debian's packages have put here, or the one that `ANKKA_TEST_POSTGRES_BIN` names.
fn bin() -> PathBuf {
    if let Some(named) = std::env::var_os("ANKKA_TEST_POSTGRES_BIN") {
        return named.into();
    }
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = installed
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin"))))
        .filter(|(_, bin)| bin.join("postgres").exists())
        .max();
    newest.expect("these tests need a PostgreSQL server: apt-get install postgresql, or set ANKKA_TEST_POSTGRES_BIN").1
}

/// Who PostgreSQL runs as: it refuses to run as root.
fn user() -> Option<User> {
    geteuid().is_root().then(|| User::from_name("nobody").expect("users can be looked up").expect("there is a nobody"))
}

fn own(path: &Path) {
    if let Some(user) = user() {
        chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("root may give files away");
    }
}

fn program(path: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(path);
    if let Some(user) = user() {
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    command.current_dir("/").stdin(Stdio::null());
    command
}

fn run(command: &mut Command) {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a free port").port()
}
