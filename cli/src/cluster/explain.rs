//! What a refusal means, in words that say what to do.

use ankka_crds::Problem;
use kube::core::Status;

use super::Cluster;
use crate::error::{Error, Placed};
use crate::settings::Project;

/// What was attempted, for the message when it fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt<'a> {
    /// The verb, e.g. `apply`.
    pub(crate) verb: &'a str,
    /// On what.
    pub(crate) subject: Subject<'a>,
}

/// What a command is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject<'a> {
    /// The platform itself.
    Platform,
    /// One service.
    Service(&'a str, &'a Project),
    /// All services of a project.
    Services(&'a Project),
    /// One project.
    Project(&'a str),
    /// All projects.
    Projects,
    /// One Secret of a project.
    Secret(&'a str, &'a Project),
    /// The Secrets of a project.
    Secrets(&'a Project),
    /// One instance of a service, by the name of its pod.
    Instance(&'a str, &'a Project),
    /// The instances of a service.
    Instances(&'a str, &'a Project),
}

impl std::fmt::Display for Subject<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Platform => out.write_str("the platform"),
            Self::Service(name, _) => write!(out, "service '{name}'"),
            Self::Services(project) => write!(out, "the services of project '{}'", project.id),
            Self::Project(name) => write!(out, "project '{name}'"),
            Self::Projects => out.write_str("projects"),
            Self::Secret(name, _) => write!(out, "secret '{name}'"),
            Self::Secrets(project) => write!(out, "the secrets of project '{}'", project.id),
            Self::Instance(name, _) => write!(out, "instance '{name}'"),
            Self::Instances(service, _) => write!(out, "the instances of service '{service}'"),
        }
    }
}

impl<'a> Subject<'a> {
    fn project(self) -> Option<&'a Project> {
        match self {
            Self::Service(_, project)
            | Self::Services(project)
            | Self::Secret(_, project)
            | Self::Secrets(project)
            | Self::Instance(_, project)
            | Self::Instances(_, project) => Some(project),
            Self::Platform | Self::Project(_) | Self::Projects => None,
        }
    }

    /// The role that allows it: one of ours, or Kubernetes' own for what is Kubernetes' own.
    fn role(self, verb: &str) -> &'static str {
        let reads = matches!(verb, "get" | "list" | "watch" | "read the logs of");
        match self {
            Self::Instance(..) | Self::Instances(..) if reads => "view",
            Self::Secret(..) | Self::Secrets(_) | Self::Instance(..) | Self::Instances(..) => "edit",
            _ if reads => "ankka-view",
            _ => "ankka-edit",
        }
    }
}

impl Cluster {
    /// Turns a failed request into an error with advice.
    pub(crate) fn explain(&self, attempt: Attempt<'_>, cause: kube::Error) -> Error {
        let Attempt { verb, subject } = attempt;
        match cause {
            kube::Error::Api(status) => refused(attempt, &status),
            kube::Error::Auth(cause) => Error::new(format!("failed to log in to {}: {cause}", self.server)),
            cause @ (kube::Error::HyperError(_) | kube::Error::Service(_)) => self.unreachable(&cause),
            cause => Error::new(format!("failed to {verb} {subject}: {cause}")),
        }
    }

    /// An error about the cluster itself, whatever was attempted.
    pub(crate) fn unreachable(&self, cause: &kube::Error) -> Error {
        Error::new(format!("could not reach the cluster at {}: {}", self.server, innermost(cause)))
            .hint("is it running, and is this the right context? See: kubectl config current-context")
    }
}

/// The last cause of a chain: the others repeat it with less.
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// What the API server's answer means.
pub(crate) fn refused(attempt: Attempt<'_>, status: &Status) -> Error {
    let Attempt { verb, subject } = attempt;
    let message = status.message.trim();
    let failed = |why: &str| Error::new(format!("failed to {verb} {subject}: {why}"));
    match status.code {
        401 => Error::new("the cluster rejected the login").hint("log in again, or use another context with --context"),
        403 => forbidden(attempt, status),
        404 => missing(attempt, status),
        409 if status.reason == "AlreadyExists" => Error::new(format!("{subject} already exists")),
        413 => too_large(attempt),
        422 if !causes(status).is_empty() => {
            Error { problems: causes(status), ..failed(without_webhook(message)) }
        }
        _ if message.contains("denied the request") => failed(without_webhook(message)),
        _ if message.contains("request is too large") || message.contains("Too long: may not be more than") => too_large(attempt),
        _ if message.contains("failed calling webhook") || message.contains("failed to call webhook") => {
            failed(&format!("the platform's admission webhook is not reachable: {message}"))
                .hint("nothing was changed; see whether the Deployment 'ankka-webhook' has ready instances, and try again: kubectl get deployments -A --field-selector metadata.name=ankka-webhook")
        }
        429 | 503 | 504 => failed(message).hint("the cluster is busy or starting; try again"),
        _ => failed(if message.is_empty() { "the cluster gave no reason" } else { message }),
    }
}

