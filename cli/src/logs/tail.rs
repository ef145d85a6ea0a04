//! Reads the log of one instance, over broken connections and restarts of its container.

use std::sync::Arc;
use std::time::Duration;

use futures::AsyncBufRead;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::Api;
use kube::api::LogParams;
use tokio::sync::mpsc;

use crate::cluster::Unknown;

use super::place::Place;
use super::read::Lines;
use super::{Item, Line};

/// How many lines are read ahead of an instance whose turn has not come.
const AHEAD: usize = 64;
/// How soon an instance is looked at again, and how late at most.
const SOON: Duration = Duration::from_millis(500);
const LATE: Duration = Duration::from_secs(5);

/// Where to begin.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Start {
    /// Only what was written in the last so many seconds.
    pub(crate) seconds: Option<i64>,
    /// Only so many lines from the end.
    pub(crate) lines: Option<i64>,
    /// Of the container that ran before the present one.
    pub(crate) previous: bool,
}

/// One instance's log.
pub(crate) struct Tail {
    /// The project's pods.
    pub(crate) pods: Api<Pod>,
    /// The pod.
    pub(crate) name: String,
    /// The container.
    pub(crate) container: &'static str,
    /// Where to begin.
    pub(crate) start: Start,
}

/// How a container is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// It has not run yet, for this reason.
    Waiting(String),
    /// It runs or has run; this is its id.
    Ran { id: String, running: bool },
}

/// How a reading ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// With the log.
    Whole,
    /// The connection broke.
    Broken,
    /// Nobody listens any more.
    Unheard,
}

impl Tail {
    /// Reads what is there and ends.
    pub(crate) fn read(self) -> mpsc::Receiver<Item> {
        let (sender, items) = mpsc::channel(AHEAD);
        tokio::spawn(async move {
            let instance: Arc<str> = self.name.as_str().into();
            let params = self.params(false, self.start, None);
            match self.pods.log_stream(&self.name, &params).await {
                Ok(log) => {
                    let _ = sender.send(Item::Opened).await;
                    if send(log, &instance, &mut Place::default(), &sender).await == End::Broken {
                        let _ = sender.send(broken(&instance)).await;
                    }
                }
                Err(cause) => drop(sender.send(told(cause, &instance, self.start.previous)).await),
            }
        });
        items
    }

    /// Reads on until the instance is gone.
    pub(crate) fn follow(self) -> mpsc::Receiver<Item> {
        let (sender, items) = mpsc::channel(AHEAD);
        tokio::spawn(async move {
            if let Err(cause) = self.follow_into(&sender).await {
                let _ = sender.send(told(cause, &self.name, false)).await;
            }
        });
        items
    }

    async fn follow_into(&self, sender: &mpsc::Sender<Item>) -> kube::Result<()> {
        let instance: Arc<str> = self.name.as_str().into();
        let mut place = Place::default();
        // The container that was read, and whether to its end.
        let mut read: Option<(String, bool)> = None;
        let mut wait = SOON;
        // Whether it was said that the log cannot be read at present.
        let mut said = false;
        loop {
            let pod = match self.pods.get_opt(&self.name).await {
                Ok(Some(pod)) => pod,
                Ok(None) => return Ok(()),
                Err(cause) if passes(&cause) && !sender.is_closed() => {
                    pause(&mut wait).await;
                    continue;
                }
                Err(cause) => return Err(cause),
            };
            let state = state(&pod, self.container);
            let again = match (&state, &read) {
                (State::Waiting(_), _) => false,
                (State::Ran { id, running }, Some((before, whole))) => *running || !whole || id != before,
                (State::Ran { .. }, None) => true,
            };
            if !again && is_over(&pod) {
                return Ok(());
            }
            let State::Ran { id, .. } = state.clone() else {
                // What it is waiting for holds up nobody.
                let _ = sender.send(Item::Opened).await;
                pause(&mut wait).await;
                continue;
            };
            if !again {
                pause(&mut wait).await;
                continue;
            }
            if read.as_ref().is_some_and(|(before, _)| *before != id) {
                // The end of what ran before may have been missed.
                let rest = self.params(false, Start { previous: true, ..Start::default() }, Some(&mut place));
                if let Ok(log) = self.pods.log_stream(&self.name, &rest).await
                    && send(log, &instance, &mut place, sender).await == End::Broken
                {
                    let _ = sender.send(broken(&instance)).await;
                }
            }
            let start = if read.is_none() { self.start } else { Start::default() };
            let params = self.params(true, start, Some(&mut place));
            match self.pods.log_stream(&self.name, &params).await {
                Ok(log) => {
                    let _ = sender.send(Item::Opened).await;
                    match send(log, &instance, &mut place, sender).await {
                        End::Unheard => return Ok(()),
                        end => read = Some((id, end == End::Whole)),
                    }
                    wait = SOON;
                    said = false;
                }
                Err(cause) if passes(&cause) => {
                    if !said && is_of_the_instance(&cause) {
                        said = true;
                        let _ = sender.send(told(cause, &self.name, false)).await;
                    }
                }
                Err(cause) => return Err(cause),
            }
            pause(&mut wait).await;
        }
    }

