//! Saved settings, and which project a command is about.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ankka_crds::{names, project};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::input::reason;
use crate::output;

/// The variable that overrides where settings are saved.
const FILE: &str = "ANKKA_CONFIG";
/// The variable with the prefix of project namespaces; the platform's own processes read the same one.
const PREFIX: &str = "ANKKA_K8S_NAMESPACE_PREFIX";

/// What `ankka config` keeps, in `~/.ankka/config.json` unless `ANKKA_CONFIG` names another file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Settings {
    /// The project of commands that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<String>,
    /// Prefix of project namespaces, where it is not `ankka`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) namespace_prefix: Option<String>,
    /// What other versions of this command saved.
    #[serde(flatten)]
    other: BTreeMap<String, serde_json::Value>,
    /// Why nothing of it is known: the file cannot be read.
    #[serde(skip)]
    unread: Option<Unread>,
}

/// A file of settings that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unread {
    message: String,
    hint: Option<String>,
}

impl Unread {
    fn error(&self) -> Error {
        Error { hint: self.hint.clone(), ..Error::new(self.message.clone()) }
    }
}

/// The project a command is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Project {
    /// Its id.
    pub(crate) id: String,
    /// Its namespace, `<prefix>-<id>`.
    pub(crate) namespace: String,
}

impl Settings {
    /// Reads the saved settings for a command that may do without them: a file that cannot be read stops it only where it
    /// needs what was saved.
    pub(crate) fn load() -> Result<Self, Error> {
        Self::saved().or_else(|Error { message, hint, .. }| {
            Ok(Self { unread: Some(Unread { message, hint }), ..Self::default() })
        })
    }

    /// Reads the saved settings; none saved is none set.
    pub(crate) fn saved() -> Result<Self, Error> {
        let Some(path) = path() else {
            return Ok(Self::default());
        };
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(cause) => {
                return Err(Error::new(format!(
                    "failed to read the settings in '{}': {}",
                    path.display(),
                    reason(&cause)
                )));
            }
        };
        serde_json::from_slice(&text).map_err(|cause| {
            Error::new(format!("failed to read the settings in '{}': {cause}", path.display()))
                .hint("correct the file or delete it")
        })
    }

    /// Saves the settings, replacing the file in one step.
    pub(crate) fn save(&self) -> Result<(), Error> {
        let path = path().ok_or_else(|| {
            Error::new("failed to save the settings: there is no home directory").hint(format!("set {FILE} to a file"))
        })?;
        let failed = |cause: std::io::Error| {
            Error::new(format!("failed to save the settings in '{}': {}", path.display(), reason(&cause)))
        };
        let text = serde_json::to_string_pretty(self).map_err(|cause| failed(cause.into()))? + "\n";
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut beside = path.clone().into_os_string();
        beside.push(format!(".{}", std::process::id()));
        std::fs::write(&beside, text).map_err(failed)?;
        std::fs::rename(&beside, &path).map_err(failed)
    }

    /// Prefix of project namespaces: the variable, then what was saved, then `ankka`. What was saved has to be known for
    /// that: a guess would send a command to the project of the same name in another namespace.
    pub(crate) fn prefix(&self) -> Result<String, Error> {
        match (variable(PREFIX), &self.unread) {
            (Some(prefix), _) => Ok(prefix),
            (None, Some(unread)) => Err(unread.error().hint(format!(
                "correct the file or delete it, or name the prefix of project namespaces with {PREFIX}"
            ))),
            (None, None) => Ok(self.namespace_prefix.clone().unwrap_or_else(|| names::DEFAULT_PREFIX.to_owned())),
        }
    }

    /// The project's namespace, once its id keeps the rules.
    pub(crate) fn project(&self, id: &str) -> Result<Project, Error> {
        let prefix = self.prefix()?;
        checked_prefix(&prefix)?;
        if let Some(unread) = &self.unread {
            output::warning(&format!("{}; going on without them", unread.message));
        }
        project::validate(id, &prefix, None).map_err(|problems| {
            Error::new(problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>().join("; "))
        })?;
        Ok(Project { id: id.to_owned(), namespace: names::namespace(&prefix, id) })
    }

    /// The project of this command: `--project` or `ANKKA_PROJECT`, then what was saved.
    pub(crate) fn selected(&self, named: Option<&str>) -> Result<Project, Error> {
        self.optional(named)?.ok_or_else(|| {
            Error::new("no project selected")
                .hint("name one with --project or ANKKA_PROJECT, or save one with: ankka config set project <project>")
        })
    }

    /// The same for a command that may do without one. That one was selected and cannot be used is still an error.
    pub(crate) fn optional(&self, named: Option<&str>) -> Result<Option<Project>, Error> {
        match (named.filter(|id| !id.is_empty()).or(self.project.as_deref()), &self.unread) {
            (Some(id), _) => self.project(id).map(Some),
            (None, Some(unread)) => Err(unread.error()),
            (None, None) => Ok(None),
        }
    }
}

/// Refuses what cannot be the prefix of project namespaces, wherever it comes from.
pub(crate) fn checked_prefix(prefix: &str) -> Result<(), Error> {
    if names::is_prefix(prefix) {
        return Ok(());
    }
    Err(Error::new(format!("namespace prefix '{prefix}' is invalid: {}", names::PREFIX_RULE)))
}

/// Where settings are saved; none without a home directory.
fn path() -> Option<PathBuf> {
    std::env::var_os(FILE)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(".ankka").join("config.json")))
}

/// A variable that is set to something.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
