//! For each way in which a service fails to become ready: who asks is told the true cause and the next step within two seconds
//! of the cluster knowing it.

use std::time::{Duration, Instant};

use ankka_desired::Cause;
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Node, ResourceQuota, Secret},
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    platform::{Component, images::PAUSE},
    suite::{
        Case, Cluster,
        cluster::{descriptor, eventually},
        witness::Witness,
        workbench::{self, FOREIGN},
    },
};

const PROJECT: &str = "causes";
const SECRET: &str = "keys";
const KEY: &str = "token";
/// How soon it is to be told.
const SOON: Duration = Duration::from_secs(2);
/// How long the cluster itself may take to know.
const LIMIT: Duration = Duration::from_mins(1);
/// After so long an instance that runs and is not ready has missed three probes.
const PROBES: Duration = Duration::from_secs(15);
/// Takes more memory than any size has.
const GREEDY: &str = "x=0123456789abcdef; while :; do x=$x$x; done";

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("a_registry_that_does_not_answer_is_told_within_two_seconds", |cluster| async move {
            image(&cluster).await
        }),
        Case::new("an_image_for_another_processor_is_told_within_two_seconds", |cluster| async move {
            architecture(&cluster).await
        }),
        Case::new("a_secret_or_a_key_that_is_missing_is_told_within_two_seconds", |cluster| async move {
            configuration(&cluster).await
        }),
        Case::new("a_program_that_ends_is_told_within_two_seconds", |cluster| async move { crash(&cluster).await }),
        Case::new("a_program_that_runs_out_of_memory_is_told_within_two_seconds", |cluster| async move {
            memory(&cluster).await
        }),
        Case::new("a_probe_that_fails_is_told_within_two_seconds", |cluster| async move { probe(&cluster).await }),
        Case::new("a_node_without_room_is_told_within_two_seconds", |cluster| async move { room(&cluster).await }),
        Case::new(
            "a_quota_at_the_first_start_is_told_within_two_seconds",
            |cluster| async move { quota(&cluster).await },
        ),
        Case::new("a_progress_deadline_is_told_within_two_seconds", |cluster| async move { deadline(&cluster).await }),
        Case::new(
            "a_runtime_out_of_range_is_told_within_two_seconds",
            |cluster| async move { runtime(&cluster).await },
        ),
        Case::new("a_database_server_that_is_down_is_told_within_two_seconds", |cluster| async move {
            database_down(&cluster).await
        }),
        Case::new("a_database_server_that_refuses_is_told_within_two_seconds", |cluster| async move {
            database_refuses(&cluster).await
        }),
    ]
}

/// A service that will not become ready, and why.
struct Trial<'a> {
    name: &'a str,
    service: Value,
    /// Its cause.
    cause: Cause,
    /// What is said of it, by the platform and by whoever waits.
    says: &'a str,
    /// How an object looks from which the cluster knows it.
    known: &'a dyn Fn(&Value) -> bool,
    /// How much later it is known from such an object.
    after: Duration,
}

impl<'a> Trial<'a> {
    fn new(name: &'a str, service: Value, cause: Cause, says: &'a str, known: &'a dyn Fn(&Value) -> bool) -> Self {
        Self { name, service, cause, says, known, after: Duration::ZERO }
    }

    /// The next step, as the documentation has it.
    fn next(&self) -> String {
        let next = self.cause.row().next.replace("{service}", self.name).replace("{project}", PROJECT);
        next.replace("{secret}", SECRET).replace("{key}", KEY)
    }

