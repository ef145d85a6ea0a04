//! Whether a rollout is done, may still come, or cannot succeed. Pure.

use ankka_crds::{AnkkaService, AnkkaServiceStatus};
use ankka_desired::{Cause, Place};
use jiff::Timestamp;

use super::instance::{Instance, Trouble};

/// The crash after which waiting ends.
const LAST_CRASH: i32 = 3;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The generation to become ready.
    pub(crate) generation: i64,
    /// When it was stored, when this changed something: older instances are not of it.
    pub(crate) since: Option<Timestamp>,
    /// The generation of the database login that all instances are to use, when that is waited for too.
    pub(crate) login: Option<i64>,
}

/// What becomes of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The service is ready.
    Ready,
    /// The service is paused, as it was before.
    Paused,
    /// It cannot succeed without another change, and why.
    Hopeless(String),
    /// It may still come, and what it waits for.
    Waiting(String),
}

/// Judges a rollout by what the platform says and what the instances say.
pub(crate) fn judge(target: Target, service: &AnkkaService, instances: &[Instance]) -> Verdict {
    if service.metadata.deletion_timestamp.is_some() {
        return Verdict::Hopeless("it is being deleted".to_owned());
    }
    let status = service.status.clone().unwrap_or_default();
    let confirmed = status.observed_generation.is_some_and(|observed| observed >= target.generation);
    if confirmed {
        match status.lifecycle.as_deref() {
            Some("Ready") if uses_login(target, instances) => return Verdict::Ready,
            Some("Ready") => return Verdict::Waiting(login_of_before(&status)),
            Some("Paused") => return Verdict::Paused,
            _ => {}
        }
        if let Some(why) = stalled(&status) {
            return Verdict::Hopeless(why);
        }
    }
    let current = current(target, instances);
    let database = status.detail.as_deref().filter(|_| confirmed).and_then(of_the_database);
    if let Some(Hopeless { why, .. }) = current.iter().find_map(|instance| hopeless(instance, database)) {
        return Verdict::Hopeless(why);
    }
    // What the platform has to say comes before what one instance says.
    let trouble = if confirmed && status.detail.is_none() { first_trouble(&current) } else { None };
    Verdict::Waiting(trouble.unwrap_or_else(|| report(target, service)))
}

/// Whether every instance that stays was started with the login that is waited for. The status cannot tell: the login is
/// issued first and the instances are replaced after that.
fn uses_login(Target { login, .. }: Target, instances: &[Instance]) -> bool {
    let Some(login) = login else { return true };
    let mut staying = instances.iter().filter(|instance| !instance.terminating).peekable();
    staying.peek().is_some() && staying.all(|instance| instance.login >= login)
}

fn login_of_before(status: &AnkkaServiceStatus) -> String {
    let why = status.database.as_ref().and_then(|database| database.detail.as_ref());
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("the instances use the database login of before{why}")
}

/// What the platform says of the generation that is waited for.
pub(crate) fn report(target: Target, service: &AnkkaService) -> String {
    let status = service.status.clone().unwrap_or_default();
    if status.observed_generation < Some(target.generation) {
        return format!("no operator has reported on generation {}", target.generation);
    }
    status
        .detail
        .unwrap_or_else(|| format!("{} of {} instances are ready", status.ready_instances, status.desired_instances))
}

/// What the platform says of the database, where it takes that for the reason; without the next step.
fn of_the_database(detail: &str) -> Option<&str> {
    let rest = detail.strip_suffix(Cause::Database.row().next)?;
    rest.strip_suffix("; ").filter(|said| said.starts_with("database: "))
}

/// What to do about a service that cannot become ready as it is; none when it was deleted.
pub(crate) fn advice(
    target: Target,
    service: Option<&AnkkaService>,
    instances: &[Instance],
    place: Place<'_>,
) -> String {
    const REST: &str = "instances that were ready go on serving";
    let Some(service) = service.filter(|service| service.metadata.deletion_timestamp.is_none()) else {
        return "apply it again once it is gone".to_owned();
    };
    let status = service.status.clone().unwrap_or_default();
    let confirmed = status.observed_generation >= Some(target.generation);
    if !confirmed || stalled(&status).is_none() {
        let database = status.detail.as_deref().filter(|_| confirmed).and_then(of_the_database);
        let found = current(target, instances).into_iter().find_map(|instance| hopeless(instance, database));
        if let Some(Hopeless { cause, .. }) = found {
            return format!("{}; {REST}", cause.next(place));
        }
    }
    match status
        .conditions
        .iter()
        .filter(|condition| condition.type_ == "Stalled")
        .map(|condition| &*condition.reason)
        .next()
    {
        Some("NameTaken") => {
            "remove what has that name, and the service goes on by itself; or give the service another name"
        }
        Some("NoProject" | "NoObjectStore" | "NoSidecarImage" | "NoDatabaseServer" | "DatabaseProvisioningFailed") => {
            "once that is put right, the service goes on by itself"
        }
        _ => return format!("{REST}; correct the descriptor and apply it again"),
    }
    .to_owned()
}

