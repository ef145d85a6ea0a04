//! Whether an AnkkaProject may be stored.

use ankka_crds::{Problem, project, resources::AnkkaProjectSpec};

use crate::{
    review::{Operation, Request, Verdict},
    services::judged,
};

/// Judges one request. `prefix` is the prefix of project namespaces, `own_namespace` the release's own namespace.
///
/// The id is judged on create only: it never changes, and a project stored under older rules stays usable.
pub fn judge(request: &Request<AnkkaProjectSpec>, prefix: &str, own_namespace: &str) -> Verdict {
    let Some(new) = judged(request).filter(|_| !request.same_spec()) else {
        return Verdict::admit();
    };
    let mut problems = Vec::new();
    if request.operation == Operation::Create {
        let id = new.metadata.name.as_deref().unwrap_or_default();
        let broken = project::validate(id, prefix, Some(own_namespace)).err().unwrap_or_default();
        problems.extend(broken.into_iter().map(|problem| Problem { path: "metadata.name".to_owned(), ..problem }));
    }
    match &new.spec {
        Ok(spec) => {
            let broken = project::validate_spec(spec).err().unwrap_or_default();
            problems.extend(
                broken.into_iter().map(|problem| Problem { path: format!("spec.{}", problem.path), ..problem }),
            );
        }
        Err(unreadable) => problems.push(unreadable.clone()),
    }
    if problems.is_empty() { Verdict::admit() } else { Verdict::Deny(problems) }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test ends where it fails")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::review;

    fn judged(operation: &str, name: &str, spec: &Value, old: Option<&Value>) -> Vec<(String, String)> {
        let object = |spec: &Value| json!({"metadata": {"name": name}, "spec": spec});
        let body = json!({"request": {
            "uid": "u", "operation": operation, "object": object(spec), "oldObject": old.map(object),
        }});
        match judge(&review::read(body.to_string().as_bytes()).unwrap(), "ankka", "ankka-system") {
            Verdict::Admit { .. } => Vec::new(),
            Verdict::Deny(problems) => problems.into_iter().map(|p| (p.path, p.message)).collect(),
        }
    }

    #[test]
    fn a_well_formed_project_is_admitted() {
        let spec = json!({
            "administrators": [
                {"kind": "User", "name": "ada@example.com"},
                {"kind": "ServiceAccount", "name": "deployer", "namespace": "ci"},
            ],
            "imagePullSecrets": ["registry.login"],
        });
        assert_eq!(judged("CREATE", "shop", &spec, None), []);
    }

    #[test]
    fn the_id_is_judged_on_create_and_never_again() {
        for id in ["Shop", "platform", "system"] {
            let found = judged("CREATE", id, &json!({}), None);
            assert_eq!(found.first().map(|(path, _)| path.as_str()), Some("metadata.name"), "{id}: {found:?}");
            assert_eq!(judged("UPDATE", id, &json!({"location": "eu"}), Some(&json!({}))), []);
        }
    }

    #[test]
    fn every_ill_formed_field_is_named() {
        let spec = json!({
            "administrators": [
                {"kind": "Robot", "name": "r"},
                {"kind": "User", "name": " "},
                {"kind": "ServiceAccount", "name": "Deployer"},
                {"kind": "Group", "name": "g", "namespace": "ci"},
            ],
            "imagePullSecrets": ["ok", "Not Ok", "a..b"],
        });
        let paths: Vec<_> = judged("CREATE", "shop", &spec, None).into_iter().map(|(path, _)| path).collect();
        assert_eq!(
            paths,
            [
                "spec.administrators[0].kind",
                "spec.administrators[1].name",
                "spec.administrators[2].name",
                "spec.administrators[2].namespace",
                "spec.administrators[3].namespace",
                "spec.imagePullSecrets[1]",
                "spec.imagePullSecrets[2]",
            ]
        );
        let unreadable = judged("CREATE", "shop", &json!({"administrators": [{"kind": "User"}]}), None);
        assert_eq!(unreadable[0].0, "spec.administrators[0]");
    }
}
