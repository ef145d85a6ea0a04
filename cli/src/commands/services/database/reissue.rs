//! `ankka services database reissue`.

use ankka_crds::resources::AnkkaDatabaseStatus;
use ankka_crds::rules::supplies_database;
use ankka_crds::{AnkkaDatabase, AnkkaService};
use kube::Api;
use serde_json::json;

use crate::args::{Global, OutputArgs, WaitArgs};
use crate::cluster::{Attempt, Cluster, Subject};
use crate::commands::services::{ending, project_of};
use crate::complete;
use crate::error::{Error, Exit, Outcome};
use crate::output;
use crate::settings::Project;
use crate::wait;

/// What is attempted, for messages.
const VERB: &str = "reissue the database credential of";

/// Gives a service a new database login and replaces its instances; it is done when they all use it. The login of before ends later, at the time recorded with the database.
#[derive(clap::Args)]
pub(crate) struct ReissueArgs {
    /// The service
    #[arg(add = complete::services())]
    name: String,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Asks for a login newer than the one in place and than any that was asked for.
pub(crate) async fn reissue(args: ReissueArgs, global: &Global) -> Outcome {
    let project = project_of(&args.name, global)?;
    let cluster = Cluster::connect(global).await?;
    let attempt = Attempt { verb: VERB, subject: Subject::Service(&args.name, &project) };
    let databases: Api<AnkkaDatabase> = Api::namespaced(cluster.client(), &project.namespace);
    let database = databases.get_opt(&args.name).await.map_err(|cause| cluster.explain(attempt, cause))?;
    let status = database.and_then(|database| database.status).unwrap_or_default();

    let reissued = cluster
        .command(VERB, &args.name, &project, |service| {
            refuse(service, &status, &args.name, &project)?;
            let wanted = asked(service).max(status.credential_generation).checked_add(1);
            let wanted = wanted.ok_or_else(|| Error::new("it was reissued too often"))?;
            Ok(Some(json!({ "database": { "credentialGeneration": wanted } })))
        })
        .await?;
    ending::say(&reissued, "database credential reissued", "");
    if let Some(login) = &status.login {
        output::note(&format!(
            "login '{login}' goes on being accepted for a while: its end is recorded once its successor is in place"
        ));
    }
    let (login, format) = (asked(&reissued.service), args.output.output);
    let Some(limit) = args.wait.limit() else {
        ending::show(&reissued, &project, format)?;
        return Ok(Exit::Success);
    };
    let ended = wait::until_logged_in(&cluster, &project, reissued, login, limit).await?;
    ending::ended(ended, &project, format)
}

/// The generation of the login that was asked for.
fn asked(service: &AnkkaService) -> i64 {
    service.spec.database.as_ref().map_or(0, |database| database.credential_generation)
}

/// Refuses a service that has no login of ours.
fn refuse(service: &AnkkaService, status: &AnkkaDatabaseStatus, name: &str, project: &Project) -> Result<(), Error> {
    let none = format!("service '{name}' has no database credential to reissue");
    if supplies_database(&service.spec.service) {
        return Err(Error::new(format!("{none}: it supplies its own database")).hint(format!(
            "change the login where its ANKKA_DB_ variables come from, then: ankka services restart {name} -p {}",
            project.id
        )));
    }
    if status.secret.is_none() {
        return Err(Error::new(format!("{none}: its database is not provisioned yet"))
            .hint(format!("look with: ankka services get {name} -p {}", project.id)));
    }
    Ok(())
}
