//! Where something may be asked for: in the namespace of a project that is not going away.

use ankka_crds::{labels, names, project};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// What is known of a namespace that is labelled as the platform's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceSeen {
    /// The project its labels say it is.
    pub project: Option<String>,
    /// It is being deleted.
    pub terminating: bool,
}

impl NamespaceSeen {
    /// What of a namespace's metadata counts.
    pub fn of(metadata: &ObjectMeta) -> Self {
        let label = |key: &str| metadata.labels.as_ref().and_then(|labels| labels.get(key));
        let ours = label(labels::MANAGED_BY).is_some_and(|value| value == labels::MANAGED_BY_VALUE);
        Self {
            project: label(labels::PROJECT).filter(|_| ours).cloned(),
            terminating: metadata.deletion_timestamp.is_some(),
        }
    }
}

/// Why nothing is made for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// Its namespace is being deleted.
    Terminating,
    /// Its namespace is no project's, for the reason given.
    NoProject(String),
}

/// The project whose namespace this is. `own_namespace` is the one the platform itself runs in.
///
/// # Errors
/// When nothing may be made in it.
pub fn project_of<'a>(
    prefix: &str,
    own_namespace: &str,
    namespace: &'a str,
    seen: Option<&NamespaceSeen>,
) -> Result<&'a str, Elsewhere> {
    let no = |why: String| Elsewhere::NoProject(format!("namespace '{namespace}' is not a project's: {why}"));
    let project =
        names::project_of(prefix, namespace).ok_or_else(|| no(format!("its name does not begin with '{prefix}-'")))?;
    project::validate(project, prefix, Some(own_namespace)).map_err(|problems| {
        let messages: Vec<_> = problems.into_iter().map(|problem| problem.message).collect();
        no(messages.join("; "))
    })?;
    let seen =
        seen.ok_or_else(|| no(format!("it is not labelled {}={}", labels::MANAGED_BY, labels::MANAGED_BY_VALUE)))?;
    if seen.terminating {
        return Err(Elsewhere::Terminating);
    }
    if seen.project.as_deref() != Some(project) {
        return Err(no(format!("it is not labelled {}={project}", labels::PROJECT)));
    }
    Ok(project)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(namespace: &'static str, project: Option<&str>) -> Result<&'static str, Elsewhere> {
        let seen = project.map(|project| NamespaceSeen { project: Some(project.to_owned()), terminating: false });
        project_of("ankka", "ankka-system", namespace, seen.as_ref())
    }

    #[test]
    fn only_the_namespace_of_a_project_is_one() {
        assert_eq!(of("ankka-shop", Some("shop")), Ok("shop"));
        for (namespace, label) in [
            ("default", None),
            ("ankka-", Some("")),
            ("ankka-shop", None),
            ("ankka-shop", Some("other")),
            ("other-shop", Some("shop")),
            ("ankka-system", Some("system")),
        ] {
            assert!(matches!(of(namespace, label), Err(Elsewhere::NoProject(_))), "{namespace}");
        }
    }

    #[test]
    fn nothing_is_made_in_one_that_is_being_deleted() {
        let seen = NamespaceSeen { project: Some("shop".to_owned()), terminating: true };
        assert_eq!(project_of("ankka", "x", "ankka-shop", Some(&seen)), Err(Elsewhere::Terminating));
    }
}
