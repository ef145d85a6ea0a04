//! `ankka services port-forward`.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;

use ankka_crds::rules::DEFAULT_PORT;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use super::instances::{self, is_ready};
use super::project_of;
use crate::args::{Global, OutputArgs};
use crate::cluster::{Attempt, Cluster, Subject};
use crate::complete;
use crate::error::{Error, Exit, Outcome};
use crate::input::reason;
use crate::output::{self, Format};
use crate::settings::Project;

/// How many instances are tried for one connection.
const TRIES: usize = 3;
/// How long nothing is accepted after that has failed.
const PAUSE: Duration = Duration::from_millis(100);

/// Makes a port of a service reachable on this machine, at a ready instance. A rollout ends what is connected; what connects
/// after it reaches a new instance.
#[derive(clap::Args)]
pub(crate) struct PortForwardArgs {
    /// The service
    #[arg(add = complete::services())]
    name: String,

    /// Port of the instances, and before it the port here when that is another; the service's own when absent
    #[arg(value_name = "[LOCAL:]PORT", value_parser = ports)]
    ports: Option<Ports>,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Which ports; none stands for the same as the other, or the service's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ports {
    local: Option<u16>,
    remote: Option<u16>,
}

/// Reads `9000`, `8080:9000`, `8080:`, and `:9000` or `0:9000` for any free port here.
fn ports(text: &str) -> Result<Ports, String> {
    let port = |text: &str| text.parse::<u16>().map_err(|_| format!("'{text}' is no port: a number from 1 to 65535"));
    let remote = |text: &str| match port(text)? {
        0 => Err("'0' is no port: a number from 1 to 65535".to_owned()),
        port => Ok(port),
    };
    match text.split_once(':') {
        None => Ok(Ports { local: None, remote: Some(remote(text)?) }),
        Some((local, "")) => Ok(Ports { local: Some(port(local)?), remote: None }),
        Some(("", there)) => Ok(Ports { local: Some(0), remote: Some(remote(there)?) }),
        Some((local, there)) => Ok(Ports { local: Some(port(local)?), remote: Some(remote(there)?) }),
    }
}

/// What is reachable where.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Forwarded<'a> {
    name: &'a str,
    project: &'a str,
    /// Where to connect to.
    address: String,
    /// Port of the instances.
    port: u16,
}

/// Forwards until it is ended.
pub(crate) async fn port_forward(args: PortForwardArgs, global: &Global) -> Outcome {
    let project = project_of(&args.name, global)?;
    let cluster = Cluster::connect(global).await?;
    let port = match args.ports.and_then(|ports| ports.remote) {
        Some(port) => port,
        None => own_port(&cluster, &project, &args.name).await?,
    };
    let forward = Rc::new(Forward { cluster, project, service: args.name, port, current: RefCell::default() });
    if forward.ready().await?.is_empty() {
        return Err(Error::new(format!("no instance of service '{}' is ready", forward.service))
            .hint(format!("see why with: ankka services get {} -p {}", forward.service, forward.project.id)));
    }
    let local = args.ports.and_then(|ports| ports.local).unwrap_or(port);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, local)).await.map_err(|cause| {
        let error = Error::new(format!("failed to listen on 127.0.0.1:{local}: {}", reason(&cause)));
        match cause.kind() {
            ErrorKind::AddrInUse | ErrorKind::PermissionDenied => error.hint(format!(
                "name another port here, e.g.: ankka services port-forward {} {}:{port} -p {}",
                forward.service,
                local.saturating_add(1).max(8080),
                forward.project.id
            )),
            _ => error,
        }
    })?;
    let address = listener.local_addr().map_err(|cause| Error::new(format!("failed to listen: {cause}")))?;
    // Programs that look up `localhost` may take this one first.
    let beside = TcpListener::bind((Ipv6Addr::LOCALHOST, address.port())).await.ok();
    let shown = Forwarded { name: &forward.service, project: &forward.project.id, address: address.to_string(), port };
    match args.output.output {
        Format::Json => output::compact(&shown)?,
        Format::Yaml => output::yaml(&shown)?,
        Format::Name => output::data(&shown.address)?,
        Format::Table | Format::Wide => {
            output::data(&format!("{} -> port {port} of service '{}'", shown.address, shown.name))?;
        }
    }
    let connections = LocalSet::new();
    connections
        .run_until(async {
            let mut failing = Failing::default();
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    accepted = accept(beside.as_ref()) => accepted,
                    _ = tokio::signal::ctrl_c() => return Ok(Exit::Interrupted),
                };
                match accepted {
                    Ok((connection, _)) => drop(tokio::task::spawn_local(forward.clone().one(connection))),
                    Err(cause) => failing.refused(&cause).await,
                }
            }
        })
        .await
}

