//! Waiting until a service is ready: watches it and its instances, and stops as soon as the answer is known.

mod instance;
mod judge;
mod progress;
mod route;

use std::collections::BTreeMap;
use std::pin::pin;

use ankka_crds::AnkkaService;
use ankka_desired::Place;
use futures::StreamExt;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};

use instance::Instance;
use judge::{Target, Verdict, advice, current, judge, report};
use progress::Progress;
pub(crate) use route::until_routed;

use crate::cluster::{Applied, Change, Cluster};
use crate::duration::{self, Limit};
use crate::error::{Error, Exit};
use crate::output;
use crate::settings::Project;
use crate::show::service::selector;

/// How many of an instance's last lines are shown when it has crashed too often.
const LAST_LINES: i64 = 20;

/// How the waiting ended.
pub(crate) struct Ended {
    /// The service as it was seen last; none when it was deleted.
    pub(crate) service: Option<AnkkaService>,
    /// How the command ends.
    pub(crate) exit: Exit,
    /// Why it failed, when it did.
    pub(crate) error: Option<Error>,
}

/// Follows one rollout.
struct Rollout<'a> {
    project: &'a Project,
    name: String,
    target: Target,
    pods: Api<Pod>,
    service: Option<AnkkaService>,
    instances: BTreeMap<String, Instance>,
    progress: Progress,
}

/// Waits until the service is ready or cannot become so, at most `limit`.
pub(crate) async fn until_ready(
    cluster: &Cluster,
    project: &Project,
    applied: Applied,
    limit: Limit,
) -> Result<Ended, Error> {
    until(cluster, project, applied, None, limit).await
}

/// Waits until the service is ready and all its instances use this generation of its database login, at most `limit`.
pub(crate) async fn until_logged_in(
    cluster: &Cluster,
    project: &Project,
    applied: Applied,
    login: i64,
    limit: Limit,
) -> Result<Ended, Error> {
    until(cluster, project, applied, Some(login), limit).await
}

async fn until(
    cluster: &Cluster,
    project: &Project,
    applied: Applied,
    login: Option<i64>,
    limit: Limit,
) -> Result<Ended, Error> {
    let name = applied.service.name_any();
    let target = Target {
        generation: applied.service.metadata.generation.unwrap_or_default(),
        since: (applied.change != Change::Unchanged).then(|| applied.at - SignedDuration::from_secs(1)),
        login,
    };
    let mut rollout = Rollout {
        project,
        pods: Api::namespaced(cluster.client(), &project.namespace),
        target,
        service: Some(applied.service),
        instances: BTreeMap::new(),
        progress: Progress::start(),
        name,
    };
    let ended = tokio::select! {
        verdict = rollout.follow(cluster) => Some(verdict),
        () = tokio::time::sleep(limit.0) => Some(rollout.late(limit)),
        _ = tokio::signal::ctrl_c() => None,
    };
    rollout.progress.end();
    Ok(rollout.conclude(ended))
}

