//! Passes over everything there is, as workers make them.

use std::{sync::Arc, time::Duration};

use ankka_crds::labels::MANAGER;
use ankka_runtime::{
    metrics::Metrics,
    queue::{Next, Queue},
    wire::Wire,
    workers::{self, Subject},
};
use kube::Client;
use tokio::sync::mpsc;

use crate::{
    act::Actor,
    cache::{Cache, Key},
    project::Projects,
    repairs::Repairs,
    report::{Events, Notice, Statuses},
    revisions::Recorder,
    service::Services,
    settings::Settings,
    upgrades::Upgrades,
};

/// How long one pass may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// How often what was found may differ from what was decided on before a pass gives up for now.
pub(crate) const ROUNDS: usize = 5;

/// How long until an object is judged again whose newest state has not been seen yet.
pub(crate) const SOON: Duration = Duration::from_millis(500);

/// Passes over services and projects.
pub struct Passes {
    services: Services,
    projects: Projects,
    metrics: Arc<Metrics>,
}

impl Passes {
    /// Passes that decide on what is in `cache` and write through `client`, and the events they have to tell.
    pub fn new(
        settings: &Settings,
        client: Client,
        cache: &Arc<Cache>,
        queue: &Arc<Queue<Key>>,
        metrics: &Arc<Metrics>,
    ) -> (Self, mpsc::Receiver<Notice>) {
        let (events, notices) = Events::channel();
        let wire = Wire { client, manager: MANAGER, metrics: metrics.clone() };
        let statuses = Statuses { wire: wire.clone(), cache: cache.clone(), queue: queue.clone(), events };
        let actor = Actor { wire: wire.clone(), cache: cache.clone() };
        let desired = Arc::new(settings.desired.clone());
        let repairs = Arc::new(Repairs::new(settings.timing));
        let passes = Self {
            services: Services {
                settings: desired.clone(),
                cache: cache.clone(),
                actor,
                recorder: Recorder { wire: wire.clone(), cache: cache.clone() },
                statuses: statuses.clone(),
                repairs: repairs.clone(),
                upgrades: Arc::new(Upgrades::new(settings.upgrades, cache.clone(), queue.clone())),
            },
            projects: Projects {
                settings: desired,
                proxy_namespaces: settings.proxy_namespaces.clone(),
                cache: cache.clone(),
                queue: queue.clone(),
                wire,
                statuses,
                repairs,
            },
            metrics: metrics.clone(),
        };
        (passes, notices)
    }
}

impl workers::Passes<Key> for Passes {
    async fn one(&self, key: &Key) -> Next {
        let pass = async {
            match key {
                Key::Service(id) => self.services.pass(id).await,
                Key::Project(id) => self.projects.pass(id).await,
            }
        };
        let subject = match key {
            Key::Service(id) => Subject { kind: "Service", namespace: Some(&id.namespace), name: &id.name },
            Key::Project(id) => Subject { kind: "Project", namespace: None, name: id },
        };
        workers::reported(subject, &self.metrics, DEADLINE, pass).await
    }
}