/// Connections that could not be accepted, e.g. because this process may open no more files.
#[derive(Default)]
struct Failing {
    said: bool,
}

impl Failing {
    /// Says it once, and gives what is short some time: asking again at once would only keep a core busy.
    async fn refused(&mut self, cause: &std::io::Error) {
        if !std::mem::replace(&mut self.said, true) {
            output::warning(&format!("a connection could not be accepted: {}", reason(cause)));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn accept(listener: Option<&TcpListener>) -> std::io::Result<(TcpStream, std::net::SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// The port that the service listens on.
async fn own_port(cluster: &Cluster, project: &Project, name: &str) -> Result<u16, Error> {
    let attempt = Attempt { verb: "get", subject: Subject::Service(name, project) };
    let service = cluster.services(project).get(name).await.map_err(|cause| cluster.explain(attempt, cause))?;
    let spec = service.spec.service;
    if spec.http == Some(false) {
        return Err(Error::new(format!("service '{name}' serves no HTTP")).hint("name the port that is meant"));
    }
    let port = spec.port.unwrap_or(DEFAULT_PORT.into());
    u16::try_from(port).map_err(|_| Error::new(format!("service '{name}' has the port {port}, which is none")))
}

struct Forward {
    cluster: Cluster,
    project: Project,
    service: String,
    port: u16,
    /// The instance that the last connection went to.
    current: RefCell<Option<String>>,
}

impl Forward {
    /// The ready instances, the one in use first and then the newest: a rollout takes that one last.
    async fn ready(&self) -> Result<Vec<String>, Error> {
        let all = instances::all(&self.cluster, &self.project, &self.service).await?;
        let mut names: Vec<String> = all.iter().rev().filter(|pod| is_ready(pod)).map(Pod::name_any).collect();
        let current = self.current.borrow();
        names.sort_by_key(|name| current.as_ref() != Some(name));
        Ok(names)
    }

    /// Forwards one connection.
    async fn one(self: Rc<Self>, mut connection: TcpStream) {
        let ready = match self.ready().await {
            Ok(ready) => ready,
            Err(error) => return output::warning(&format!("a connection was closed: {}", error.message)),
        };
        if ready.is_empty() {
            return output::warning("a connection was closed: no instance is ready at present");
        }
        let pods = instances::pods(&self.cluster, &self.project);
        let mut last = String::new();
        for name in ready.into_iter().take(TRIES) {
            let mut forwarder = match pods.portforward(&name, &[self.port]).await {
                Ok(forwarder) => forwarder,
                Err(cause) => {
                    let subject = Subject::Instance(&name, &self.project);
                    last = self.cluster.explain(Attempt { verb: "reach", subject }, cause).message;
                    continue;
                }
            };
            let Some(mut stream) = forwarder.take_stream(self.port) else { continue };
            let before = self.current.replace(Some(name.clone()));
            if before.is_some_and(|before| before != name) {
                output::note(&format!("now at instance '{name}'"));
            }
            let refused = forwarder.take_error(self.port);
            // Either side may hang up at any time.
            let _ = tokio::io::copy_bidirectional(&mut connection, &mut stream).await;
            drop(stream);
            let said = match refused {
                Some(refused) => refused.await,
                None => None,
            };
            if let Some(why) = said {
                output::warning(&format!("instance '{name}' closed a connection: {}", why.trim()));
            }
            return;
        }
        output::warning(&format!("a connection was closed: {last}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_as_kubectl_reads_them() {
        let table = [
            ("9000", Some((None, Some(9000)))),
            ("8080:9000", Some((Some(8080), Some(9000)))),
            ("8080:", Some((Some(8080), None))),
            (":9000", Some((Some(0), Some(9000)))),
            ("0:9000", Some((Some(0), Some(9000)))),
            ("", None),
            ("0", None),
            ("x", None),
            ("1:2:3", None),
            ("70000", None),
        ];
        for (text, expected) in table {
            let read = ports(text).ok().map(|ports| (ports.local, ports.remote));
            assert_eq!(read, expected, "{text}");
        }
    }
}