fn first_trouble(instances: &[&Instance]) -> Option<String> {
    instances.iter().find(|instance| !instance.ready).map(|instance| format!("{}: {}", instance.name, instance.text()))
}

/// Why the platform itself has given up, when it has.
fn stalled(status: &AnkkaServiceStatus) -> Option<String> {
    let stalled =
        status.conditions.iter().find(|condition| condition.type_ == "Stalled" && condition.status == "True")?;
    let message = Some(stalled.message.clone()).filter(|message| !message.is_empty());
    Some(status.detail.clone().or(message).unwrap_or_else(|| stalled.reason.clone()))
}

/// The instances of the generation that is waited for: those made since it was stored or, when nothing was changed, those of
/// the newest template. Pods are made in whole seconds: templates that share the last one count as equally new.
pub(crate) fn current(target: Target, instances: &[Instance]) -> Vec<&Instance> {
    let last = instances.iter().map(|instance| instance.created).max();
    let newest: Vec<_> =
        instances.iter().filter(|instance| Some(instance.created) == last).map(|instance| &instance.template).collect();
    instances
        .iter()
        .filter(|instance| !instance.terminating)
        .filter(|instance| match target.since {
            Some(since) => instance.created.is_some_and(|created| created >= since),
            None => newest.contains(&&instance.template),
        })
        .collect()
}

/// Why an instance will never be ready.
struct Hopeless {
    why: String,
    cause: Cause,
}

/// Why an instance will never be ready, when it will not. `database`: what is wrong with the database that the program needs.
fn hopeless(instance: &Instance, database: Option<&str>) -> Option<Hopeless> {
    if instance.ready {
        return None;
    }
    let trouble = instance.trouble.as_ref();
    let words = instance.last_words.as_deref().unwrap_or_default();
    let (why, cause) = match trouble {
        Some(trouble) if trouble.reason == "InvalidImageName" => (trouble.to_string(), Cause::ImageName),
        Some(trouble) if never_pulled(trouble) => (trouble.to_string(), Cause::Image),
        Some(trouble) if wrong_architecture(&trouble.message) || wrong_architecture(words) => {
            (format!("the image is built for another architecture ({trouble})"), Cause::Architecture)
        }
        _ if instance.crashes >= LAST_CRASH => crashed(instance, database),
        _ => return None,
    };
    Some(Hopeless { why: format!("{}: {why}", instance.name), cause })
}

/// Why a program does not stay up, as far as that is known: it took too much memory, or lacks its database.
fn crashed(instance: &Instance, database: Option<&str>) -> (String, Cause) {
    let message = instance.trouble.as_ref().map(|trouble| trouble.message.as_str()).unwrap_or_default();
    let colon = if message.is_empty() { "" } else { ": " };
    let why = format!("crashed {} times{colon}{message}", instance.crashes);
    match database {
        _ if message.contains("(OOMKilled)") => (why, Cause::Memory),
        Some(database) => (format!("{why}; {database}"), Cause::Database),
        None => (why, Cause::Crash),
    }
}

/// The image's name is refused, or the registry was asked and has answered no.
fn never_pulled(Trouble { reason, message, .. }: &Trouble) -> bool {
    // The registry was not reached, or is busy: nobody has said no.
    const LATER: [&str; 9] = [
        "dial tcp",
        "no such host",
        "i/o timeout",
        "connection refused",
        "connection reset",
        "deadline exceeded",
        "toomanyrequests",
        "too many requests",
        "server error",
    ];
    const NEVER: [&str; 10] = [
        "not found",
        "manifest unknown",
        "name unknown",
        "does not exist",
        "forbidden",
        "unauthorized",
        "authorization failed",
        "access denied",
        "no match for platform",
        "no matching manifest",
    ];
    let message = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    match reason.as_str() {
        "InvalidImageName" => true,
        "ErrImagePull" | "ImagePullBackOff" => says(&NEVER) && !says(&LATER),
        _ => false,
    }
}

fn wrong_architecture(text: &str) -> bool {
    text.contains("exec format error")
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