    /// Applies the service and waits for it, and has all who can be asked say why it does not become ready. `provoke` is done
    /// once it is applied.
    async fn run(&self, cluster: &Cluster, provoke: impl Future<Output = Result<()>>) -> Result<()> {
        let namespace = cluster.project(PROJECT).await?;
        cluster.remove(&namespace, self.name).await?;
        let witness = Witness::of(cluster, &namespace).await?;
        let apply = |wait| ["services", "apply", "-f", "-", "-p", PROJECT, wait];
        let waiting = cluster.start("ankka", &apply("--wait=3m"), &self.service.to_string())?;
        provoke.await?;
        let known =
            witness.until("the cluster to know", LIMIT, |object| about(object, self.name) && (self.known)(object));
        let known = known.await? + self.after;

        let next = self.next();
        let tells = |text: &Value| text.as_str().is_some_and(|text| text.contains(self.says) && text.contains(&next));
        let ours = |object: &Value| object["kind"] == "AnkkaService" && object["metadata"]["name"] == self.name;
        let detail = |object: &Value| ours(object) && tells(&object["status"]["detail"]);
        let condition = |object: &Value| {
            let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            let ready = conditions.find(|condition| condition["type"] == "Ready");
            ours(object) && ready.is_some_and(|ready| ready["status"] != "True" && tells(&ready["message"]))
        };
        let event = |object: &Value| {
            let about = &object["involvedObject"];
            about["kind"] == "AnkkaService" && about["name"] == self.name && tells(&object["message"])
        };
        let line =
            waiting.until("`apply --wait` to name it", LIMIT, |line| line.text.contains(self.says).then_some(line.at));
        let told: [(&str, Instant); 4] = [
            ("the detail", witness.until("the detail to name it", LIMIT, detail).await?),
            ("the condition Ready", witness.until("the condition to name it", LIMIT, condition).await?),
            ("an Event", witness.until("an Event to name it", LIMIT, event).await?),
            ("`apply --wait`", line.await?),
        ];
        for (who, at) in told {
            let late = at.saturating_duration_since(known);
            ensure!(late <= SOON, "{who} named it {late:?} after the cluster knew");
        }
        let (code, lines) = waiting.stop(Signal::SIGTERM).await?;
        ensure!(matches!(code, Some(1 | 143)), "`apply --wait` ended with {code:?}: {lines:?}");

        let shown = cluster.ok("ankka", &["services", "get", self.name, "-p", PROJECT], "").await?;
        ensure!(shown.contains(self.says) && shown.contains(&next), "{shown}");
        let late = cluster.run("ankka", &apply("--wait=1s"), &self.service.to_string()).await?;
        let said = String::from_utf8_lossy(&late.stderr);
        ensure!(late.status.code() == Some(1) && said.contains(self.says), "{}: {said}", late.status);
        Ok(())
    }

    /// As [`Trial::run`] for one that nothing has to be done for, and takes it away.
    async fn alone(self, cluster: &Cluster) -> Result<()> {
        self.run(cluster, async { Ok(()) }).await?;
        gone(cluster, self.name).await
    }
}

async fn gone(cluster: &Cluster, name: &str) -> Result<()> {
    cluster.ok("ankka", &["services", "delete", name, "-p", PROJECT, "--no-wait"], "").await.map(drop)
}

/// Whether an object is the service, or belongs to it.
fn about(object: &Value, service: &str) -> bool {
    object["metadata"]["labels"]["ankka.dev/service"] == service || object["metadata"]["name"] == service
}

/// Whether a pod's container is, or was, in a state that looks so.
fn container(object: &Value, shows: impl Fn(&Value) -> bool) -> bool {
    let containers = object["status"]["containerStatuses"].as_array().into_iter().flatten();
    object["kind"] == "Pod" && containers.flat_map(|one| [&one["state"], &one["lastState"]]).any(shows)
}

fn waits_for(object: &Value, reasons: &[&str]) -> bool {
    container(object, |state| state["waiting"]["reason"].as_str().is_some_and(|reason| reasons.contains(&reason)))
}

fn ended(object: &Value) -> bool {
    container(object, |state| state["terminated"].is_object())
}

/// Whether an object of this kind has such a condition.
fn has(object: &Value, kinds: &[&str], condition: [&str; 3]) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let keys = ["type", "status", "reason"];
    kinds.iter().any(|kind| object["kind"] == *kind)
        && conditions.into_iter().any(|one| keys.iter().zip(condition).all(|(key, wanted)| one[*key] == wanted))
}

async fn image(cluster: &Cluster) -> Result<()> {
    let service = json!({ "name": "unreachable", "service": { "image": "127.0.0.1:1/nobody/here:1" } });
    let known = |object: &Value| waits_for(object, &["ErrImagePull", "ImagePullBackOff"]);
    Trial::new("unreachable", service, Cause::Image, "connection refused", &known).alone(cluster).await
}

async fn architecture(cluster: &Cluster) -> Result<()> {
    workbench::import(cluster).await?;
    let service = json!({ "name": "foreign", "service": { "image": FOREIGN } });
    Trial::new("foreign", service, Cause::Architecture, "built for another architecture", &ended).alone(cluster).await
}

