//! `ankka services logs`.

use std::collections::HashSet;
use std::io::{self, BufWriter, Stdout, Write};
use std::pin::pin;

use anstream::AutoStream;
use anstream::ColorChoice;
use clap::ValueEnum;
use clap::builder::styling::{AnsiColor, Style};
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use serde::Serialize;

use super::instances::{self, Container, is_instance, short};
use super::project_of;
use crate::args::Global;
use crate::cluster::{Attempt, Cluster, Subject};
use crate::complete;
use crate::duration::{self, Limit};
use crate::error::{Error, Exit, Outcome};
use crate::logs::{Line, Merge, Next, Start, Tail};
use crate::output;
use crate::settings::Project;
use crate::show::service::selector;

/// Shows what the instances of a service have written, merged by time. Each line names its instance.
#[derive(clap::Args)]
pub(crate) struct LogsArgs {
    /// The service
    #[arg(add = complete::services())]
    name: String,

    /// Go on with what is written from now on, also by the instances of later rollouts
    #[arg(short, long)]
    follow: bool,

    /// Show what was written before the last restart of each instance
    #[arg(long, conflicts_with = "follow")]
    previous: bool,

    /// Show what was written in this time only, e.g. `10m`
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    since: Option<Limit>,

    /// Show only so many lines from the end of each instance's log
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    tail: Option<i64>,

    /// Only this instance: a pod's name, or what a line begins with
    #[arg(long, value_name = "POD")]
    instance: Option<String>,

    /// Whose log
    #[arg(long, value_enum, default_value_t, value_name = "CONTAINER")]
    container: Container,

    /// Show when each line was written
    #[arg(long)]
    timestamps: bool,

    /// How lines are printed
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
}

/// How lines are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Text,
    /// For programs: an object a line
    Json,
}

impl LogsArgs {
    /// Whether errors are JSON too.
    pub(crate) fn json(&self) -> bool {
        self.output == Format::Json
    }
}

/// A line for programs.
#[derive(Serialize)]
struct LineView<'a> {
    time: String,
    instance: &'a str,
    container: &'static str,
    message: &'a str,
}

/// Shows the logs.
pub(crate) async fn logs(args: LogsArgs, global: &Global) -> Outcome {
    let project = project_of(&args.name, global)?;
    let cluster = Cluster::connect(global).await?;
    let all = instances::all(&cluster, &project, &args.name).await?;
    let meant = instances::named(all, args.instance.as_deref(), &args.name, &project)?;
    instances::with_container(&meant, args.container, &args.name)?;
    if meant.is_empty() {
        let waiting = if args.follow { "; waiting for some" } else { "" };
        output::note(&format!("service '{}' has no instances{waiting}", args.name));
    }
    let reader = Reader { cluster: &cluster, project: &project, args: &args };
    if args.follow { reader.follow(meant).await } else { reader.read(meant).await }
}

struct Reader<'a> {
    cluster: &'a Cluster,
    project: &'a Project,
    args: &'a LogsArgs,
}

