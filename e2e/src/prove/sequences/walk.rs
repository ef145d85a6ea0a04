//! One service, and what happens to it at random.

use std::{sync::Arc, time::Duration};

use ankka_crds::{AnkkaDatabase, AnkkaService, AnkkaServiceSpec, ServiceSpec, resources::DatabaseCommands};
use ankka_desired::{DatabaseServer, Settings};
use anyhow::{Context, Result, ensure};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use super::rendered;
use crate::suite::{
    Cluster,
    cluster::{descriptor, eventually},
};

/// Steps of a sequence.
const STEPS: usize = 8;
/// One sequence of so many ends with instances; the others end paused.
const AWAKE: u64 = 10;
/// How long a service may take to come to rest.
const REST: Duration = Duration::from_mins(4);

/// A service and what is expected of it.
pub(super) struct Walk {
    cluster: Arc<Cluster>,
    settings: Settings,
    project: String,
    namespace: String,
    name: String,
    random: StdRng,
    /// What the last descriptor and the commands ask for; none while there is no service.
    expected: Option<AnkkaServiceSpec>,
    /// Every descriptor that was taken.
    taken: Vec<ServiceSpec>,
    log: Vec<String>,
}

impl Walk {
    /// The walk with this number: the same number takes the same steps.
    pub(super) async fn new(cluster: &Arc<Cluster>, number: u64) -> Result<Self> {
        let project = format!("sequences-{}", number / 2);
        let namespace = cluster.project(&project).await?;
        let name = format!("walk-{number}");
        cluster.remove(&namespace, &name).await?;
        Ok(Self {
            settings: rendered::settings(&cluster.client).await?,
            cluster: cluster.clone(),
            project,
            namespace,
            name,
            random: StdRng::seed_from_u64(number),
            expected: None,
            taken: Vec::new(),
            log: Vec::new(),
        })
    }

    /// So many sequences, one after the other. Returns how many steps they had.
    pub(super) async fn all(mut self, sequences: u64) -> Result<usize> {
        let mut steps = 0;
        for sequence in 1..=sequences {
            self.log.clear();
            let outcome = self.sequence(sequence % AWAKE == 0).await;
            outcome.with_context(|| {
                format!("{}/{}, sequence {sequence}: {}", self.namespace, self.name, self.log.join(", "))
            })?;
            steps += self.log.len();
        }
        self.cluster.remove(&self.namespace, &self.name).await?;
        Ok(steps)
    }

    async fn sequence(&mut self, awake: bool) -> Result<()> {
        self.make().await?;
        for _ in 0..STEPS {
            self.step(awake).await?;
            self.as_expected().await?;
        }
        self.make().await?;
        if awake {
            // The last good descriptor and a resume bring it back, whatever was before.
            let good = self.good();
            self.apply(&good).await?;
            self.command(&["resume"]).await?;
        }
        self.as_expected().await?;
        self.rests(if awake { "Ready" } else { "Paused" }).await
    }

    /// The service is there, and paused.
    async fn make(&mut self) -> Result<()> {
        if self.expected.is_none() {
            let good = self.good();
            self.apply(&good).await?;
        }
        self.command(&["pause"]).await.map(drop)
    }

    async fn step(&mut self, awake: bool) -> Result<()> {
        match self.random.random_range(0..24) {
            0..=5 => {
                let descriptor = self.any(awake);
                self.apply(&descriptor).await
            }
            6..=7 => self.refused().await,
            8 if awake => self.command(&["resume"]).await.map(drop),
            8..=9 => self.command(&["pause"]).await.map(drop),
            10..=12 => self.command(&["restart", "--no-wait"]).await.map(drop),
            13..=14 => self.command(&["expose", "--no-wait"]).await.map(drop),
            15 => self.command(&["unexpose"]).await.map(drop),
            16..=17 => self.command(&["database", "reissue", "--no-wait"]).await.map(drop),
            18 => self.rollback().await,
            19 => self.race().await,
            20 => self.stale().await,
            21 => self.delete().await,
            _ => self.meddle().await,
        }
    }

    fn good(&self) -> Value {
        descriptor(&self.name, json!({ "env": [{ "name": "REVISION", "value": self.taken.len().to_string() }] }))
    }