async fn configuration(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project(PROJECT).await?;
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), &namespace);
    let _ = secrets.delete(SECRET, &DeleteParams::default()).await;
    let reads = json!({ "env": [{ "name": "TOKEN", "secretKeyRef": { "name": SECRET, "key": KEY } }] });
    let known = |object: &Value| waits_for(object, &["CreateContainerConfigError"]);
    let trial = |name, says| Trial::new(name, descriptor(name, reads.clone()), Cause::Configuration, says, &known);
    trial("secretless", "secret \"keys\" not found").alone(cluster).await?;
    let other = json!({ "metadata": { "name": SECRET }, "stringData": { "other": "x" } });
    secrets.create(&PostParams::default(), &serde_json::from_value(other)?).await?;
    let missing = format!("couldn't find key {KEY} in Secret {namespace}/{SECRET}");
    let tried = trial("keyless", &missing).alone(cluster).await;
    secrets.delete(SECRET, &DeleteParams::default()).await?;
    tried
}

async fn crash(cluster: &Cluster) -> Result<()> {
    workbench::import(cluster).await?;
    let service = workbench::descriptor("mortal", "exit 3", json!({}));
    Trial::new("mortal", service, Cause::Crash, "ended with exit code 3", &ended).alone(cluster).await
}

async fn memory(cluster: &Cluster) -> Result<()> {
    workbench::import(cluster).await?;
    let service = workbench::descriptor("greedy", GREEDY, json!({}));
    let known = |object: &Value| container(object, |state| state["terminated"]["reason"] == "OOMKilled");
    Trial::new("greedy", service, Cause::Memory, "OOMKilled", &known).alone(cluster).await
}

async fn probe(cluster: &Cluster) -> Result<()> {
    let service = json!({ "name": "silent", "service": { "image": PAUSE } });
    let known = |object: &Value| container(object, |state| state["running"].is_object());
    let says = "is running but does not answer GET /ready on port 7626";
    let trial = Trial::new("silent", service, Cause::Silent, says, &known);
    Trial { after: PROBES, ..trial }.alone(cluster).await
}

/// On a node that takes no pods any more.
async fn room(cluster: &Cluster) -> Result<()> {
    // A measurement may have left fake ones, on which no instance is placed.
    let is_real = |name: &String| !name.starts_with("fake-");
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let node =
        nodes.list(&ListParams::default()).await?.items.into_iter().find_map(|node| node.metadata.name.filter(is_real));
    let node = node.context("there is no node that runs containers")?;
    let cordon = async |unschedulable: bool| {
        let patch = json!({ "spec": { "unschedulable": unschedulable } });
        nodes.patch(&node, &PatchParams::default(), &Patch::Merge(&patch)).await
    };
    let known = |object: &Value| has(object, &["Pod"], ["PodScheduled", "False", "Unschedulable"]);
    let trial =
        Trial::new("homeless", descriptor("homeless", json!({})), Cause::Unschedulable, "Unschedulable: 0/", &known);
    cordon(true).await?;
    let told = trial.run(cluster, async { Ok(()) }).await;
    cordon(false).await?;
    told?;
    recovers(cluster, "homeless").await
}

async fn quota(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project(PROJECT).await?;
    let quotas: Api<ResourceQuota> = Api::namespaced(cluster.client.clone(), &namespace);
    let nothing = json!({ "metadata": { "name": "nothing" }, "spec": { "hard": { "pods": "0" } } });
    let known = |object: &Value| has(object, &["ReplicaSet", "Deployment"], ["ReplicaFailure", "True", "FailedCreate"]);
    let trial =
        Trial::new("refused", descriptor("refused", json!({})), Cause::Quota, "exceeded quota: nothing", &known);
    let _ = quotas.delete("nothing", &DeleteParams::default()).await;
    quotas.create(&PostParams::default(), &serde_json::from_value(nothing)?).await?;
    let told = trial.run(cluster, async { Ok(()) }).await;
    quotas.delete("nothing", &DeleteParams::default()).await?;
    told?;
    recovers(cluster, "refused").await
}

/// A service that nothing is in the way of any more becomes ready by itself.
async fn recovers(cluster: &Cluster, name: &str) -> Result<()> {
    let namespace = cluster.project(PROJECT).await?;
    cluster.lifecycle(&namespace, name, "Ready", Duration::from_mins(3)).await?;
    gone(cluster, name).await
}

