//! A cluster with the platform on it, as a test sees it: a client, and the commands a person would type.

use std::{
    net::SocketAddr,
    process::Output,
    time::{Duration, Instant},
};

use ankka_crds::{AnkkaProject, AnkkaService, resources::AnkkaProjectSpec};
use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};

use super::Running;
use crate::{Platform, audit::Position, run::Run};

/// How long one command may take: as long as an upgrade of the whole platform.
const LONGEST_COMMAND: Duration = Duration::from_mins(5);

/// The cluster under test.
pub struct Cluster {
    /// Talks to its API server as an administrator.
    pub client: Client,
    /// The platform behind it.
    pub platform: Platform,
    /// Where its audit log ended when the tests began; none where there is no log to read.
    pub began: Option<Position>,
}

impl Cluster {
    /// The cluster of a platform that is up.
    pub fn new(platform: Platform) -> Self {
        let began = platform.audit().and_then(|log| log.end()).ok();
        Self { client: platform.client(), platform, began }
    }

    /// Runs `kubectl`, `helm` or `ankka` to its end, with `input` on its standard input.
    pub async fn run(&self, program: &str, args: &[&str], input: &str) -> Result<Output> {
        self.command(program, args)?.input(input).limit(LONGEST_COMMAND).output().await
    }

    /// Starts `kubectl`, `helm` or `ankka` with `input` on its standard input, and leaves it running.
    pub fn start(&self, program: &str, args: &[&str], input: &str) -> Result<Running> {
        Running::start(self.command(program, args)?.input(input))
    }

    /// A run of `kubectl`, `helm` or `ankka`.
    pub fn command(&self, program: &str, args: &[&str]) -> Result<Run> {
        let run = match program {
            "kubectl" => self.platform.kubectl(),
            "helm" => self.platform.helm(),
            _ => self.platform.ankka()?,
        };
        Ok(run.args(args).env("NO_COLOR", "1").env("ANKKA_PROJECT", ""))
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub async fn ok(&self, program: &str, args: &[&str], input: &str) -> Result<String> {
        let output = self.run(program, args, input).await?;
        ensure!(
            output.status.success(),
            "{program} {} ended with {}: {}{}",
            args.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Makes a project and waits for its namespace; one that is there is kept.
    pub async fn project(&self, id: &str) -> Result<String> {
        let projects: Api<AnkkaProject> = Api::all(self.client.clone());
        if projects.get_opt(id).await?.is_none() {
            match projects.create(&PostParams::default(), &AnkkaProject::new(id, AnkkaProjectSpec::default())).await {
                // Another part of the same case made it meanwhile.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                made => drop(made?),
            }
        }
        let namespace = ankka_crds::names::namespace(ankka_crds::names::DEFAULT_PREFIX, id);
        eventually("the project to be ready", Duration::from_mins(2), async || {
            let project = projects.get(id).await?;
            let ready = project
                .status
                .iter()
                .flat_map(|status| &status.conditions)
                .any(|condition| condition.type_ == "Ready" && condition.status == "True");
            Ok(if ready { Ok(()) } else { Err(format!("{:?}", project.status)) })
        })
        .await?;
        Ok(namespace)
    }

    /// Removes what an earlier run has left of a service, down to its pods.
    pub async fn remove(&self, namespace: &str, name: &str) -> Result<()> {
        let services: Api<AnkkaService> = Api::namespaced(self.client.clone(), namespace);
        if services.get_opt(name).await?.is_some() {
            services.delete(name, &DeleteParams::default()).await?;
        }
        eventually("an earlier run's pods to go", Duration::from_mins(2), async || {
            let pods = self.pods(namespace, name).await?.len();
            Ok(if pods == 0 { Ok(()) } else { Err(format!("{pods} pods")) })
        })
        .await
    }

    /// Applies a descriptor with the command line, without waiting.
    pub async fn apply(&self, project: &str, descriptor: &Value) -> Result<String> {
        self.ok("ankka", &["services", "apply", "-f", "-", "-p", project, "--wait=0"], &descriptor.to_string()).await
    }

    /// The service as stored.
    pub async fn service(&self, namespace: &str, name: &str) -> Result<AnkkaService> {
        Ok(Api::namespaced(self.client.clone(), namespace).get(name).await?)
    }

    /// Waits until the service reports `lifecycle` for its present generation.
    pub async fn lifecycle(&self, namespace: &str, name: &str, wanted: &str, limit: Duration) -> Result<AnkkaService> {
        eventually(&format!("{namespace}/{name} to be {wanted}"), limit, async || {
            let service = self.service(namespace, name).await?;
            let status = service.status.clone().unwrap_or_default();
            let current = status.observed_generation == service.metadata.generation;
            Ok(if current && status.lifecycle.as_deref() == Some(wanted) {
                Ok(service)
            } else {
                Err(format!(
                    "{:?}, {}/{}, {:?}",
                    status.lifecycle, status.ready_instances, status.desired_instances, status.detail
                ))
            })
        })
        .await
    }

    /// The service's pods that are not being deleted.
    pub async fn pods(&self, namespace: &str, service: &str) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let all = pods.list(&ListParams::default().labels(&format!("ankka.dev/service={service}"))).await?;
        Ok(all.items.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect())
    }

    /// UIDs of the service's pods, sorted.
    pub async fn pod_uids(&self, namespace: &str, service: &str) -> Result<Vec<String>> {
        let mut uids: Vec<String> =
            self.pods(namespace, service).await?.into_iter().filter_map(|pod| pod.metadata.uid).collect();
        uids.sort();
        Ok(uids)
    }

    /// The address of the service inside the cluster.
    pub async fn address(&self, namespace: &str, service: &str) -> Result<SocketAddr> {
        let services: Api<Service> = Api::namespaced(self.client.clone(), namespace);
        let spec = services.get(service).await?.spec.context("a Service has a spec")?;
        let ip = spec.cluster_ip.context("the Service has no address")?;
        let port = spec.ports.iter().flatten().next().context("the Service has no port")?.port;
        Ok(format!("{ip}:{port}").parse()?)
    }
}

/// Asks until the answer is `Ok`, at most `limit` long; the last `Err` says what was there instead.
pub async fn eventually<T>(
    what: &str,
    limit: Duration,
    mut ask: impl AsyncFnMut() -> Result<Result<T, String>>,
) -> Result<T> {
    let started = Instant::now();
    loop {
        let seen = match ask().await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(seen)) => seen,
            Err(error) => format!("{error:#}"),
        };
        if started.elapsed() > limit {
            bail!("waited {} s for {what}; last seen: {seen}", limit.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A descriptor of the example service with `fields` merged into its `service` object.
pub fn descriptor(name: &str, fields: Value) -> Value {
    let mut service = json!({ "image": CART });
    if let (Some(service), Value::Object(fields)) = (service.as_object_mut(), fields) {
        service.extend(fields);
    }
    json!({ "name": name, "service": service })
}

/// The example service's image on the local platform.
pub const CART: &str = "docker.io/local/cart:1";
