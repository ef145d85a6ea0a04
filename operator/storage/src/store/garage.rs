//! Garage's admin API, version 2: one function a call.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ankka_runtime::{metrics::Metrics, tenure::Tenure};
use anyhow::Context;
use jiff::Timestamp;
use reqwest::{Certificate, Client, Method, Response, StatusCode, Url, redirect::Policy};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{
    answers::{BucketListed, BucketSeen, KeyChanged, KeySeen, NewKey, Permissions, Problem, rules},
    refusal::StoreError,
};
use crate::settings::Store;

/// How many calls are under way at a time. Each costs Garage tens of milliseconds of computing, which services' own requests wait for.
const CALLS: usize = 2;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How many entries one page of a list holds.
const PAGE: usize = 10_000;

/// How much of a refusal's own words is passed on, in characters.
const WORDS: usize = 300;

/// The administrator's token. Nothing shows it.
#[derive(Clone)]
pub struct Token(String);

impl From<String> for Token {
    fn from(token: String) -> Self {
        Self(token)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// A Garage.
pub struct Garage {
    http: Client,
    base: Url,
    token: Token,
    tenure: Arc<Tenure>,
    metrics: Arc<Metrics>,
    turns: Semaphore,
    /// Why it cannot be reached, for as long as it cannot.
    down: Mutex<Option<String>>,
}

impl Garage {
    /// The one that `store` describes, to which nothing is written unless `tenure` holds.
    ///
    /// # Errors
    /// When the authorities that are to be trusted cannot be read.
    pub fn new(store: &Store, tenure: Arc<Tenure>, metrics: Arc<Metrics>) -> anyhow::Result<Self> {
        let mut http = Client::builder()
            .connect_timeout(CONNECT)
            .timeout(store.timeout)
            .redirect(Policy::none())
            .no_proxy()
            .user_agent("ankka-storage");
        if let Some(file) = &store.authorities {
            let shown = file.display();
            let pem = std::fs::read(file).with_context(|| format!("failed to read {shown}"))?;
            let trusted = Certificate::from_pem_bundle(&pem).with_context(|| format!("{shown} has no certificates"))?;
            http = http.tls_certs_only(trusted);
        } else if store.admin.scheme() == "http" {
            // No authority is needed, and the system may have none.
            http = http.tls_certs_only([]);
        }
        let http = http.build().context("failed to build a client for the object store")?;
        let (base, token) = (store.admin.clone(), store.token.clone());
        Ok(Self { http, base, token, tenure, metrics, turns: Semaphore::new(CALLS), down: Mutex::default() })
    }

    /// The bucket of this name; none when there is none.
    ///
    /// # Errors
    /// When that cannot be told.
    pub async fn bucket(&self, name: &str) -> Result<Option<BucketSeen>, StoreError> {
        let call = Call::get("GetBucketInfo").query("globalAlias", name);
        self.send(call).await?.or_absent("NoSuchBucket")
    }

    /// Makes a bucket.
    ///
    /// # Errors
    /// When the store refused or did not answer; in the latter case it may have been made.
    pub async fn make_bucket(&self, name: &str) -> Result<BucketSeen, StoreError> {
        let answer = self.write(Call::post("CreateBucket", json!({"globalAlias": name}))).await?;
        let made = answer.read_or_raced("BucketAlreadyExists")?;
        self.metrics.wrote("create", "bucket");
        Ok(made)
    }

    /// Sets the bucket's CORS rule: it admits these origins; none means no rule.
    ///
    /// # Errors
    /// As [`Self::make_bucket`], and when the store did not keep the rule.
    pub async fn admit(&self, bucket: &str, origins: &[String]) -> Result<BucketSeen, StoreError> {
        let call = Call::post("UpdateBucket", json!({"corsRules": rules(origins)})).query("id", bucket);
        let changed: BucketSeen = self.write(call).await?.read()?;
        self.metrics.wrote("update", "bucket");
        if !changed.admits(origins) {
            let why = "the object store did not keep the bucket's CORS rule; that takes Garage 2.3 or later";
            return Err(StoreError::Refused(why.to_owned()));
        }
        Ok(changed)
    }

    /// Makes an access key that reaches nothing yet.
    ///
    /// # Errors
    /// As [`Self::make_bucket`].
    pub async fn make_key(&self, name: &str) -> Result<NewKey, StoreError> {
        let made = self.write(Call::post("CreateKey", json!({"name": name}))).await?.read()?;
        self.metrics.wrote("create", "key");
        Ok(made)
    }

    /// Lets an access key into a bucket, as its owner, and makes sure that it is.
    ///
    /// # Errors
    /// As [`Self::make_bucket`].
    pub async fn allow(&self, bucket: &str, key: &str) -> Result<BucketSeen, StoreError> {
        let body = json!({"bucketId": bucket, "accessKeyId": key, "permissions": Permissions::ALL});
        let changed: BucketSeen = self.write(Call::post("AllowBucketKey", body)).await?.read()?;
        self.metrics.wrote("update", "bucket");
        if !changed.is_open_to(key) {
            let why = format!("the object store granted access key {key} its bucket, and then did not say so");
            return Err(StoreError::Unavailable(why));
        }
        Ok(changed)
    }

    /// Gives an access key an end, and says when that is. None when there is no such key any more.
    ///
    /// # Errors
    /// As [`Self::make_bucket`].
    pub async fn end(&self, key: &str, at: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let call = Call::post("UpdateKey", json!({"expiration": at.to_string()})).query("id", key);
        let changed: Option<KeyChanged> = self.write(call).await?.or_absent("NoSuchAccessKey")?;
        self.metrics.wrote("update", "key");
        match changed {
            Some(KeyChanged { expiration: None }) => Err(StoreError::Unavailable(format!(
                "the object store gave access key {key} an end and did not keep it"
            ))),
            Some(KeyChanged { expiration }) => Ok(expiration),
            None => Ok(None),
        }
    }

    /// Deletes an access key, unless it is gone.
    ///
    /// # Errors
    /// As [`Self::make_bucket`].
    pub async fn delete_key(&self, key: &str) -> Result<(), StoreError> {
        let call = Call::post("DeleteKey", json!({})).query("id", key);
        self.write(call).await?.done_or_absent("NoSuchAccessKey")?;
        self.metrics.wrote("delete", "key");
        Ok(())
    }

    /// Every bucket.
    pub(super) async fn buckets(&self) -> Result<Vec<BucketListed>, StoreError> {
        self.list("ListBuckets", |bucket: &BucketListed| bucket.id.clone()).await
    }

    /// Every access key.
    pub(super) async fn keys(&self) -> Result<Vec<KeySeen>, StoreError> {
        self.list("ListKeys", |key: &KeySeen| key.id.clone()).await
    }

    /// All pages of a list. Each begins with the entry that ended the one before; a store that knows no pages answers everything at once.
    async fn list<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        id: impl Fn(&T) -> String,
    ) -> Result<Vec<T>, StoreError> {
        let mut all: Vec<T> = Vec::new();
        let mut known = HashSet::new();
        loop {
            let mut call = Call::get(operation).query("limit", &PAGE.to_string());
            if let Some(last) = all.last() {
                call = call.query("offset", &id(last));
            }
            let page: Vec<T> = self.send(call).await?.read()?;
            let full = page.len() >= PAGE;
            let before = all.len();
            all.extend(page.into_iter().filter(|entry| known.insert(id(entry))));
            if !full || all.len() == before {
                return Ok(all);
            }
        }
    }

    /// Why the store cannot be reached; none when it can. Asks for no permission, so that the answer costs nothing.
    pub(super) async fn unreachable(&self, patience: Duration) -> Option<String> {
        let request = self.http.get(self.url("health")).timeout(patience);
        match request.send().await {
            // One that refuses has been reached: passes say what it refuses.
            Ok(response) if !response.status().is_server_error() => None,
            Ok(response) => Some(format!("the object store answered {} to GET /health", response.status().as_u16())),
            Err(error) => Some(self.unreached(&error)),
        }
    }

    /// Takes in why the store cannot be reached, or that it can. True when the one has become the other. The first reason stays, so
    /// that a store on its way up changes no status.
    pub(super) fn found(&self, unreachable: Option<String>) -> bool {
        let mut down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*down, &unreachable) {
            (None, Some(reason)) => {
                tracing::warn!(reason, "the object store cannot be reached: passes wait for it without trying");
            }
            (Some(_), None) => tracing::info!("the object store can be reached again"),
            _ => return false,
        }
        *down = unreachable;
        true
    }

