//! Whether the admission webhook answers: something that breaks a rule is sent, to be judged and not stored.

use ankka_crds::{AnkkaProject, AnkkaService, AnkkaServiceSpec, resources::AnkkaProjectSpec};
use kube::Api;
use kube::api::PostParams;
use kube::core::Status;

use super::Check;
use crate::cluster::{Attempt, Cluster, Subject, Unknown};
use crate::settings::Project;

const NAME: &str = "webhook";
/// A service that is not there and stays so.
const SERVICE: &str = "ankka-doctor";
/// What is said of one without an image.
const NO_IMAGE: &str = "service image must not be empty";
/// A project's id that none can have.
const PROJECT: &str = "platform";
/// What is said of it.
const RESERVED: &str = "project id 'platform' is reserved for the platform's own workloads";

/// Asks about a service where a project is selected, and else about a project. Who may make none asks about a service in the
/// namespace of the context, or of the pod.
pub(super) async fn answers(cluster: &Cluster, project: Option<&Project>) -> Check {
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let service = AnkkaService::new(SERVICE, AnkkaServiceSpec::default());
    let (answer, expected) = if let Some(project) = project {
        (cluster.services(project).create(&dry, &service).await.map(drop), NO_IMAGE)
    } else {
        let project = AnkkaProject::new(PROJECT, AnkkaProjectSpec::default());
        match cluster.projects().create(&dry, &project).await {
            Err(kube::Error::Api(status)) if is_forbidden(&status) => {
                let services: Api<AnkkaService> = Api::default_namespaced(cluster.client());
                (services.create(&dry, &service).await.map(drop), NO_IMAGE)
            }
            answer => (answer.map(drop), RESERVED),
        }
    };
    let look = "see whether the Deployment 'ankka-webhook' has ready instances: kubectl get deployments -A -l app.kubernetes.io/part-of=ankka";
    match answer {
        Ok(()) => Check::problem(
            NAME,
            "what breaks a rule would be stored: the webhook is not asked",
            "install the chart's webhook configurations again: helm upgrade",
        ),
        Err(kube::Error::Api(status)) if status.message.contains(expected) => {
            Check::ok(NAME, "it refuses what breaks a rule, in the documented words")
        }
        Err(kube::Error::Api(status)) if is_forbidden(&status) => {
            Check::unknown(NAME, &Unknown("forbidden".to_owned()))
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Check::unknown(
            NAME,
            &Unknown("there is nothing to ask it about: neither the kinds nor the project are there".to_owned()),
        ),
        Err(cause) => {
            let subject = Subject::Project(PROJECT);
            Check::problem(
                NAME,
                cluster.explain(Attempt { verb: "ask the webhook about", subject }, cause).message,
                look,
            )
        }
    }
}

/// Whether the caller lacks the permission: the webhook refuses with the same status.
fn is_forbidden(status: &Status) -> bool {
    status.code == 403 && status.message.contains(" cannot ")
}
