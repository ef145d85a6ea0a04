//! `ankka services expose`.

use ankka_crds::exposure::{self, Refusal};
use ankka_crds::{AnkkaService, ServiceSpec};
use serde_json::json;

use super::{ending, project_of};
use crate::args::{Global, OutputArgs, WaitArgs};
use crate::cluster::{Applied, Cluster, Published};
use crate::complete;
use crate::error::{Error, Exit, Outcome};
use crate::output::{self, Format};
use crate::settings::Project;
use crate::show::address::Exposure;
use crate::show::service::ServiceView;
use crate::wait;

/// Gives a service an address outside the cluster and prints it; it is done when the gateway has accepted the route.
#[derive(clap::Args)]
pub(crate) struct ExposeArgs {
    /// The service
    #[arg(add = complete::services())]
    name: String,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Exposes the service, unless it is known already that nothing would come of it.
pub(crate) async fn expose(args: ExposeArgs, global: &Global) -> Outcome {
    let project = project_of(&args.name, global)?;
    let cluster = Cluster::connect(global).await?;
    let published = cluster.published().await;
    let exposed = cluster
        .command("expose", &args.name, &project, |service| {
            address(service, &args.name, &project, &published)?;
            Ok((!service.spec.exposed).then(|| json!({ "exposed": true })))
        })
        .await?;
    ending::say(&exposed, "exposed", "already exposed");
    let url = address(&exposed.service, &args.name, &project, &published)?;
    let format = args.output.output;
    let Some(limit) = args.wait.limit() else {
        let told = match Exposure::of(&exposed.service) {
            Exposure::Rejected(reason) => format!("route rejected: {reason}"),
            _ => format!("route {}", route(&exposed)),
        };
        output::note(&told);
        print(&exposed.service, url, &project, format)?;
        return Ok(Exit::Success);
    };
    let ended = wait::until_routed(&cluster, &project, exposed, limit).await?;
    if let Some(service) = ended.service.as_ref().filter(|_| ended.error.is_none()) {
        print(service, url, &project, format)?;
    }
    ended.error.map_or(Ok(ended.exit), Err)
}

/// The address the service has or would have; none when the installation's domain is not known here.
fn address(
    service: &AnkkaService,
    name: &str,
    project: &Project,
    published: &Published,
) -> Result<Option<String>, Error> {
    let Published::Known(domain) = published else {
        return Ok(Exposure::of(service).url().map(str::to_owned));
    };
    match exposure::host(&project.id, name, serves_http(&service.spec.service), domain.as_ref()) {
        Ok(host) => Ok(domain.as_ref().map(|domain| exposure::url(&host, domain))),
        Err(refusal) => Err(Error::new(refusal.to_string()).hint(advice(&refusal))),
    }
}

fn serves_http(service: &ServiceSpec) -> bool {
    service.http.unwrap_or(true)
}

fn advice(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NoHttp(_) => "it says \"http\": false; a service that serves HTTP leaves that out of its descriptor",
        Refusal::LabelTooLong { .. } => {
            "nothing was changed; the service name and the project id may have 62 characters together"
        }
        Refusal::NoBaseDomain => {
            "nothing was changed; an administrator of the platform sets it with the chart's value baseDomain"
        }
    }
}

/// How the route is, as far as the operator has reported on this change.
fn route(exposed: &Applied) -> String {
    let service = &exposed.service;
    let status = service.status.as_ref();
    let reported = status.filter(|status| status.observed_generation >= service.metadata.generation);
    reported.and_then(|status| status.route.clone()).unwrap_or_else(|| "pending".to_owned())
}

/// The address alone for people, the service for programs.
fn print(service: &AnkkaService, url: Option<String>, project: &Project, format: Format) -> Result<(), Error> {
    let view = ServiceView::of(service, &project.id);
    let url = url.or_else(|| Exposure::of(service).url().map(str::to_owned));
    match (format, url) {
        (Format::Table | Format::Wide, Some(url)) => Ok(output::data(&url)?),
        (Format::Table | Format::Wide, None) => {
            output::note(&format!(
                "its address is not known yet; look with: ankka services get {} -p {}",
                view.name(),
                project.id
            ));
            Ok(())
        }
        (format, Some(url)) => view.at(url).print(format),
        (format, None) => view.print(format),
    }
}