/// Who may not do what, in the server's words, which name both.
fn forbidden(attempt: Attempt<'_>, status: &Status) -> Error {
    let Attempt { verb, subject } = attempt;
    let message = &status.message;
    let why = message.split_once(" is forbidden: ").map_or(message.as_str(), |(_, why)| why);
    let error = Error::new(format!("failed to {verb} {subject}: {why}"));
    let ending =
        status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == "NamespaceTerminating");
    if ending {
        return error.hint("wait until the namespace is gone, then create the project again");
    }
    // A quota or a policy says so in other words, and no role would help.
    if !why.contains(" cannot ") {
        return error;
    }
    match subject.project() {
        Some(project) => error.hint(format!(
            "ask an administrator of the cluster for the role {} in the namespace '{}'",
            subject.role(verb),
            project.namespace
        )),
        None => error.hint("projects belong to the administrators of the cluster: the role ankka-admin"),
    }
}

/// What is not there: the kind, the project, or the object itself.
fn missing(attempt: Attempt<'_>, status: &Status) -> Error {
    let subject = attempt.subject;
    let kind = status.details.as_ref().map(|details| details.kind.as_str()).unwrap_or_default();
    match subject {
        Subject::Service(_, project)
        | Subject::Services(project)
        | Subject::Secret(_, project)
        | Subject::Secrets(project)
            if kind == "namespaces" =>
        {
            Error::new(format!("project '{}' not found: there is no namespace '{}'", project.id, project.namespace))
                .hint(format!("create it with: ankka projects create {}", project.id))
        }
        Subject::Service(name, project) if kind == "ankkaservices" => {
            Error::new(format!("service '{name}' not found in project '{}'", project.id))
                .hint(format!("see what is there with: ankka services list -p {}", project.id))
        }
        Subject::Project(name) if kind == "ankkaprojects" => {
            Error::new(format!("project '{name}' not found")).hint("see what is there with: ankka projects list")
        }
        Subject::Secret(name, project) => Error::new(format!("secret '{name}' not found in project '{}'", project.id))
            .hint(format!("see what is there with: ankka projects secrets list -p {}", project.id)),
        Subject::Instance(name, project) => {
            Error::new(format!("instance '{name}' not found in project '{}'", project.id))
                .hint(format!("see what runs with: kubectl get pods -n {}", project.namespace))
        }
        _ => Error::new(format!(
            "failed to {} {subject}: the cluster does not know the kinds of {}",
            attempt.verb,
            ankka_crds::GROUP
        ))
        .hint("is the ankka chart installed in this cluster?"),
    }
}

fn too_large(Attempt { verb, subject }: Attempt<'_>) -> Error {
    Error::new(format!(
        "failed to {verb} {subject}: it is too large: a cluster stores at most about 1.5 MiB of one resource"
    ))
    .hint("keep large values in a Secret or in the image")
}

/// The broken rules in a denial, addressed as the descriptor's author wrote them.
pub(crate) fn causes(status: &Status) -> Vec<Placed> {
    status
        .details
        .iter()
        .flat_map(|details| &details.causes)
        .filter(|cause| !cause.message.is_empty())
        .map(|cause| {
            let path = match cause.field.as_str() {
                "metadata.name" => "name",
                field => field.strip_prefix("spec.").unwrap_or(field),
            };
            Problem::new(path, cause.message.clone()).into()
        })
        .collect()
}

/// The message of a denial without the words that the API server puts before it.
fn without_webhook(message: &str) -> &str {
    message.split_once(" denied the request: ").map_or(message, |(_, message)| message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_says_what_to_do() {
        let project = Project { id: "shop".to_owned(), namespace: "ankka-shop".to_owned() };
        let attempt = Attempt { verb: "apply", subject: Subject::Service("cart", &project) };
        let status = |code, reason: &str, message: &str, kind: &str| {
            let status = serde_json::from_value(serde_json::json!({
                "code": code, "reason": reason, "message": message, "details": { "kind": kind },
            }))
            .expect("is a status");
            let error = refused(attempt, &status);
            (error.message, error.hint.unwrap_or_default())
        };
        let (message, hint) = status(404, "NotFound", "namespaces \"ankka-shop\" not found", "namespaces");
        assert_eq!(message, "project 'shop' not found: there is no namespace 'ankka-shop'");
        assert_eq!(hint, "create it with: ankka projects create shop");
        let (message, hint) = status(404, "NotFound", "404 page not found", "");
        assert_eq!(message, "failed to apply service 'cart': the cluster does not know the kinds of ankka.dev");
        assert_eq!(hint, "is the ankka chart installed in this cluster?");
        let (message, hint) = status(
            403,
            "Forbidden",
            "ankkaservices.ankka.dev \"cart\" is forbidden: User \"ann\" cannot patch resource \"ankkaservices\"",
            "ankkaservices",
        );
        assert_eq!(message, "failed to apply service 'cart': User \"ann\" cannot patch resource \"ankkaservices\"");
        assert!(hint.contains("ankka-edit"), "{hint}");
        let (message, hint) = status(
            403,
            "Forbidden",
            "ankkaservices.ankka.dev \"cart\" is forbidden: exceeded quota: few",
            "ankkaservices",
        );
        assert_eq!((message.as_str(), hint.as_str()), ("failed to apply service 'cart': exceeded quota: few", ""));
        let (message, hint) = status(
            500,
            "InternalError",
            "Internal error occurred: failed calling webhook \"x\": connection refused",
            "",
        );
        assert!(message.contains("admission webhook is not reachable"), "{message}");
        assert!(hint.contains("nothing was changed"), "{hint}");
        let (message, _) = status(500, "", "etcdserver: request is too large", "");
        assert!(message.contains("too large"), "{message}");
    }
}