/// An image whose registry takes the connection and says nothing: nobody knows why the instance does not start.
async fn deadline(cluster: &Cluster) -> Result<()> {
    let registry = TcpListener::bind(("127.0.0.1", 0)).await?;
    let image = format!("{}/nobody/answers:1", registry.local_addr()?);
    let service = json!({ "name": "late", "service": { "image": image } });
    let known = |object: &Value| has(object, &["Deployment"], ["Progressing", "False", "ProgressDeadlineExceeded"]);
    let trial = Trial::new("late", service, Cause::Deadline, "has timed out progressing", &known);
    trial.run(cluster, impatience(cluster, "late")).await?;
    gone(cluster, "late").await
}

/// Has the deadline of a rollout pass at once. The operator undoes what others change in a Deployment, so it is changed until
/// the cluster has seen it.
async fn impatience(cluster: &Cluster, name: &str) -> Result<()> {
    let namespace = cluster.project(PROJECT).await?;
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), &namespace);
    let patch = json!({ "spec": { "progressDeadlineSeconds": 1 } });
    eventually("the deadline to pass", Duration::from_secs(20), async || {
        let object = serde_json::to_value(deployments.get(name).await?)?;
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if conditions.iter().any(|condition| condition["reason"] == "ProgressDeadlineExceeded") {
            return Ok(Ok(()));
        }
        tokio::time::sleep(SOON).await;
        deployments.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(Err("it has not".to_owned()))
    })
    .await
}

async fn runtime(cluster: &Cluster) -> Result<()> {
    let service = descriptor("future", json!({ "runtime": "0.9.0" }));
    let known = |object: &Value| object["kind"] == "AnkkaService";
    let says = "runtime 0.9.0 is outside the platform's supported range";
    Trial::new("future", service, Cause::Incompatible, says, &known).alone(cluster).await
}

async fn database_down(cluster: &Cluster) -> Result<()> {
    let local = cluster.platform.require_local()?;
    forget(cluster, "baseless").await?;
    let known = |object: &Value| object["kind"] == "AnkkaDatabase" && object["status"]["detail"].is_string();
    let trial = Trial::new(
        "baseless",
        descriptor("baseless", json!({})),
        Cause::Database,
        "waiting for database: failed to",
        &known,
    );
    local.stop(Component::Postgres).await?;
    let told = trial.run(cluster, async { Ok(()) }).await;
    local.start(Component::Postgres).await?;
    told?;
    recovers(cluster, "baseless").await
}

/// An administrator who may not make databases any more.
async fn database_refuses(cluster: &Cluster) -> Result<()> {
    let server = cluster.platform.require_local()?.database()?;
    forget(cluster, "unwanted").await?;
    let known = |object: &Value| {
        object["kind"] == "AnkkaDatabase" && object["status"]["phase"] == "database provisioning failed"
    };
    let says = "permission denied to create database";
    let trial = Trial::new("unwanted", descriptor("unwanted", json!({})), Cause::DatabaseRefused, says, &known);
    let allow = async |what: &str| {
        let statement = format!("ALTER ROLE {} {what}", server.administrator.0);
        server.sql("postgres", statement).await
    };
    allow("NOCREATEDB").await?;
    let told = trial.run(cluster, async { Ok(()) }).await;
    allow("CREATEDB").await?;
    told?;
    recovers(cluster, "unwanted").await
}

/// Takes away what an earlier run has left of a service's database: with it there would be nothing to make.
async fn forget(cluster: &Cluster, name: &str) -> Result<()> {
    let namespace = cluster.project(PROJECT).await?;
    cluster.remove(&namespace, name).await?;
    let database = ["delete", "ankkadatabase", name, "-n", &namespace, "--ignore-not-found"];
    cluster.ok("kubectl", &database, "").await?;
    let secret = ["delete", "secret", &format!("{name}-db"), "-n", &namespace, "--ignore-not-found"];
    cluster.ok("kubectl", &secret, "").await?;
    let server = cluster.platform.require_local()?.database()?;
    let full = format!("{PROJECT}.{name}");
    server.sql("postgres", format!("DROP DATABASE IF EXISTS \"{full}\"")).await?;
    server.sql("postgres", format!("DROP ROLE IF EXISTS \"{full}\"")).await.map(drop)
}