impl Rollout<'_> {
    /// Watches until the answer is known.
    async fn follow(&mut self, cluster: &Cluster) -> Verdict {
        match self.judge() {
            Verdict::Waiting(_) => {}
            known => return known,
        }
        self.show();
        let labels = watcher::Config::default().labels(&selector(&self.project.id, &self.name));
        let mut services = pin!(watcher::watch_object(cluster.services(self.project), &self.name).default_backoff());
        let mut pods = pin!(watcher::watcher(self.pods.clone(), labels).default_backoff());
        let mut see_pods = true;
        loop {
            tokio::select! {
                seen = services.next() => match seen {
                    Some(Ok(service)) => self.service = service,
                    Some(Err(cause)) if refused(&cause) => {
                        return Verdict::Hopeless(format!("it cannot be watched: {cause}"));
                    }
                    // The stream begins anew by itself.
                    _ => continue,
                },
                seen = pods.next(), if see_pods => match seen {
                    Some(Ok(event)) => self.observe(event),
                    Some(Err(cause)) if refused(&cause) && self.target.login.is_some() => {
                        return Verdict::Waiting("its instances cannot be watched: pods in this project may not be".to_owned());
                    }
                    Some(Err(cause)) if refused(&cause) => {
                        see_pods = false;
                        output::warning("the instances are not shown: pods in this project may not be watched");
                    }
                    _ => continue,
                },
            }
            self.fetch_last_words().await;
            self.show();
            match self.judge() {
                Verdict::Waiting(_) => {}
                known => return known,
            }
        }
    }

    fn observe(&mut self, event: watcher::Event<Pod>) {
        match event {
            watcher::Event::Init => self.instances.clear(),
            watcher::Event::Apply(pod) | watcher::Event::InitApply(pod) => {
                let mut instance = Instance::of(&pod);
                if let Some(before) =
                    self.instances.get(&instance.name).filter(|before| before.crashes == instance.crashes)
                {
                    instance.last_words.clone_from(&before.last_words);
                }
                self.instances.insert(instance.name.clone(), instance);
            }
            watcher::Event::Delete(pod) => {
                self.instances.remove(&pod.name_any());
            }
            watcher::Event::InitDone => {}
        }
    }

    /// Asks a crashed instance what it wrote last: a program for another architecture says so only there.
    async fn fetch_last_words(&mut self) {
        for instance in
            self.instances.values_mut().filter(|instance| instance.crashes > 0 && instance.last_words.is_none())
        {
            let Some(container) = instance.trouble.as_ref().and_then(|trouble| trouble.container.clone()) else {
                continue;
            };
            let params = LogParams {
                container: Some(container),
                tail_lines: Some(LAST_LINES),
                previous: instance.trouble.as_ref().is_some_and(|trouble| trouble.reason == "Restarted"),
                ..LogParams::default()
            };
            // Best effort: who may not read logs still learns the exit code.
            instance.last_words = Some(self.pods.logs(&instance.name, &params).await.unwrap_or_default());
        }
    }

    fn judge(&self) -> Verdict {
        match &self.service {
            Some(service) => judge(self.target, service, &self.list()),
            None => Verdict::Hopeless("it was deleted".to_owned()),
        }
    }

    fn list(&self) -> Vec<Instance> {
        self.instances.values().cloned().collect()
    }

    fn show(&mut self) {
        let instances = self.list();
        let mut lines: Vec<_> = instances.iter().map(|instance| (instance.name.clone(), instance.text())).collect();
        if let Some(service) = &self.service {
            lines.push((self.name.clone(), report(self.target, service)));
        }
        self.progress.show(lines);
    }

    /// The verdict when the time is over.
    fn late(&self, limit: Limit) -> Verdict {
        match self.judge() {
            Verdict::Waiting(why) => Verdict::Waiting(format!("waited {}: {why}", duration::text(limit.0))),
            known => known,
        }
    }

    fn conclude(self, verdict: Option<Verdict>) -> Ended {
        let look = format!("ankka services get {} -p {}", self.name, self.project.id);
        let (exit, error) = match verdict {
            None => {
                output::note(&format!("stopped waiting; the rollout of '{}' goes on, look with: {look}", self.name));
                (Exit::Interrupted, None)
            }
            Some(Verdict::Ready) => {
                output::note(&format!("service '{}' is ready", self.name));
                (Exit::Success, None)
            }
            Some(Verdict::Paused) => {
                output::note(&format!("service '{}' is paused; it starts when it is resumed", self.name));
                (Exit::Success, None)
            }
            Some(Verdict::Waiting(why)) => {
                let error = Error::new(format!("service '{}' is not ready: {why}", self.name));
                (Exit::Failure, Some(error.hint(format!("the rollout goes on; look with: {look}"))))
            }
            Some(Verdict::Hopeless(why)) => {
                self.print_last_words();
                let (project, namespace) = (self.project.id.as_str(), self.project.namespace.as_str());
                let place = Place { service: &self.name, project, namespace };
                let error = Error::new(format!("service '{}' cannot become ready: {why}", self.name));
                (Exit::Failure, Some(error.hint(advice(self.target, self.service.as_ref(), &self.list(), place))))
            }
        };
        Ended { service: self.service, exit, error }
    }

    /// What the instance that crashed wrote last, which is mostly why.
    fn print_last_words(&self) {
        let instances = self.list();
        let crashed = current(self.target, &instances);
        let Some((name, words)) = crashed.iter().find_map(|instance| {
            Some((&instance.name, instance.last_words.as_deref().filter(|words| !words.trim().is_empty())?))
        }) else {
            return;
        };
        output::note(&format!("the last lines of {name}:"));
        words.lines().for_each(|line| output::note(&format!("  {line}")));
    }
}

/// The cluster will not let us watch, however often we ask.
fn refused(cause: &watcher::Error) -> bool {
    matches!(
        cause,
        watcher::Error::InitialListFailed(kube::Error::Api(status)) | watcher::Error::WatchStartFailed(kube::Error::Api(status))
            if matches!(status.code, 401 | 403 | 404)
    )
}