    /// What to ask for: from `start`, or from where reading has arrived.
    fn params(&self, follow: bool, start: Start, place: Option<&mut Place>) -> LogParams {
        let since = place.and_then(|place| {
            place.again();
            place.second()
        });
        LogParams {
            container: Some(self.container.to_owned()),
            follow,
            previous: start.previous,
            timestamps: true,
            since_time: since,
            since_seconds: start.seconds.filter(|_| since.is_none()),
            tail_lines: start.lines.filter(|_| since.is_none()),
            ..LogParams::default()
        }
    }
}

/// Sends the lines of a log that are new.
async fn send(
    log: impl AsyncBufRead + Unpin,
    instance: &Arc<str>,
    place: &mut Place,
    sender: &mpsc::Sender<Item>,
) -> End {
    let mut lines = Lines::of(log);
    let mut latest = Timestamp::UNIX_EPOCH;
    let mut new = true;
    loop {
        let piece = match lines.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => return End::Whole,
            Err(_) => return End::Broken,
        };
        if let Some(at) = piece.at {
            latest = at;
            new = place.is_new(at);
        } else if piece.begins {
            // Said by the node, not by the instance.
            new = true;
        }
        if new {
            let line = Line { at: latest, instance: instance.clone(), text: piece.text };
            if sender.send(Item::Line(line)).await.is_err() {
                return End::Unheard;
            }
        }
    }
}

async fn pause(wait: &mut Duration) {
    tokio::time::sleep(*wait).await;
    *wait = (*wait * 2).min(LATE);
}

/// Whether asking again may help: the server is away or busy, the node is not reached, or the container is about to start.
fn passes(cause: &kube::Error) -> bool {
    match cause {
        kube::Error::Api(status) => matches!(status.code, 400 | 404 | 429) || status.code >= 500,
        kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => true,
        _ => false,
    }
}

/// Whether it may be about this instance alone: its node does not answer, while other nodes may.
fn is_of_the_instance(cause: &kube::Error) -> bool {
    match cause {
        kube::Error::Api(status) => status.code >= 500,
        kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => true,
        _ => false,
    }
}

/// What a refusal tells: an answer that says that there is no log is no failure.
fn told(cause: kube::Error, instance: &str, previous: bool) -> Item {
    match cause {
        kube::Error::Api(status) if previous && status.code == 400 && says_not_restarted(&status.message) => {
            Item::NotRestarted
        }
        kube::Error::Api(status) if matches!(status.code, 400 | 404) => Item::Absent(status.message.clone()),
        cause if is_of_the_instance(&cause) => {
            let why = Unknown::of(&cause);
            Item::Unread(format!("the log of instance '{instance}' cannot be read: {}", why.0))
        }
        cause => Item::Failed(Box::new(cause)),
    }
}

/// The kubelet's words for a container that has not run before.
fn says_not_restarted(message: &str) -> bool {
    message.contains("previous terminated container") && message.ends_with("not found")
}

/// A connection that broke in the middle of a log.
fn broken(instance: &str) -> Item {
    Item::Unread(format!("the log of instance '{instance}' goes on: the connection to it broke"))
}

fn state(pod: &Pod, container: &str) -> State {
    let found = pod
        .status
        .iter()
        .flat_map(|status| status.container_statuses.iter().flatten())
        .find(|status| status.name == container);
    let Some(ContainerStatus { container_id, state: Some(state), .. }) = found else {
        return State::Waiting("it is not started yet".to_owned());
    };
    match container_id.as_ref().filter(|id| !id.is_empty()) {
        Some(id) => State::Ran { id: id.clone(), running: state.running.is_some() },
        None => State::Waiting(
            state.waiting.as_ref().and_then(|waiting| waiting.reason.clone()).unwrap_or_else(|| "it waits".to_owned()),
        ),
    }
}

/// Whether its containers never run again.
fn is_over(pod: &Pod) -> bool {
    pod.status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .is_some_and(|phase| matches!(phase, "Succeeded" | "Failed"))
}