    fn reachable(&self) -> Result<(), StoreError> {
        let down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        down.clone().map_or(Ok(()), |reason| Err(StoreError::Down(reason)))
    }

    async fn write(&self, call: Call) -> Result<Answer, StoreError> {
        self.reachable()?;
        let turn = self.turns.acquire().await;
        if !self.tenure.holds() {
            return Err(StoreError::LeaseLost);
        }
        self.carry_out(call, turn).await
    }

    async fn send(&self, call: Call) -> Result<Answer, StoreError> {
        self.reachable()?;
        let turn = self.turns.acquire().await;
        self.carry_out(call, turn).await
    }

    /// Makes the call; `turn` is what allows it.
    async fn carry_out<T>(&self, call: Call, turn: T) -> Result<Answer, StoreError> {
        let mut url = self.url(&format!("v2/{}", call.operation));
        url.query_pairs_mut().extend_pairs(&call.query);
        let mut request = self.http.request(call.method.clone(), url).bearer_auth(&self.token.0);
        if let Some(body) = &call.body {
            request = request.json(body);
        }
        let answered = async {
            let response: Response = request.send().await?;
            let status = response.status();
            Ok((status, response.bytes().await?))
        };
        let (status, body) =
            answered.await.map_err(|error: reqwest::Error| StoreError::Unavailable(self.unreached(&error)))?;
        drop(turn);
        Ok(Answer { asked: format!("{} /v2/{}", call.method, call.operation), status, body: body.to_vec() })
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", self.base.path().trim_end_matches('/')));
        url
    }

