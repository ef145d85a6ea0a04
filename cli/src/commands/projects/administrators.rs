//! Who administers a project, as people write it.

use ankka_crds::resources::Subject;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::Api;
use kube::api::PostParams;

use crate::cluster::Cluster;
use crate::error::Error;

/// Somebody the API server knows.
pub(super) type Administrator = Subject;

const GROUP: &str = "group:";
const ACCOUNT: &str = "serviceaccount:";
/// What Kubernetes puts before namespace and name of a ServiceAccount that logs in.
const LOGIN_OF_ACCOUNT: &str = "system:serviceaccount:";

/// Reads a user's name, `group:<name>`, or `serviceaccount:<namespace>/<name>`.
pub(super) fn parse(text: &str) -> Result<Administrator, String> {
    let subject = |kind: &str, name: &str, namespace: Option<&str>| Subject {
        kind: kind.to_owned(),
        name: name.to_owned(),
        namespace: namespace.map(str::to_owned),
    };
    if let Some(name) = text.strip_prefix(GROUP) {
        return Ok(subject("Group", name, None));
    }
    if let Some(account) = text.strip_prefix(ACCOUNT) {
        let (namespace, name) = account
            .split_once('/')
            .ok_or_else(|| format!("a ServiceAccount is written {ACCOUNT}<NAMESPACE>/<NAME>"))?;
        return Ok(subject("ServiceAccount", name, Some(namespace)));
    }
    Ok(of_login(text))
}

/// The inverse of [`parse`].
pub(super) fn text(administrator: &Administrator) -> String {
    let Subject { kind, name, namespace } = administrator;
    match (kind.as_str(), namespace) {
        ("Group", _) => format!("{GROUP}{name}"),
        ("ServiceAccount", Some(namespace)) => format!("{ACCOUNT}{namespace}/{name}"),
        _ => name.clone(),
    }
}

/// Who runs this command, as the API server sees it.
pub(super) async fn myself(cluster: &Cluster) -> Result<Administrator, Error> {
    let reviews: Api<SelfSubjectReview> = Api::all(cluster.client());
    let advice = "name who administers the project with --administrator";
    let review =
        reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.map_err(|cause| match cause {
            kube::Error::Api(status) => {
                Error::new(format!("failed to ask the cluster who you are: {}", status.message)).hint(advice)
            }
            other => cluster.unreachable(&other),
        })?;
    review
        .status
        .and_then(|status| status.user_info?.username)
        .filter(|name| !name.is_empty())
        .map(|name| of_login(&name))
        .ok_or_else(|| Error::new("the cluster does not say who you are").hint(advice))
}

/// The name of a login: a ServiceAccount's says so.
fn of_login(name: &str) -> Administrator {
    match name.strip_prefix(LOGIN_OF_ACCOUNT).and_then(|account| account.split_once(':')) {
        Some((namespace, name)) => {
            Subject { kind: "ServiceAccount".to_owned(), name: name.to_owned(), namespace: Some(namespace.to_owned()) }
        }
        None => Subject { kind: "User".to_owned(), name: name.to_owned(), namespace: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn administrators_are_written_as_they_are_read() {
        for written in ["ann@example.com", "group:oidc:team", "serviceaccount:ci/deployer", "kubernetes-admin"] {
            assert_eq!(text(&parse(written).expect(written)), written);
        }
        let account = parse("system:serviceaccount:ci:deployer").expect("a login");
        assert_eq!((account.kind.as_str(), text(&account).as_str()), ("ServiceAccount", "serviceaccount:ci/deployer"));
        assert!(parse("serviceaccount:deployer").is_err());
    }
}
