//! Rules of a project: its id (decision 5 of the design; reference, section A1), and what it says beside it.

use crate::Problem;
use crate::names;
use crate::resources::{AnkkaProjectSpec, Subject};
use crate::rules::grammar;

/// Longest project id: `platform.backups.<project>` must be a bucket's name.
pub const LIMIT: usize = 46;

/// Ids that no project may have, and whose they are.
const RESERVED: [(&str, &str); 6] = [
    ("platform", "the platform's own workloads"),
    ("local", "services run locally, whose consumer groups it names"),
    ("cloud-provider", "the namespace the installation's cloud provider runs in"),
    ("gateway", "the namespace the installation's gateway runs in"),
    ("system", "the namespace the platform is installed in"),
    ("operator", "the platform's operator"),
];

/// Checks a project's id; `own_namespace` is the release's own namespace where it is known, and `prefix` the
/// prefix of project namespaces.
///
/// # Errors
/// Every broken rule. The path of each problem is `name`: a project's id is its resource's name.
pub fn validate(id: &str, prefix: &str, own_namespace: Option<&str>) -> Result<(), Vec<Problem>> {
    let mut messages = Vec::new();
    let shown = grammar::shown(id);
    if id.is_empty() {
        messages.push("project id must not be empty".to_owned());
    } else {
        let length = id.chars().count();
        if length > LIMIT {
            messages.push(format!("project id '{shown}' is {length} characters, over the {LIMIT} character limit"));
        }
        if !grammar::is_identifier(id) {
            messages.push(format!(
                "project id '{shown}' is invalid: lowercase letters, digits and '-', starting with a letter"
            ));
        }
    }
    if let Some((_, owner)) = RESERVED.iter().find(|(reserved, _)| *reserved == id) {
        messages.push(format!("project id '{shown}' is reserved for {owner}"));
    } else if own_namespace.is_some_and(|own| own == names::namespace(prefix, id)) {
        messages.push(format!("project id '{shown}' is reserved for the namespace the platform is installed in"));
    }
    if messages.is_empty() {
        return Ok(());
    }
    Err(messages.into_iter().map(|message| Problem::new("name", message)).collect())
}

/// Checks what a project says beside its id.
///
/// # Errors
/// Every broken rule, each with its path below `spec`, such as `administrators[0].name`.
pub fn validate_spec(spec: &AnkkaProjectSpec) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    for (index, administrator) in spec.administrators.iter().enumerate() {
        subject(&format!("administrators[{index}]"), administrator, &mut problems);
    }
    for (index, name) in spec.image_pull_secrets.iter().enumerate() {
        if !names::is_object_name(name) {
            let shown = grammar::shown(name);
            problems.push(Problem::new(
                format!("imagePullSecrets[{index}]"),
                format!(
                    "image pull secret '{shown}' is not the name of a Secret: lowercase letters, digits, '-' and '.', at most 253 characters"
                ),
            ));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn subject(path: &str, subject: &Subject, problems: &mut Vec<Problem>) {
    let mut say = |field: &str, message: String| {
        problems.push(Problem::new(format!("{path}.{field}"), format!("administrator {field} {message}")));
    };
    let account = match subject.kind.as_str() {
        "User" | "Group" => false,
        "ServiceAccount" => true,
        other => {
            let other = grammar::shown(other);
            return say("kind", format!("must be \"User\", \"Group\" or \"ServiceAccount\", not \"{other}\""));
        }
    };
    if subject.name.trim().is_empty() {
        say("name", "must not be empty".to_owned());
    } else if account && !names::is_object_name(&subject.name) {
        say("name", format!("'{}' is not the name of a ServiceAccount", grammar::shown(&subject.name)));
    }
    match subject.namespace.as_deref() {
        Some(namespace) if account && !names::is_object_name(namespace) => {
            say("namespace", format!("'{}' is not the name of a namespace", grammar::shown(namespace)));
        }
        None if account => say("namespace", "must be given for a ServiceAccount".to_owned()),
        Some(_) if !account => {
            say("namespace", format!("is meaningful only for a ServiceAccount, not for a {}", subject.kind));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::validate;

    fn messages(id: &str) -> Vec<String> {
        let problems = validate(id, "ankka", Some("ankka-prod")).err().unwrap_or_default();
        assert!(problems.iter().all(|problem| problem.path == "name"));
        problems.into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn an_id_is_a_dns_label_of_at_most_46_characters() {
        for good in ["a", "shop", "my-shop-2", &"a".repeat(46), "local-2", "systems", "prod-2"] {
            assert_eq!(messages(good), [] as [&str; 0], "{good}");
        }
        assert_eq!(messages(""), ["project id must not be empty"]);
        for bad in ["Shop", "1shop", "my_shop", "shop-", "a.b", " a"] {
            let said =
                format!("project id '{bad}' is invalid: lowercase letters, digits and '-', starting with a letter");
            assert_eq!(messages(bad), [said]);
        }
        let long = "a".repeat(47);
        assert_eq!(messages(&long), [format!("project id '{long}' is 47 characters, over the 46 character limit")]);
        assert_eq!(messages(&"A".repeat(47)).len(), 2);
    }

    #[test]
    fn the_platforms_own_names_are_reserved() {
        let reserved = [
            ("platform", "project id 'platform' is reserved for the platform's own workloads"),
            ("local", "project id 'local' is reserved for services run locally, whose consumer groups it names"),
            (
                "cloud-provider",
                "project id 'cloud-provider' is reserved for the namespace the installation's cloud provider runs in",
            ),
            ("gateway", "project id 'gateway' is reserved for the namespace the installation's gateway runs in"),
            ("system", "project id 'system' is reserved for the namespace the platform is installed in"),
            ("operator", "project id 'operator' is reserved for the platform's operator"),
            ("prod", "project id 'prod' is reserved for the namespace the platform is installed in"),
        ];
        for (id, said) in reserved {
            assert_eq!(messages(id), [said]);
        }
        assert_eq!(validate("prod", "ankka", None), Ok(()));
        assert_eq!(validate("prod", "other", Some("ankka-prod")), Ok(()));
    }
}
