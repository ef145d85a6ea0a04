//! Why a service is not ready, and what to do about it: a closed list, told in `docs/reference/causes.md`.

use ankka_crds::secrets;

use crate::text;

/// A kind of reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The image cannot be pulled.
    Image,
    /// The image's name is none.
    ImageName,
    /// The image's program is for another processor.
    Architecture,
    /// A Secret, or a key of one, is missing.
    Configuration,
    /// A Secret that the platform issues is missing, or lacks a key.
    Credential,
    /// No node has room.
    Unschedulable,
    /// A quota refuses the instance.
    Quota,
    /// The program ends again and again.
    Crash,
    /// The program takes more memory than it has.
    Memory,
    /// The program runs and does not say that it is ready.
    Silent,
    /// The node gave the instance up.
    Evicted,
    /// The database server is down.
    Database,
    /// The database cannot be made as things are.
    DatabaseRefused,
    /// The rollout made no progress, and nobody says why.
    Deadline,
    /// The image was built for another platform.
    Incompatible,
    /// Something else that the node says.
    Other,
}

/// What the documentation says of a cause.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What is the case.
    pub cause: &'static str,
    /// How `status.detail` begins.
    pub says: &'static str,
    /// What to do, as `status.detail` ends; what stands in braces is replaced, `{secret}` and `{key}` by what is missing.
    pub next: &'static str,
    /// Whether it recovers by itself.
    pub recovers: &'static str,
}

impl Cause {
    /// Every cause, in the order of the documentation.
    pub const ALL: [Self; 16] = [
        Self::Image,
        Self::ImageName,
        Self::Architecture,
        Self::Configuration,
        Self::Credential,
        Self::Unschedulable,
        Self::Quota,
        Self::Crash,
        Self::Memory,
        Self::Silent,
        Self::Evicted,
        Self::Database,
        Self::DatabaseRefused,
        Self::Deadline,
        Self::Incompatible,
        Self::Other,
    ];

    /// What the documentation says of it.
    pub const fn row(self) -> Row {
        let (cause, says, next, recovers) = match self {
            Self::Image => (
                "the image cannot be pulled",
                "ImagePullBackOff:",
                "check the image's name and tag, and that the cluster may pull it, which is tried again by itself",
                "yes, once it can be pulled",
            ),
            Self::ImageName => (
                "the image's name is none",
                "InvalidImageName:",
                "correct the image in the descriptor and apply it again",
                "no",
            ),
            Self::Architecture => (
                "the image is built for another architecture",
                "CrashLoopBackOff: container service could not be started",
                "build the image for the architecture of the cluster's nodes and apply it again",
                "no",
            ),
            Self::Configuration => (
                "a Secret, or a key of one, is missing",
                "CreateContainerConfigError:",
                "create it with: ankka projects secrets set {secret} {key}=- -p {project}, and the instance starts by itself",
                "yes, once it is there",
            ),
            Self::Credential => (
                "a Secret that the platform issues, such as `cart-db`, is missing",
                "CreateContainerConfigError:",
                "see how far the platform is with issuing it with: ankka services get {service} -p {project}, and the \
                 instance starts by itself",
                "yes, once it is there",
            ),
            Self::Unschedulable => (
                "no node has room for an instance",
                "Unschedulable:",
                "give the cluster room, or the service a smaller instanceType, and the instance starts by itself",
                "yes, once there is room",
            ),
            Self::Quota => (
                "a quota of the namespace refuses an instance",
                "pods \"…\" is forbidden: exceeded quota:",
                "raise the quota or free some of it, and the rollout goes on by itself",
                "yes, once there is room",
            ),
            Self::Crash => (
                "the program ends again and again",
                "CrashLoopBackOff: container service ended with exit code",
                "see why with: ankka services logs {service} --previous -p {project}",
                "it is started again, later each time",
            ),
            Self::Memory => (
                "the program takes more memory than its size has",
                "CrashLoopBackOff: container service ended with exit code 137, … (OOMKilled)",
                "give the service a larger instanceType, or let it use less memory",
                "it is started again, later each time",
            ),
            Self::Silent => (
                "the program runs and its readiness probe fails",
                "NotReady: instance … is running but does not answer GET /ready on port 7626",
                "see what it does with: ankka services logs {service} -p {project}",
                "yes, once it answers",
            ),
            Self::Evicted => (
                "the node gave the instance up",
                "Evicted:",
                "another instance takes its place by itself, and if that repeats, look at the node",
                "yes",
            ),
            Self::Database => (
                "the database server is down",
                "waiting for database:",
                "see whether the database server answers, and the service goes on by itself once it does",
                "yes, once the server answers",
            ),
            Self::DatabaseRefused => (
                "the database server refuses, or something stands in the database's way",
                "database:",
                "have the platform's administrator put that right, and the service goes on by itself",
                "yes, once that is put right",
            ),
            Self::Deadline => (
                "the rollout made no progress in time, and nobody says why",
                "ReplicaSet \"…\" has timed out progressing.",
                "see what the new instance does with: ankka services logs {service} -p {project}, or go back with: ankka \
                 services rollback {service} -p {project}",
                "yes, once its instances become ready",
            ),
            Self::Incompatible => (
                "the image was built for another runtime or protocol",
                "runtime … is outside the platform's supported range:",
                "build the image against a supported version and apply it again",
                "no",
            ),
            Self::Other => (
                "something else that the node says",
                "the node's own reason",
                "see all the node says with: kubectl describe pods -n {namespace} -l ankka.dev/service={service}",
                "mostly, once the reason is gone",
            ),
        };
        Row { cause, says, next, recovers }
    }

