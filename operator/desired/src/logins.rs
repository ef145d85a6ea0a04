//! Database logins of before: which are still accepted, and whether an instance is about to be shut out with one.
//!
//! After a reissue the old instances are replaced, and their login ends later, at a recorded time. Where the replacement does not
//! get on they are shut out then, so that is said while there is time to do something about it.

use ankka_crds::names;
use ankka_crds::resources::{FormerLogin, ProvisioningStatus};
use k8s_openapi::jiff::Timestamp;

use crate::{Facts, database};

/// What is said of the database, with its logins of before. `held_up`: instances of before may stay.
pub(crate) fn told(facts: &Facts<'_>, said: ProvisioningStatus, held_up: bool) -> ProvisioningStatus {
    if said.phase == database::SUPPLIED {
        return said;
    }
    let accepted = former(facts).filter(|(_, end)| *end > facts.now).map(|(login, _)| login.clone());
    let mut said = ProvisioningStatus { former_logins: accepted.collect(), ..said };
    if database::is_there(&said.phase) {
        said.detail = if held_up { warning(facts) } else { None };
    }
    said
}

/// When there is another thing to say although nothing has changed: a login ends.
pub(crate) fn review(facts: &Facts<'_>) -> Option<Timestamp> {
    former(facts).map(|(_, end)| end).filter(|end| *end > facts.now).min()
}

/// The logins of before, each with its end.
fn former<'a>(facts: &Facts<'a>) -> impl Iterator<Item = (&'a FormerLogin, Timestamp)> {
    let all = facts.database.map(|database| database.former.as_slice()).unwrap_or_default();
    all.iter().filter_map(|login| Some((login, login.ends_at.parse().ok()?)))
}

/// What is said while instances use a login that ends: of the one that ends first.
fn warning(facts: &Facts<'_>) -> Option<String> {
    let in_use = |(login, end): (&FormerLogin, Timestamp)| {
        let generation = names::login_generation(&login.login)?;
        let users = facts.pods.iter().filter(|pod| !pod.terminating && pod.login == Some(generation)).count();
        (users > 0).then(|| (end, login.clone(), users))
    };
    let (end, FormerLogin { login, ends_at }, users) = former(facts).filter_map(in_use).min_by_key(|(end, ..)| *end)?;
    let use_it = if users == 1 { "1 instance still uses".to_owned() } else { format!("{users} instances still use") };
    let ends = if end > facts.now { "ends" } else { "has let nobody in since it ended" };
    let place = facts.place();
    Some(format!(
        "{use_it} login '{login}', which {ends} at {ends_at}; mend what holds up the rollout that replaces them, or go back with: \
         ankka services rollback {} -p {}",
        place.service, place.project
    ))
}
