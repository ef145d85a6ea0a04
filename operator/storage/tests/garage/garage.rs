//! A real Garage, for one test: in a folder of its own, ended with the test.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use reqwest::{Client, Method, StatusCode};
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// The token that may do everything. The controller never has it.
const ROOT: &str = "may do everything";

/// What the controller's own token may do.
const SCOPE: [&str; 10] = [
    "ListBuckets",
    "ListKeys",
    "GetBucketInfo",
    "CreateBucket",
    "UpdateBucket",
    "CreateKey",
    "UpdateKey",
    "DeleteKey",
    "AllowBucketKey",
    "DenyBucketKey",
];

/// A Garage that listens on ports of the loopback.
pub(crate) struct Garage {
    pub(crate) admin: u16,
    pub(crate) s3: u16,
    rpc: u16,
    process: Option<Child>,
    folder: TempDir,
    token: OnceCell<String>,
}

impl Garage {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let [admin, s3, rpc] = free_ports();
        let mut garage = Self { admin, s3, rpc, process: None, folder, token: OnceCell::new() };
        garage.up().await;
        garage
    }

    /// Starts it again, on its ports.
    pub(crate) async fn up(&mut self) {
        let Self { admin, s3, rpc, .. } = self;
        let folder = self.folder.path().display();
        let config = format!(
            "metadata_dir = \"{folder}/meta\"\ndata_dir = \"{folder}/data\"\ndb_engine = \"lmdb\"\nlmdb_map_size = \"256M\"\n\
             replication_factor = 1\nrpc_bind_addr = \"127.0.0.1:{rpc}\"\nrpc_public_addr = \"127.0.0.1:{rpc}\"\n\
             rpc_secret = \"{}\"\n[s3_api]\ns3_region = \"garage\"\napi_bind_addr = \"127.0.0.1:{s3}\"\n\
             [admin]\napi_bind_addr = \"127.0.0.1:{admin}\"\nadmin_token = \"{ROOT}\"\n",
            "0f".repeat(32)
        );
        let file = self.folder.path().join("garage.toml");
        std::fs::write(&file, config).expect("the configuration is written");
        let mut command = Command::new(program());
        command.arg("-c").arg(file).args(["server", "--single-node"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = command.spawn().expect("garage starts");
        let until = Instant::now() + Duration::from_secs(30);
        let health = format!("http://127.0.0.1:{}/health", self.admin);
        while !client().get(&health).send().await.is_ok_and(|answer| answer.status().is_success()) {
            assert!(process.try_wait().expect("it can be asked").is_none(), "Garage has ended");
            assert!(Instant::now() < until, "Garage does not become ready");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.process = Some(process);
    }

    /// Ends it, as a power cut would.
    pub(crate) fn down(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let pid = i32::try_from(process.id()).expect("a process id");
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("our own process can be ended");
        process.wait().expect("it ends");
    }

    /// A token of the scope that the controller has.
    pub(crate) async fn token(&self) -> String {
        let make = || async {
            let asked = json!({"name": "ankka-storage", "neverExpires": true, "scope": SCOPE});
            let made = self.root(Method::POST, "CreateAdminToken", &[], Some(asked)).await;
            made["secretToken"].as_str().expect("a token").to_owned()
        };
        self.token.get_or_init(make).await.clone()
    }

    /// The administrator does something.
    pub(crate) async fn root(
        &self,
        method: Method,
        operation: &str,
        query: &[(&str, &str)],
        body: Option<Value>,
    ) -> Value {
        let (status, answer) = call(self.admin, ROOT, method, operation, query, body).await;
        assert!(status.is_success(), "{operation}: {status}: {answer}");
        answer
    }

    /// A bucket as the administrator sees it; null when there is none.
    pub(crate) async fn bucket(&self, name: &str) -> Value {
        let (_, answer) = call(self.admin, ROOT, Method::GET, "GetBucketInfo", &[("globalAlias", name)], None).await;
        if answer["code"].is_null() { answer } else { Value::Null }
    }

    /// Every bucket's names.
    pub(crate) async fn buckets(&self) -> Vec<String> {
        let all = self.root(Method::GET, "ListBuckets", &[], None).await;
        let names = all.as_array().expect("a list").iter().map(|bucket| bucket["globalAliases"][0].clone());
        names.map(|name| name.as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The access keys whose names begin so.
    pub(crate) async fn keys(&self, beginning: &str) -> Vec<Value> {
        let all = self.root(Method::GET, "ListKeys", &[], None).await;
        let all = all.as_array().expect("a list").iter();
        all.filter(|key| key["name"].as_str().is_some_and(|name| name.starts_with(beginning))).cloned().collect()
    }

    /// A request to a bucket with a credential, as a service makes it.
    pub(crate) async fn s3(&self, bucket: &str, (id, secret): (&str, &str), action: S3<'_>) -> StatusCode {
        let endpoint = format!("http://127.0.0.1:{}", self.s3).parse().expect("an address");
        let bucket = Bucket::new(endpoint, UrlStyle::Path, bucket.to_owned(), "garage").expect("a bucket");
        let (credentials, valid) = (Credentials::new(id, secret), Duration::from_mins(1));
        let request = match action {
            S3::Put(object) => client().put(bucket.put_object(Some(&credentials), object).sign(valid)).body("content"),
            S3::Get(object) => client().get(bucket.get_object(Some(&credentials), object).sign(valid)),
            S3::Delete(object) => client().delete(bucket.delete_object(Some(&credentials), object).sign(valid)),
            S3::DeleteBucket => client().delete(bucket.delete_bucket(&credentials).sign(valid)),
        };
        request.send().await.expect("an answer").status()
    }
}

/// What a service asks of its bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) enum S3<'a> {
    Put(&'a str),
    Get(&'a str),
    Delete(&'a str),
    DeleteBucket,
}

impl Drop for Garage {
    fn drop(&mut self) {
        self.down();
    }
}

/// A call of the admin API.
pub(crate) async fn call(
    port: u16,
    token: &str,
    method: Method,
    operation: &str,
    query: &[(&str, &str)],
    body: Option<Value>,
) -> (StatusCode, Value) {
    let mut url: reqwest::Url = format!("http://127.0.0.1:{port}/v2/{operation}").parse().expect("an address");
    url.query_pairs_mut().extend_pairs(query);
    let mut request = client().request(method, url).bearer_auth(token);
    if let Some(body) = body {
        request = request.json(&body);
    }
    let answer = request.send().await.expect("an answer");
    let status = answer.status();
    (status, answer.json().await.unwrap_or_default())
}

/// An HTTP client. Those that libraries make need a provider of cryptography, too, which every process of ours installs first.
pub(crate) fn client() -> Client {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    });
    Client::builder().tls_certs_only([]).no_proxy().build().expect("a client")
}

/// The Garage that `cargo platform` has built, or the one that `ANKKA_TEST_GARAGE` names.
fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("ANKKA_TEST_GARAGE") {
        return named.into();
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"))).expect("a cache");
    let tools = std::fs::read_dir(cache.join("ankka/tools")).into_iter().flatten().flatten();
    let built = tools.filter(|folder| folder.file_name().to_string_lossy().starts_with("garage-"));
    let newest = built.max_by_key(|folder| folder.metadata().and_then(|metadata| metadata.modified()).ok());
    let program = newest.map(|folder| folder.path().join("bin/garage"));
    program.expect("these tests need Garage: `cargo platform up` builds it, or set ANKKA_TEST_GARAGE")
}

fn free_ports() -> [u16; 3] {
    // All are held until all are known.
    let listeners = [0; 3].map(|_| TcpListener::bind(("127.0.0.1", 0)).expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}
