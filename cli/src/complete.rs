//! Completion of the names in the cluster, while a command is typed: one request, a short wait, and not a word when it fails.

use std::ffi::{OsStr, OsString};
use std::sync::mpsc::channel;
use std::time::Duration;

use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use ankka_crds::{AnkkaProject, AnkkaService};

use crate::args::{self, Global};
use crate::cluster::Cluster;
use crate::error::Error;
use crate::output;
use crate::settings::Settings;

/// Set by the scripts of `ankka completion` to the shell that asks.
pub(crate) const VARIABLE: &str = "ANKKA_COMPLETE";
/// How long a person waits for the names.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many names are worth showing.
const MOST: u32 = 500;

/// Answers a shell that asks, and ends the process then.
pub(crate) fn answer() {
    if std::env::var_os(VARIABLE).is_some() {
        output::silence();
        CompleteEnv::with_factory(args::command).var(VARIABLE).bin("ankka").completer("ankka").complete();
    }
}

/// Completes the name of a service of the selected project.
pub(crate) fn services() -> ArgValueCandidates {
    ArgValueCandidates::new(|| candidates(Kind::Services))
}

/// Completes the name of a project.
pub(crate) fn projects() -> ArgValueCandidates {
    ArgValueCandidates::new(|| candidates(Kind::Projects))
}

#[derive(Clone, Copy)]
enum Kind {
    Services,
    Projects,
}

fn candidates(kind: Kind) -> Vec<CompletionCandidate> {
    let (sender, names) = channel();
    // A thread of its own: whatever takes long, such as a program that logs in, ends with the process.
    std::thread::spawn(move || {
        let asked = tokio::runtime::Builder::new_current_thread().enable_all().build().map(|runtime| {
            let global = typed(std::env::args_os());
            runtime.block_on(names_of(kind, &global)).unwrap_or_default()
        });
        let _ = sender.send(asked.unwrap_or_default());
    });
    names.recv_timeout(PATIENCE).unwrap_or_default().into_iter().map(CompletionCandidate::new).collect()
}

async fn names_of(kind: Kind, global: &Global) -> Result<Vec<String>, Error> {
    let params = ListParams::default().limit(MOST);
    let refused = |cause: kube::Error| Error::new(cause.to_string());
    match kind {
        Kind::Services => {
            let project = Settings::load()?.selected(global.project.as_deref())?;
            let services: Api<AnkkaService> = Cluster::connect(global).await?.services(&project);
            let found = services.list_metadata(&params).await.map_err(refused)?;
            Ok(found.items.iter().map(ResourceExt::name_any).collect())
        }
        Kind::Projects => {
            let projects: Api<AnkkaProject> = Cluster::connect(global).await?.projects();
            let found = projects.list_metadata(&params).await.map_err(refused)?;
            Ok(found.items.iter().map(ResourceExt::name_any).collect())
        }
    }
}

/// Project and cluster as far as they are typed already; the line is not complete, so it cannot be parsed.
fn typed(arguments: impl IntoIterator<Item = OsString>) -> Global {
    let mut global = Global { project: std::env::var("ANKKA_PROJECT").ok(), ..Global::default() };
    let words: Vec<OsString> = arguments.into_iter().collect();
    let following = words.iter().skip(1).map(Some).chain([None]);
    for (word, next) in words.iter().zip(following) {
        let Some(word) = word.to_str() else { continue };
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (word, next.map(OsString::as_os_str).and_then(OsStr::to_str)),
        };
        let Some(value) = value else { continue };
        match option {
            "-p" | "--project" => global.project = Some(value.to_owned()),
            "--context" => global.context = Some(value.to_owned()),
            "--kubeconfig" => global.kubeconfig = Some(value.into()),
            _ => {}
        }
    }
    global
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_already_says_where_to_look() {
        let words =
            ["ankka", "--", "ankka", "services", "get", "-p", "shop", "--context=test", "--kubeconfig", "k", "ca"];
        let global = typed(words.map(OsString::from));
        assert_eq!(global.project.as_deref(), Some("shop"));
        assert_eq!(global.context.as_deref(), Some("test"));
        assert_eq!(global.kubeconfig, Some("k".into()));
        assert!(typed(["ankka", "--context"].map(OsString::from)).context.is_none());
    }
}