    /// A descriptor that breaks no rule. One whose image is missing only while nothing is started from it.
    fn any(&mut self, awake: bool) -> Value {
        let mut env = vec![json!({ "name": "REVISION", "value": self.random.random_range(0..4).to_string() })];
        if !awake && self.random.random_bool(0.2) {
            env.push(json!({ "name": "ANKKA_DB_HOST", "value": "db.example.com" }));
        }
        let mut fields = json!({
            "env": env,
            "resources": { "autoscaling": { "minInstances": self.random.random_range(1..4) } },
        });
        if self.random.random_bool(0.3) {
            fields["labels"] = json!({ "team": "a" });
        }
        if !awake && self.random.random_bool(0.3) {
            fields["http"] = json!(self.random.random_bool(0.3));
        }
        if !awake && self.random.random_bool(0.2) {
            fields["port"] = json!(8080);
        }
        if !awake && self.random.random_bool(0.2) {
            fields["image"] = json!("docker.io/local/missing:1");
        }
        descriptor(&self.name, fields)
    }

    async fn apply(&mut self, descriptor: &Value) -> Result<()> {
        self.log.push(format!("apply {}", descriptor["service"]));
        self.cluster.apply(&self.project, descriptor).await?;
        let service: ServiceSpec = serde_json::from_value(descriptor["service"].clone())?;
        self.expected.get_or_insert_default().service = service.clone();
        self.taken.push(service);
        Ok(())
    }

    /// A descriptor that breaks a rule changes nothing, whoever asks: the API server is asked past the command line's own rules.
    async fn refused(&mut self) -> Result<()> {
        let broken = [json!({ "port": 0 }), json!({ "image": "" }), json!({ "labels": { "-": "x" } })];
        let broken = broken[self.random.random_range(0..broken.len())].clone();
        self.log.push(format!("apply {broken}, which is refused"));
        let wanted = json!({
            "apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaService", "metadata": { "name": self.name },
            "spec": { "service": descriptor(&self.name, broken)["service"] },
        });
        let params = PatchParams::apply("ankka").force();
        let answer = self.services().patch(&self.name, &params, &Patch::Apply(&wanted)).await;
        ensure!(answer.is_err(), "a descriptor that breaks a rule was taken");
        Ok(())
    }

    /// A command of the command line. False when it was refused.
    async fn command(&mut self, command: &[&str]) -> Result<bool> {
        self.log.push(command.join(" "));
        let (verbs, flags): (Vec<&str>, Vec<&str>) = command.iter().partition(|word| !word.starts_with("--"));
        let args =
            [&["services"], verbs.as_slice(), &[self.name.as_str(), "-p", self.project.as_str()], &flags].concat();
        let output = self.cluster.run("ankka", &args, "").await?;
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        let Some(expected) = &mut self.expected else {
            ensure!(!output.status.success(), "{command:?} of a service that is gone");
            return Ok(false);
        };
        if !output.status.success() {
            let may_be = matches!(verbs[0], "database" | "rollback")
                || (verbs[0] == "expose" && expected.service.http == Some(false));
            ensure!(may_be, "{command:?} ended with {}: {printed}", output.status);
            return Ok(false);
        }
        match verbs[0] {
            "pause" => expected.paused = true,
            "resume" => expected.paused = false,
            "restart" => expected.restarts += 1,
            "expose" => expected.exposed = true,
            "unexpose" => expected.exposed = false,
            "database" => {
                let before = expected.database.as_ref().map_or(0, |database| database.credential_generation);
                let stored = self.stored().await?.and_then(|service| service.spec.database);
                let asked = stored.map_or(0, |database| database.credential_generation);
                ensure!(asked > before, "{asked} was asked for after {before}");
                let expected = self.expected.as_mut().context("there is a service")?;
                expected.database = Some(DatabaseCommands { credential_generation: asked });
            }
            _ => {}
        }
        Ok(true)
    }

    async fn rollback(&mut self) -> Result<()> {
        if self.command(&["rollback", "--no-wait"]).await? {
            let brought_back = self.stored().await?.context("there is a service")?.spec.service;
            ensure!(self.taken.contains(&brought_back), "nobody has ever applied {brought_back:?}");
            self.expected.as_mut().context("there is a service")?.service = brought_back;
        }
        Ok(())
    }

