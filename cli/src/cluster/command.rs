//! What commands set beside the descriptor: a merge patch of exactly those fields, under a field manager of their own.
//!
//! Each change is made from what was read and says which version that was. So two restarts at once are two, and none is
//! lost to a redeploy in the same second: whoever comes second is refused, reads again and asks again.

use std::time::Duration;

use ankka_crds::{AnkkaService, labels};
use kube::api::{Patch, PatchParams, ValidationDirective};
use kube::core::Status;
use serde_json::{Value, json};

use super::patch::Answer;
use super::patience::UNCERTAIN;
use super::{Applied, Attempt, Change, Cluster, Subject, explain};
use crate::error::Error;
use crate::settings::Project;

/// How often a change is tried: each time that it is refused, somebody else's was stored.
const TRIES: u32 = 40;
/// The pause before another try, at most; it grows to this, and is drawn anew each time so that equals come apart.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

impl Cluster {
    /// Changes `spec` to what `edit` makes of the service as it is: fields to set, `null` to take one away, nothing when it
    /// is so already.
    pub(crate) async fn command(
        &self,
        verb: &str,
        name: &str,
        project: &Project,
        edit: impl Fn(&AnkkaService) -> Result<Option<Value>, Error>,
    ) -> Result<Applied, Error> {
        let attempt = Attempt { verb, subject: Subject::Service(name, project) };
        let params = PatchParams {
            field_manager: Some(labels::COMMANDS_MANAGER.to_owned()),
            field_validation: Some(ValidationDirective::Strict),
            ..PatchParams::default()
        };
        for tried in 1..=TRIES {
            let stored = self.lasting_service(attempt, name, project).await?;
            let Some(spec) = edit(&stored)? else {
                return Ok(Applied { service: stored, change: Change::Unchanged, at: jiff::Timestamp::now() });
            };
            let body = json!({ "metadata": { "resourceVersion": stored.metadata.resource_version }, "spec": spec });
            match self.patch(attempt, name, project, &params, &Patch::Merge(body)).await? {
                Ok(Answer { service, at, .. }) => return Ok(Applied { service, change: Change::Configured, at }),
                Err(status) if UNCERTAIN.contains(&status.code) => {
                    return Err(uncertain(attempt, project, name, &status));
                }
                Err(conflict) if conflict.reason != "Conflict" => return Err(explain::refused(attempt, &conflict)),
                Err(_) => tokio::time::sleep(pause(tried)).await,
            }
        }
        Err(Error::new(format!("failed to {verb} {}: others changed it {TRIES} times meanwhile", attempt.subject))
            .hint("try again"))
    }
}

/// The server may have stored the change before it said this. Asking again could make one restart two, so it is left to
/// whoever can look.
fn uncertain(attempt: Attempt<'_>, project: &Project, name: &str, status: &Status) -> Error {
    let why = explain::refused(attempt, status).message;
    Error::new(format!("{why}; whether it was changed is not known")).hint(format!(
        "see whether it was, before you try again, with: ankka services history {name} -p {}",
        project.id
    ))
}

/// A part, drawn by the clock, of a span that doubles with each try.
fn pause(tried: u32) -> Duration {
    let span = Duration::from_millis(10).saturating_mul(2u32.saturating_pow(tried.min(16))).min(LONGEST_PAUSE);
    let drawn = jiff::Timestamp::now().subsec_nanosecond().unsigned_abs() % 1000;
    span * drawn / 1000
}