    /// What to do about it. What is missing, where something is, remains in braces.
    pub fn next(self, place: Place<'_>) -> String {
        let next = self.row().next.replace("{service}", place.service).replace("{project}", place.project);
        next.replace("{namespace}", place.namespace)
    }
}

/// Why one service, or one of its instances, is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its kind.
    pub cause: Cause,
    /// `Reason: message`. Never a line of a log.
    pub text: String,
    /// The entry of a Secret that is not there, as far as it is known.
    pub missing: Option<Missing>,
}

/// An entry of a Secret that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The Secret's name.
    pub secret: String,
    /// The key; none when nothing says which is read.
    pub key: Option<String>,
}

/// Whom a next step is told to.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The service.
    pub service: &'a str,
    /// Its project.
    pub project: &'a str,
    /// The project's namespace.
    pub namespace: &'a str,
}

impl Problem {
    /// A problem that no missing Secret is.
    pub fn new(cause: Cause, text: impl Into<String>) -> Self {
        Self { cause, text: text.into(), missing: None }
    }

    /// An entry of a Secret is missing. A name that the platform keeps to itself cannot be set, so that is another cause.
    pub(crate) fn missing(missing: Missing, text: impl Into<String>) -> Self {
        let ours = secrets::validate_name(&missing.secret).is_err();
        let cause = if ours { Cause::Credential } else { Cause::Configuration };
        Self { missing: Some(missing), ..Self::new(cause, text) }
    }

    /// The problem and the next step, in as many bytes as an Event holds. What is too long is cut before the next step.
    pub(crate) fn told(&self, place: Place<'_>) -> String {
        let missing = self.missing.as_ref();
        let next = self.cause.next(place);
        let next = next.replace("{secret}", missing.map_or("NAME", |missing| &missing.secret));
        let next = next.replace("{key}", missing.and_then(|missing| missing.key.as_deref()).unwrap_or("KEY"));
        let room = text::DETAIL_LIMIT.saturating_sub(next.len() + 2);
        format!("{}; {next}", text::cut(&self.text, room))
    }

    /// Whether the program was started: only then can what it needs be the reason.
    pub(crate) const fn is_of_the_program(&self) -> bool {
        matches!(self.cause, Cause::Crash | Cause::Silent)
    }
}