    /// Two restarts at once are two.
    async fn race(&mut self) -> Result<()> {
        if self.expected.is_none() {
            return Ok(());
        }
        self.log.push("restart twice at once".to_owned());
        let args = ["services", "restart", &self.name, "-p", &self.project, "--no-wait"];
        tokio::try_join!(self.cluster.ok("ankka", &args, ""), self.cluster.ok("ankka", &args, ""))?;
        self.expected.as_mut().context("there is a service")?.restarts += 2;
        Ok(())
    }

    /// A command made from what was read before somebody else's change is refused.
    async fn stale(&mut self) -> Result<()> {
        let Some(read) = self.stored().await? else { return Ok(()) };
        self.command(&["restart", "--no-wait"]).await?;
        self.log.push("a restart made from what was read before".to_owned());
        let body = json!({
            "metadata": { "resourceVersion": read.metadata.resource_version },
            "spec": { "restarts": read.spec.restarts + 1 },
        });
        let params = PatchParams { field_manager: Some("ankka-commands".to_owned()), ..PatchParams::default() };
        match self.services().patch(&self.name, &params, &Patch::Merge(&body)).await {
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            other => anyhow::bail!("a stale write was answered with {other:?}"),
        }
    }

    async fn delete(&mut self) -> Result<()> {
        self.log.push("delete".to_owned());
        if self.expected.take().is_some() {
            self.services().delete(&self.name, &DeleteParams::default()).await?;
        }
        Ok(())
    }

    /// Somebody changes or deletes what belongs to the service, where it is there.
    async fn meddle(&mut self) -> Result<()> {
        let (cluster_settings, account) = (format!("{}-cluster", self.name), format!("ankka-{}", self.name));
        let patch = r#"{"data":{"more":"x"}}"#;
        let meddling: [&[&str]; 4] = [
            &["patch", "configmap", &cluster_settings, "--type=merge", "-p", patch],
            &["delete", "service", &self.name, "--ignore-not-found"],
            &["delete", "rolebinding", &account, "--ignore-not-found"],
            &["label", "deployment", &self.name, "ankka.dev/service=other", "--overwrite"],
        ];
        let args = [meddling[self.random.random_range(0..meddling.len())], &["-n", &self.namespace]].concat();
        self.log.push(format!("kubectl {}", args.join(" ")));
        // Not there yet, or not any more.
        self.cluster.run("kubectl", &args, "").await.map(drop)
    }

    fn services(&self) -> Api<AnkkaService> {
        Api::namespaced(self.cluster.client.clone(), &self.namespace)
    }

    async fn stored(&self) -> Result<Option<AnkkaService>> {
        Ok(self.services().get_opt(&self.name).await?)
    }

    /// The stored spec is what the last descriptor and the commands ask for.
    async fn as_expected(&self) -> Result<()> {
        let stored = self.stored().await?.map(|service| service.spec);
        ensure!(stored == self.expected, "stored is {stored:?} instead of {:?}", self.expected);
        Ok(())
    }

    /// Everything becomes what is asked for, and the status says so.
    async fn rests(&self, lifecycle: &str) -> Result<()> {
        let service = self.cluster.lifecycle(&self.namespace, &self.name, lifecycle, REST).await?;
        eventually("the objects to be as the descriptor and the commands ask for", REST, async || {
            let difference = rendered::difference(&self.cluster.client, &self.settings, &service).await?;
            Ok(difference.map_or(Ok(()), Err))
        })
        .await?;
        let asked = service.spec.database.as_ref().map_or(0, |database| database.credential_generation);
        let supplied = ankka_crds::rules::supplies_database(&service.spec.service);
        if self.settings.database != DatabaseServer::Provisioned || supplied {
            return Ok(());
        }
        eventually("the login that was asked for", REST, async || {
            let database: AnkkaDatabase =
                Api::namespaced(self.cluster.client.clone(), &self.namespace).get(&self.name).await?;
            let status = database.status.unwrap_or_default();
            let done = status.secret.is_some() && status.credential_generation >= asked;
            Ok(if done { Ok(()) } else { Err(format!("{status:?}")) })
        })
        .await
    }
}