    /// Why there was no answer, without the address of the call, which may name a key.
    fn unreached(&self, error: &reqwest::Error) -> String {
        let mut cause: &dyn std::error::Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        let why = if error.is_timeout() { "no answer in time".to_owned() } else { cause.to_string() };
        format!("the object store at {} could not be reached: {why}", self.base.as_str().trim_end_matches('/'))
    }
}

/// What is asked.
struct Call {
    method: Method,
    operation: &'static str,
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
}

impl Call {
    fn get(operation: &'static str) -> Self {
        Self { method: Method::GET, operation, query: Vec::new(), body: None }
    }

    fn post(operation: &'static str, body: Value) -> Self {
        Self { method: Method::POST, operation, query: Vec::new(), body: Some(body) }
    }

    fn query(mut self, name: &'static str, value: &str) -> Self {
        self.query.push((name, value.to_owned()));
        self
    }
}

/// What was answered.
struct Answer {
    asked: String,
    status: StatusCode,
    body: Vec<u8>,
}

impl Answer {
    fn read<T: DeserializeOwned>(self) -> Result<T, StoreError> {
        if !self.status.is_success() {
            return Err(self.refusal());
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            // Not in its own words: they may quote what was answered, and that may be a secret.
            let (category, column) = (error.classify(), error.column());
            let Self { asked, .. } = &self;
            StoreError::Unavailable(format!(
                "the object store's answer to {asked} cannot be read: {category:?} error at column {column}"
            ))
        })
    }

    /// What was answered; none when the store says, by this code, that there is no such thing.
    fn or_absent<T: DeserializeOwned>(self, code: &str) -> Result<Option<T>, StoreError> {
        if self.says_absent(code) {
            return Ok(None);
        }
        self.read().map(Some)
    }

    /// As [`Self::or_absent`], of an answer that says nothing more.
    fn done_or_absent(self, code: &str) -> Result<(), StoreError> {
        if self.status.is_success() || self.says_absent(code) { Ok(()) } else { Err(self.refusal()) }
    }

    /// A 404 alone says nothing: it may be a proxy's, or another program's.
    fn says_absent(&self, code: &str) -> bool {
        self.status == StatusCode::NOT_FOUND && self.problem().code == code
    }

    fn read_or_raced<T: DeserializeOwned>(self, code: &str) -> Result<T, StoreError> {
        if self.status == StatusCode::CONFLICT && self.problem().code == code {
            return Err(StoreError::Raced(format!("the object store answered {code} to {}", self.asked)));
        }
        self.read()
    }

    fn problem(&self) -> Problem {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    fn refusal(&self) -> StoreError {
        let answered = format!("the object store answered {} to {}", self.status.as_u16(), self.asked);
        let passing = [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT];
        if self.status.is_server_error() || passing.contains(&self.status) {
            return StoreError::Unavailable(answered);
        }
        let words: String = self.problem().message.chars().take(WORDS).collect();
        StoreError::Refused(if words.is_empty() { answered } else { format!("{answered}: {words}") })
    }
}
