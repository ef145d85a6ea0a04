//! Why a pass did not finish.

use std::time::Duration;

use kube::core::Status;

use crate::{tenure::LeaseLost, workers::Unfinished};

/// Why one pass over one object did not finish. All of them are worth another try.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server did not do what was asked.
    #[error("failed to {verb} {object}: {}", reason(cause))]
    Api {
        /// What was attempted: `create`, `get`, `probe`, `update` or `delete`.
        verb: &'static str,
        /// On what, e.g. `Deployment 'cart' in 'ankka-shop'`.
        object: String,
        /// Why not.
        cause: Box<kube::Error>,
    },
    /// What was found differed from what had been decided on, again and again.
    #[error("{0} changed each time it was judged")]
    Unsteady(String),
    /// It took too long.
    #[error("the pass did not finish within {} s", .0.as_secs())]
    Deadline(Duration),
}

impl Error {
    /// The code with which the API server refused.
    pub fn code(&self) -> Option<u16> {
        let Self::Api { cause, .. } = self else { return None };
        let kube::Error::Api(status) = &**cause else { return None };
        Some(status.code)
    }

    /// The fields that the API server finds invalid.
    pub fn fields(&self) -> Vec<&str> {
        let Self::Api { cause, .. } = self else { return Vec::new() };
        let kube::Error::Api(status) = &**cause else { return Vec::new() };
        status.details.iter().flat_map(|details| &details.causes).map(|cause| cause.field.as_str()).collect()
    }

    /// A word for metrics, of a fixed set.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Unsteady(_) => "unsteady",
            Self::Deadline(_) => "deadline",
            Self::Api { cause, .. } => match &**cause {
                kube::Error::Api(status) => match status.code {
                    403 => "forbidden",
                    404 => "not_found",
                    409 => "conflict",
                    422 => "invalid",
                    429 => "throttled",
                    500.. => "server",
                    _ => "refused",
                },
                kube::Error::Service(cause) if cause.is::<LeaseLost>() => "lease",
                kube::Error::SerdeError(_) => "undecodable",
                _ => "network",
            },
        }
    }

    /// What the service's author should read, when the API server refused for good: a quota, a policy, an invalid object.
    /// None for what passes by itself.
    pub fn refusal(&self) -> Option<String> {
        let Self::Api { cause, .. } = self else { return None };
        let kube::Error::Api(status) = &**cause else { return None };
        let refused = matches!(status.code, 400 | 403 | 413 | 422) && !is_namespace_terminating(status);
        let next = if cannot_be_changed(status) {
            "nobody can change it back: delete it, and it is made anew"
        } else {
            "it is tried again"
        };
        refused.then(|| format!("{self}; {next}"))
    }
}

impl Unfinished for Error {
    fn overdue(limit: Duration) -> Self {
        Self::Deadline(limit)
    }

    fn label(&self) -> &'static str {
        Self::label(self)
    }
}

/// Whether somebody has made of a ConfigMap or RoleBinding what Kubernetes lets nobody change any more.
fn cannot_be_changed(status: &Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 422 && causes.any(|cause| matches!(cause.field.as_str(), "immutable" | "data" | "roleRef"))
}

fn is_namespace_terminating(status: &Status) -> bool {
    status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == "NamespaceTerminating")
}

/// Why, without the values of fields: they may be a user's, and this is shown.
fn reason(cause: &kube::Error) -> String {
    match cause {
        kube::Error::Api(status) if status.code == 422 => {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            let fields: Vec<String> = causes.map(|cause| format!("{} ({})", cause.field, cause.reason)).collect();
            format!("the API server finds it invalid: {}", fields.join(", "))
        }
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: serde_json::Value) -> Error {
        let status: Status = serde_json::from_value(status).expect("a status");
        let cause = Box::new(kube::Error::Api(Box::new(status)));
        Error::Api { verb: "create", object: "Deployment 'cart' in 'ankka-shop'".to_owned(), cause }
    }

    #[test]
    fn a_quota_is_quoted() {
        let error = refused(serde_json::json!({"code": 403, "reason": "Forbidden", "message": "exceeded quota: few"}));
        assert_eq!(
            error.refusal().as_deref(),
            Some("failed to create Deployment 'cart' in 'ankka-shop': exceeded quota: few; it is tried again")
        );
        assert_eq!(error.label(), "forbidden");
    }

    #[test]
    fn an_invalid_object_is_described_by_its_fields_never_by_their_values() {
        let causes =
            serde_json::json!([{"field": "spec.a", "reason": "FieldValueInvalid", "message": "was \"secret\""}]);
        let error = refused(serde_json::json!({"code": 422, "message": "\"secret\"", "details": {"causes": causes}}));
        let text = error.refusal().expect("a refusal");
        assert!(text.contains("spec.a (FieldValueInvalid)") && !text.contains("secret"), "{text}");
    }

    #[test]
    fn what_nobody_can_change_back_is_to_be_deleted() {
        let causes = serde_json::json!([{"field": "immutable", "reason": "FieldValueForbidden", "message": "m"}]);
        let error = refused(serde_json::json!({"code": 422, "message": "m", "details": {"causes": causes}}));
        let text = error.refusal().expect("a refusal");
        assert!(
            text.ends_with(
                "immutable (FieldValueForbidden); nobody can change it back: delete it, and it is made anew"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_namespace_that_goes_is_no_refusal() {
        let causes = serde_json::json!([{"reason": "NamespaceTerminating"}]);
        let error = refused(serde_json::json!({"code": 403, "message": "m", "details": {"causes": causes}}));
        assert_eq!(error.refusal(), None);
    }

    #[test]
    fn a_failing_server_is_no_refusal() {
        let error = refused(serde_json::json!({"code": 500, "message": "etcd"}));
        assert_eq!((error.refusal(), error.label()), (None, "server"));
    }
}
