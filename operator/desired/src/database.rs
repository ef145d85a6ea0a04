//! A service's database: how far it is, whether instances have to wait for it, and what is said about it.
//!
//! The database controller makes it. A service whose login is in place goes on whatever becomes of that controller or of
//! the server: only what needs a login that is not there yet waits.

use std::borrow::Cow;

use ankka_crds::resources::{Condition, ProvisioningStatus};
use ankka_crds::{AnkkaDatabase, ValidatedService, names, validated};

use crate::facts::created;
use crate::objects::Database;
use crate::status::{self, Lifecycle, Reason, Verdict};
use crate::{Cause, DatabaseServer, DatabaseState, Facts, Problem};

/// Why a service that does not supply its own database cannot be run.
pub(crate) const NO_SERVER: &str = "the installation has no database server";

/// What can be done about that.
const WITHOUT_SERVER: &str = "supply a database with ANKKA_DB_ variables in the descriptor, or ask the platform's \
                              administrator to give the installation one (database.host or database.bundled.enabled in \
                              the chart's values)";

/// What is said while there is no more to say.
pub(crate) const WAITING: &str = "waiting for database";

const PROVISIONED: &str = "provisioned";
const RECOVERED: &str = "recovered existing data";
/// The service brings its own.
pub(crate) const SUPPLIED: &str = "supplied";
const FAILED: &str = "database provisioning failed";

impl DatabaseState {
    /// What of an AnkkaDatabase the decision needs.
    pub fn of(database: &AnkkaDatabase) -> Self {
        let status = database.status.clone().unwrap_or_default();
        Self {
            asked: database.spec.credential_generation,
            created: created(&database.metadata),
            phase: status.phase,
            detail: status.detail,
            secret: status.secret,
            in_place: status.credential_generation,
            former: status.former_logins,
        }
    }

    fn has_failed(&self) -> bool {
        self.phase.as_deref() == Some(FAILED)
    }

    /// What stands in its way; none while it is only being made.
    fn problem(&self) -> Option<Problem> {
        let why = self.detail.as_deref();
        if self.has_failed() {
            return Some(Problem::new(Cause::DatabaseRefused, format!("database: {}", why.unwrap_or(FAILED))));
        }
        why.map(|why| Problem::new(Cause::Database, format!("{WAITING}: {why}")))
    }
}

/// Whether a database in this phase is there, so that nothing more is said of it.
pub(crate) fn is_there(phase: &str) -> bool {
    matches!(phase, PROVISIONED | RECOVERED)
}

/// Whether the platform makes the database of this service.
fn is_provisioned(service: &ValidatedService) -> bool {
    service.database == validated::Database::Provisioned
}

/// Why a service cannot have the database it needs, whatever is done in the cluster.
pub(crate) fn refusal(facts: &Facts<'_>, service: &ValidatedService) -> Option<String> {
    let none = is_provisioned(service) && facts.settings.database == DatabaseServer::None;
    none.then(|| format!("database: {NO_SERVER}; {WITHOUT_SERVER}"))
}

/// The database to render for; none when the platform makes none. What was asked for once is never taken back.
pub(crate) fn wanted<'a>(facts: &Facts<'a>, service: &ValidatedService) -> Option<Database<'a>> {
    let commanded = facts.service.spec.database.as_ref().map_or(0, |commands| commands.credential_generation);
    is_provisioned(service).then(|| {
        let derived = || Cow::Owned(names::database_secret(&service.name));
        let secret = facts.database.and_then(|database| database.secret.as_deref());
        Database {
            asked: facts.database.map_or(commanded, |database| database.asked.max(commanded)),
            secret: secret.map_or_else(derived, Cow::Borrowed),
            in_place: facts.database.map_or(0, |database| database.in_place),
        }
    })
}

/// Why no instance may be started or changed yet. Instances of before are left alone.
pub(crate) fn obstacle(facts: &Facts<'_>, service: &ValidatedService) -> Option<Verdict> {
    if !is_provisioned(service) || facts.database.is_some_and(|database| database.secret.is_some()) {
        return None;
    }
    let problem = facts.database.and_then(DatabaseState::problem);
    let detail = problem.map_or_else(|| WAITING.to_owned(), |problem| problem.told(facts.place()));
    let verdict = if facts.database.is_some_and(DatabaseState::has_failed) {
        Verdict::new(Lifecycle::Failed, Reason::DatabaseProvisioningFailed, Some(detail))
    } else {
        Verdict::new(Lifecycle::UpdateInProgress, Reason::WaitingForDatabase, Some(detail))
    };
    Some(verdict)
}

/// Why instances that have their login may not get on with it.
pub(crate) fn trouble(facts: &Facts<'_>) -> Option<Problem> {
    let state = facts.database.filter(|_| facts.settings.database == DatabaseServer::Provisioned)?;
    let well = state.phase.as_deref().is_some_and(is_there);
    state.problem().filter(|_| !well)
}

/// The documented phrase and why. `requested`: whether a database is asked for, if it has not been already.
pub(crate) fn status(facts: &Facts<'_>, service: &ValidatedService, requested: bool) -> Option<ProvisioningStatus> {
    let said = |phase: &str, detail: Option<&str>| {
        let detail = detail.map(str::to_owned);
        Some(ProvisioningStatus { phase: phase.to_owned(), detail, former_logins: Vec::new() })
    };
    if service.database == validated::Database::Supplied {
        return said(SUPPLIED, None);
    }
    match (facts.settings.database, facts.database) {
        (DatabaseServer::None, _) => said(FAILED, Some(NO_SERVER)),
        (DatabaseServer::Provisioned, None) => requested.then(|| said(WAITING, None))?,
        (DatabaseServer::Provisioned, Some(database)) => {
            let phase = match database.phase.as_deref() {
                None => WAITING,
                // It is older than the service: it was made for one of the same name, and its data is that one's.
                Some(PROVISIONED) if database.created < created(&facts.service.metadata) => RECOVERED,
                Some(phase) => phase,
            };
            said(phase, database.detail.as_deref())
        }
    }
}

/// The condition `DatabaseReady`; none for a service that has no database of ours.
pub(crate) fn condition(facts: &Facts<'_>, said: &ProvisioningStatus) -> Option<Condition> {
    let (value, reason) = match said.phase.as_str() {
        SUPPLIED => return None,
        PROVISIONED => ("True", Reason::Provisioned),
        RECOVERED => ("True", Reason::Recovered),
        FAILED if facts.settings.database == DatabaseServer::None => ("False", Reason::NoDatabaseServer),
        FAILED => ("False", Reason::DatabaseProvisioningFailed),
        _ => ("Unknown", Reason::WaitingForDatabase),
    };
    let message = said.detail.clone().unwrap_or_default();
    Some(status::condition("DatabaseReady", value, reason, message, facts.service.metadata.generation))
}