impl Reader<'_> {
    /// Prints what is there.
    async fn read(&self, instances: Vec<Pod>) -> Outcome {
        let count = instances.len();
        let mut merge = Merge::new(false);
        for pod in instances {
            merge.add(self.tail(pod.name_any(), self.start()).read());
        }
        let mut printer = Printer::new(self.args);
        let (mut absent, mut not_restarted) = (Vec::new(), 0);
        let mut unread = Vec::new();
        while let Some(next) = merge.next().await {
            match next {
                Next::Line(line) => {
                    if !printer.print(&line)? {
                        return Ok(Exit::Success);
                    }
                }
                Next::Absent(why) => absent.push(why),
                Next::NotRestarted => not_restarted += 1,
                Next::Unread(why) => unread.push(why),
                Next::Failed(cause) => return Err(self.failed(*cause)),
            }
        }
        printer.flush()?;
        if count > 0 && not_restarted == count {
            return Err(Error::new(format!("no instance of service '{}' has been restarted", self.args.name))
                .hint("the log of the present run is shown without --previous"));
        }
        for why in &absent {
            output::note(why);
        }
        for why in &unread {
            output::warning(why);
        }
        Ok(if unread.is_empty() { Exit::Success } else { Exit::Failure })
    }

    /// Prints what is there and what comes, until nothing can come any more: with one instance, when it is gone.
    async fn follow(&self, instances: Vec<Pod>) -> Outcome {
        let mut known: HashSet<String> = HashSet::new();
        let mut merge = Merge::new(true);
        for pod in instances {
            known.insert(pod.name_any());
            merge.add(self.tail(pod.name_any(), self.start()).follow());
        }
        let config = watcher::Config::default().labels(&selector(&self.project.id, &self.args.name));
        let pods: Api<PartialObjectMeta<Pod>> = Api::namespaced(self.cluster.client(), &self.project.namespace);
        let mut seen = pin!(watcher(pods, config).default_backoff());
        let watches = self.args.instance.is_none();
        let mut printer = Printer::new(self.args);
        while watches || !merge.is_empty() {
            let ready = if merge.is_empty() { None } else { merge.next().now_or_never().flatten() };
            let next = if let Some(next) = ready {
                next
            } else {
                if !printer.flush()? {
                    return Ok(Exit::Success);
                }
                tokio::select! {
                    Some(next) = merge.next(), if !merge.is_empty() => next,
                    event = seen.next(), if watches => {
                        if let Some(name) = self.appeared(event)?.filter(|name| known.insert(name.clone())) {
                            merge.add(self.tail(name, Start::default()).follow());
                        }
                        continue;
                    }
                    else => continue,
                }
            };
            match next {
                Next::Line(line) => {
                    if !printer.print(&line)? {
                        return Ok(Exit::Success);
                    }
                }
                Next::Absent(why) => output::note(&why),
                // Reading goes on as soon as it can.
                Next::Unread(why) => output::warning(&why),
                Next::NotRestarted => {}
                Next::Failed(cause) => return Err(self.failed(*cause)),
            }
        }
        printer.flush()?;
        Ok(Exit::Success)
    }

    /// The instance that a watch tells of. A watch that is not allowed ends the command, every other failure passes.
    fn appeared(
        &self,
        event: Option<Result<watcher::Event<PartialObjectMeta<Pod>>, watcher::Error>>,
    ) -> Result<Option<String>, Error> {
        match event {
            Some(Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod))) => {
                Ok(Some(pod.name_any()).filter(|_| is_instance(&pod)))
            }
            Some(Err(watcher::Error::InitialListFailed(cause) | watcher::Error::WatchStartFailed(cause))) if matches!(&cause, kube::Error::Api(status) if status.code == 403) =>
            {
                let subject = Subject::Instances(&self.args.name, self.project);
                Err(self.cluster.explain(Attempt { verb: "watch", subject }, cause))
            }
            _ => Ok(None),
        }
    }

    fn tail(&self, name: String, start: Start) -> Tail {
        let pods = instances::pods(self.cluster, self.project);
        Tail { pods, name, container: self.args.container.name(), start }
    }

    fn start(&self) -> Start {
        let seconds = self.args.since.map(|Limit(limit)| {
            let rounded_up = limit.as_secs() + u64::from(limit.subsec_nanos() > 0);
            i64::try_from(rounded_up).unwrap_or(i64::MAX)
        });
        Start { seconds, lines: self.args.tail, previous: self.args.previous }
    }

    fn failed(&self, cause: kube::Error) -> Error {
        let subject = Subject::Instances(&self.args.name, self.project);
        self.cluster.explain(Attempt { verb: "read the logs of", subject }, cause)
    }
}

/// Prints lines as they are; nothing but the instance's name is coloured.
struct Printer<'a> {
    out: BufWriter<Stdout>,
    args: &'a LogsArgs,
    coloured: bool,
}

const COLOURS: [AnsiColor; 6] =
    [AnsiColor::Cyan, AnsiColor::Yellow, AnsiColor::Green, AnsiColor::Magenta, AnsiColor::Blue, AnsiColor::BrightRed];

impl<'a> Printer<'a> {
    fn new(args: &'a LogsArgs) -> Self {
        let coloured = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        Self { out: BufWriter::new(io::stdout()), args, coloured }
    }

    /// Prints a line. False when nobody reads any more.
    fn print(&mut self, line: &Line) -> Result<bool, Error> {
        let written = match self.args.output {
            Format::Json => {
                let view = LineView {
                    time: line.at.to_string(),
                    instance: &line.instance,
                    container: self.args.container.name(),
                    message: &line.text,
                };
                let text = serde_json::to_string(&view)
                    .map_err(|cause| Error::new(format!("failed to write the result as JSON: {cause}")))?;
                writeln!(self.out, "{text}")
            }
            Format::Text => {
                let style = if self.coloured { colour(&line.instance) } else { Style::new() };
                let time = if self.args.timestamps { format!("{} ", line.at) } else { String::new() };
                writeln!(self.out, "{time}{style}{}{style:#} | {}", short(&line.instance), line.text)
            }
        };
        heard(written)
    }

    /// Prints what is held back. False when nobody reads any more.
    fn flush(&mut self) -> Result<bool, Error> {
        heard(self.out.flush())
    }
}

fn heard(written: io::Result<()>) -> Result<bool, Error> {
    match written {
        Ok(()) => Ok(true),
        Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(cause) => Err(cause.into()),
    }
}

/// The same colour for the same instance, each time.
fn colour(instance: &str) -> Style {
    let sum = instance.bytes().fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
    COLOURS[sum % COLOURS.len()].on_default().bold()
}
