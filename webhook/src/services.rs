//! Whether an AnkkaService may be stored, and what its author should hear.

use ankka_crds::{
    AnkkaServiceSpec, Context, Problem, names,
    resources::{DatabaseCommands, StorageCommands},
    validate,
};
use serde::Deserialize;

use crate::review::{Metadata, Object, Old, Operation, Request, Verdict};

/// Judges one request. `prefix` is the prefix of project namespaces.
///
/// The descriptor's rules count for what is new: on create, and when `spec.service` changed. A service stored under older
/// rules can so still be paused, exposed, labelled and deleted. What commands set is checked whenever the spec changed.
pub fn judge(request: &Request<AnkkaServiceSpec>, prefix: &str) -> Verdict {
    let Some(new) = judged(request) else {
        return Verdict::admit();
    };
    let spec = match &new.spec {
        Ok(spec) => spec,
        Err(_) if request.same_spec() => return Verdict::admit(),
        Err(unreadable) => return Verdict::Deny(vec![unreadable.clone()]),
    };
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    descriptor(&new.metadata, spec, prefix, &mut problems, &mut warnings);
    // Reading all that is stored takes as long as judging. It decides only what is to be said, which mostly is nothing.
    let silent = problems.is_empty() && warnings.is_empty();
    if silent && request.old.as_ref().and_then(Old::spec).is_some_and(|old: Commanded| old.is_in(spec)) {
        return Verdict::admit();
    }
    let old: Option<AnkkaServiceSpec> = request.old.as_ref().and_then(Old::spec);
    let old = old.as_ref();
    if old.is_some_and(|old| old.service == spec.service) {
        problems.clear();
        warnings.clear();
    }
    counters(old, spec, &mut problems);
    if !problems.is_empty() {
        return Verdict::Deny(problems);
    }
    warnings.extend(old.and_then(|old| restarted_in_place(old, spec)));
    Verdict::Admit { warnings, patch: None }
}

/// The part of a spec that the counters are in.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Commanded {
    restarts: i64,
    storage: Option<StorageCommands>,
    database: Option<DatabaseCommands>,
}

impl Commanded {
    fn is_in(&self, spec: &AnkkaServiceSpec) -> bool {
        self.restarts == spec.restarts && self.storage == spec.storage && self.database == spec.database
    }
}

/// The object, where the request is one to judge.
///
/// An object that is being deleted is never judged: removing a finalizer is an update too, and must not be refused
/// because the object breaks a rule. A spec changed at that time has no effect, whatever it says: the controller builds
/// nothing for an object with a deletion timestamp, and that timestamp cannot be taken back.
pub(crate) fn judged<S>(request: &Request<S>) -> Option<&Object<S>> {
    let written = matches!(request.operation, Operation::Create | Operation::Update) && request.sub_resource.is_empty();
    let deleted = |metadata: &Metadata| metadata.deletion_timestamp.is_some();
    let new = request.object.as_ref().filter(|new| written && !deleted(&new.metadata))?;
    (!request.old.as_ref().is_some_and(|old| deleted(&old.metadata))).then_some(new)
}

fn descriptor(
    metadata: &Metadata,
    spec: &AnkkaServiceSpec,
    prefix: &str,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
) {
    let name = metadata.name.as_deref().unwrap_or_default();
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let project = names::project_of(prefix, namespace);
    if project.is_none() {
        warnings.push(format!(
            "namespace '{namespace}' is no project's, so nothing will run: apply the service to a namespace '{prefix}-<project>', made by 'ankka projects create'"
        ));
    }
    // Whether the installation has a store and the like is the controller's to report: it may change, the service stays.
    match validate(name, &spec.service, Context { project, installation: None }) {
        Ok(service) if service.instances > 1 && service.instances % 2 == 0 => warnings.push(format!(
            "minInstances is {}, an even number: a network partition can leave neither half a majority, and both stop; use an odd number",
            service.instances
        )),
        Ok(_) => {}
        Err(broken) => problems.extend(broken.into_iter().map(|problem| Problem {
            path: match problem.path.as_str() {
                "name" => "metadata.name".to_owned(),
                path => format!("spec.{path}"),
            },
            ..problem
        })),
    }
}

/// By how much an update may raise a counter: one that has reached the greatest number can never be raised again.
const RISE: i64 = 1_000;

/// What a new object's counters may be. It may be a backup, with all that was ever asked for.
const BEGINNING: i64 = 1_000_000;

/// Counters never fall: each value that was once seen has been, or will be, acted on.
fn counters(old: Option<&AnkkaServiceSpec>, new: &AnkkaServiceSpec, problems: &mut Vec<Problem>) {
    for (path, count) in COUNTERS {
        let (was, is) = (old.map_or(0, count), count(new));
        if is < was {
            problems.push(Problem::new(
                path,
                format!("a counter never falls: it is {was} and would become {is}; keep it, or raise it to ask again"),
            ));
        }
        let most = old.map_or(BEGINNING, |_| was.saturating_add(RISE));
        if is > most {
            problems.push(Problem::new(
                path,
                format!("a counter rises in small steps: it is {was} and would become {is}; set it to {most} at most"),
            ));
        }
    }
}

type Count = fn(&AnkkaServiceSpec) -> i64;

/// Every counter that commands raise.
const COUNTERS: [(&str, Count); 5] = [
    ("spec.restarts", |spec| spec.restarts),
    ("spec.storage.credentialGeneration", credential_generation),
    ("spec.storage.settingsGeneration", settings_generation),
    ("spec.storage.move.generation", move_generation),
    ("spec.database.credentialGeneration", database_generation),
];

pub(crate) fn credential_generation(spec: &AnkkaServiceSpec) -> i64 {
    spec.storage.as_ref().map_or(0, |storage| storage.credential_generation)
}

pub(crate) fn settings_generation(spec: &AnkkaServiceSpec) -> i64 {
    spec.storage.as_ref().map_or(0, |storage| storage.settings_generation)
}

pub(crate) fn move_generation(spec: &AnkkaServiceSpec) -> i64 {
    spec.storage.as_ref().and_then(|storage| storage.move_.as_ref()).map_or(0, |asked| asked.generation)
}

pub(crate) fn database_generation(spec: &AnkkaServiceSpec) -> i64 {
    spec.database.as_ref().map_or(0, |database| database.credential_generation)
}

/// A node keeps the image it has under a tag, so a restart alone may bring nothing new.
fn restarted_in_place(old: &AnkkaServiceSpec, new: &AnkkaServiceSpec) -> Option<String> {
    let image = new.service.image.as_deref()?;
    let same_tag = old.service.image == new.service.image && !image.contains('@');
    (new.restarts > old.restarts && same_tag).then(|| {
        "a restart keeps the image a node already holds under this tag; to run a newer one, apply a new tag or a digest".to_owned()
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test ends where it fails")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::review;

    fn spec(change: impl FnOnce(&mut Value)) -> Value {
        let mut spec = json!({"service": {"image": "registry.example.com/acme/cart:1.4.2"}});
        change(&mut spec);
        spec
    }

    fn object(spec: &Value) -> Value {
        json!({"metadata": {"name": "cart", "namespace": "ankka-shop", "generation": 3}, "spec": spec})
    }

    fn update(old: &Value, new: &Value) -> Verdict {
        judge_json(json!({"operation": "UPDATE", "object": new, "oldObject": old}))
    }

    fn create(new: &Value) -> Verdict {
        judge_json(json!({"operation": "CREATE", "object": new, "oldObject": null}))
    }

    fn judge_json(mut request: Value) -> Verdict {
        request["uid"] = json!("u");
        let body = json!({"request": request}).to_string();
        judge(&review::read(body.as_bytes()).unwrap(), "ankka")
    }

    fn warnings(verdict: &Verdict) -> &[String] {
        match verdict {
            Verdict::Admit { warnings, .. } => warnings,
            Verdict::Deny(problems) => panic!("denied: {problems:?}"),
        }
    }

    fn problems(verdict: &Verdict) -> &[Problem] {
        match verdict {
            Verdict::Deny(problems) => problems,
            Verdict::Admit { .. } => panic!("admitted"),
        }
    }

    #[test]
    fn every_broken_rule_is_named_under_its_path_in_the_resource() {
        let mut bad = object(&json!({"service": {"port": 0, "env": [{"name": "A"}]}}));
        bad["metadata"]["name"] = json!("Cart");
        let verdict = create(&bad);
        let found: Vec<_> = problems(&verdict).iter().map(|p| (p.path.as_str(), p.message.as_str())).collect();
        assert!(
            found.contains(&(
                "metadata.name",
                "service name 'Cart' is invalid: lowercase letters, digits and '-', starting with a letter"
            )),
            "{found:?}"
        );
        assert!(found.contains(&("spec.service.image", "service image must not be empty")), "{found:?}");
        assert!(found.contains(&("spec.service.port", "service port 0 is outside the range 1-65535")), "{found:?}");
        assert!(found.iter().any(|(_, message)| *message == "env var 'A' sets neither value nor secretKeyRef"));
    }

    #[test]
    fn a_dotted_name_too_long_for_a_label_is_refused() {
        let mut long = object(&spec(|_| ()));
        long["metadata"]["name"] = json!("a.".repeat(60));
        assert_eq!(problems(&create(&long))[0].path, "metadata.name");
    }

    #[test]
    fn a_service_stored_under_older_rules_can_be_paused_but_not_changed() {
        let stored = spec(|spec| spec["service"]["port"] = json!(0));
        let paused = spec(|spec| (spec["service"]["port"], spec["paused"]) = (json!(0), json!(true)));
        assert_eq!(update(&object(&stored), &object(&paused)), Verdict::admit());
        let changed = spec(|spec| spec["service"] = json!({"image": "i:2", "port": 0}));
        assert_eq!(problems(&update(&object(&stored), &object(&changed)))[0].path, "spec.service.port");
        // The same said again is no change, nor is a null where there was nothing.
        let mut labelled = object(&stored);
        labelled["metadata"]["labels"] = json!({"team": "x"});
        assert_eq!(update(&object(&stored), &labelled), Verdict::admit());
        let nulls = spec(|spec| (spec["service"]["port"], spec["service"]["hosting"]) = (json!(0), Value::Null));
        assert_eq!(update(&object(&stored), &object(&nulls)), Verdict::admit());
    }

    #[test]
    fn what_is_stored_counts_as_it_is_read_and_not_as_it_is_written() {
        // Neither the order of fields nor a null is a change, on whichever side; nor is one of what others wrote beside.
        let written =
            |service: &str| format!(r#"{{"metadata":{{"name":"cart","namespace":"ankka-shop"}},"spec":{service}}}"#);
        let judged = |new: &str, old: &str| {
            let body = format!(
                r#"{{"request":{{"uid":"u","operation":"UPDATE","object":{},"oldObject":{}}}}}"#,
                written(new),
                written(old)
            );
            judge(&review::read(body.as_bytes()).unwrap(), "ankka")
        };
        let stored = r#"{"service":{"image":"i:1","port":0}}"#;
        for same in [
            r#"{"service":{"port":0,"image":"i:1"}}"#,
            r#"{"service":{"image":"i:1","port":0,"env":null,"resources":null},"storage":null}"#,
            r#"{"service":{"image":"i:1","port":0},"paused":null,"restarts":null}"#,
            r#"{"service":{"image":"i:1","port":0},"somebodys":{"own":1}}"#,
            r#"{"exposed":true,"service":{"image":"\u0069:1","port":0}}"#,
        ] {
            assert_eq!(judged(same, stored), Verdict::admit(), "{same}");
            assert_eq!(judged(stored, same), Verdict::admit(), "{same}");
        }
        assert_eq!(problems(&judged(r#"{"service":{"image":"i:1","port":0,"http":true}}"#, stored)).len(), 1);
        // A counter that falls is one wherever the service beside it was changed.
        let raised = r#"{"service":{"image":"i:0"},"restarts":2,"paused":null}"#;
        assert_eq!(problems(&judged(r#"{"service":{"image":"i:1"},"restarts":1}"#, raised))[0].path, "spec.restarts");
    }

    #[test]
    fn a_word_is_said_once_and_not_again_with_every_update() {
        let even = spec(|spec| spec["service"]["resources"] = json!({"autoscaling": {"minInstances": 2}}));
        let mut labelled = object(&even);
        labelled["metadata"]["annotations"] = json!({"a": 7});
        assert_eq!(update(&object(&even), &labelled), Verdict::admit());
        let mut again = even.clone();
        again["restarts"] = json!(1);
        let verdict = update(&object(&even), &object(&again));
        let [warning] = warnings(&verdict) else { panic!("{verdict:?}") };
        assert!(warning.starts_with("a restart keeps"), "{warning}");
    }

    #[test]
    fn an_object_being_deleted_is_never_refused() {
        let stored = spec(|spec| spec["service"]["port"] = json!(0));
        let mut old = object(&stored);
        old["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        old["metadata"]["finalizers"] = json!(["example.com/hold"]);
        let mut released = old.clone();
        released["metadata"]["finalizers"] = json!([]);
        assert_eq!(update(&old, &released), Verdict::admit());
        let mut changed = old.clone();
        changed["spec"]["service"]["image"] = json!("");
        assert_eq!(update(&old, &changed), Verdict::admit());
    }

    #[test]
    fn the_status_and_deletions_are_not_judged() {
        let bad = object(&json!({}));
        assert_eq!(judge_json(json!({"operation": "DELETE", "oldObject": bad})), Verdict::admit());
        let status =
            json!({"operation": "UPDATE", "subResource": "status", "object": bad, "oldObject": object(&spec(|_| ()))});
        assert_eq!(judge_json(status), Verdict::admit());
    }

    #[test]
    fn no_counter_falls() {
        let raised = json!({
            "service": {"image": "i:1"}, "restarts": 3, "database": {"credentialGeneration": 1},
            "storage": {"credentialGeneration": 2, "settingsGeneration": 2, "move": {"generation": 1}},
        });
        let mut lower = raised.clone();
        lower["restarts"] = json!(2);
        let verdict = update(&object(&raised), &object(&lower));
        assert_eq!(
            problems(&verdict),
            [Problem::new(
                "spec.restarts",
                "a counter never falls: it is 3 and would become 2; keep it, or raise it to ask again"
            )]
        );
        let verdict = update(&object(&raised), &object(&json!({"service": {"image": "i:1"}})));
        let paths: Vec<_> = problems(&verdict).iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, COUNTERS.map(|(path, _)| path));
        let mut higher = raised.clone();
        higher["restarts"] = json!(4);
        assert!(matches!(update(&object(&raised), &object(&higher)), Verdict::Admit { .. }));
        assert!(matches!(create(&object(&spec(|spec| spec["restarts"] = json!(-1)))), Verdict::Deny(_)));
    }

    #[test]
    fn no_counter_rises_to_where_it_could_not_rise_again() {
        let asked = |generation: i64| spec(|spec| spec["database"] = json!({"credentialGeneration": generation}));
        let raise = |from: i64, to: i64| update(&object(&asked(from)), &object(&asked(to)));
        let sentence = |was: i64, is: i64, most: i64| {
            let text =
                format!("a counter rises in small steps: it is {was} and would become {is}; set it to {most} at most");
            [Problem::new("spec.database.credentialGeneration", text)]
        };
        assert_eq!(raise(3, 1_003), Verdict::admit());
        assert_eq!(problems(&raise(3, 1_004)), sentence(3, 1_004, 1_003));
        assert_eq!(problems(&raise(0, i64::MAX)), sentence(0, i64::MAX, 1_000));
        // What got there before can stay, and what a backup holds can be restored.
        assert_eq!(raise(i64::MAX, i64::MAX), Verdict::admit());
        assert_eq!(create(&object(&asked(1_000_000))), Verdict::admit());
        assert_eq!(problems(&create(&object(&asked(i64::MAX)))), sentence(0, i64::MAX, 1_000_000));
    }

    #[test]
    fn an_even_number_of_instances_is_admitted_with_a_word() {
        let with =
            |count: i64| spec(|spec| spec["service"]["resources"] = json!({"autoscaling": {"minInstances": count}}));
        for even in [2, 4] {
            let verdict = create(&object(&with(even)));
            let [warning] = warnings(&verdict) else { panic!("{verdict:?}") };
            assert!(warning.starts_with(&format!("minInstances is {even}, an even number")), "{warning}");
        }
        assert_eq!(create(&object(&with(3))), Verdict::admit());
        let mut paused = with(2);
        paused["paused"] = json!(true);
        assert_eq!(update(&object(&with(2)), &object(&paused)), Verdict::admit());
    }

    #[test]
    fn a_tag_restarted_in_place_is_admitted_with_a_word() {
        let restarted = |image: &str| json!({"service": {"image": image}, "restarts": 1});
        let before = |image: &str| json!({"service": {"image": image}});
        let verdict = update(&object(&before("i:1")), &object(&restarted("i:1")));
        assert!(warnings(&verdict)[0].starts_with("a restart keeps the image"));
        assert_eq!(update(&object(&before("i:1")), &object(&restarted("i:2"))), Verdict::admit());
        let digest = format!("i@sha256:{}", "0".repeat(64));
        assert_eq!(update(&object(&before(&digest)), &object(&restarted(&digest))), Verdict::admit());
    }

    #[test]
    fn a_namespace_that_is_no_projects_is_admitted_with_a_word() {
        let mut elsewhere = object(&spec(|_| ()));
        elsewhere["metadata"]["namespace"] = json!("default");
        let verdict = create(&elsewhere);
        assert!(warnings(&verdict)[0].starts_with("namespace 'default' is no project's"));
        assert!(warnings(&verdict)[0].len() <= 256);
    }

    #[test]
    fn a_spec_that_cannot_be_read_is_refused_with_its_place_and_without_its_value() {
        let wrong = object(&json!({"service": {"image": "i:1", "env": [{"name": "A", "value": 4711}]}}));
        let verdict = create(&wrong);
        assert_eq!(
            problems(&verdict),
            [Problem::new("spec.service.env[0].value", "is of the wrong type, expected a string")]
        );
        assert_eq!(problems(&create(&object(&json!(7))))[0].path, "spec");
        // Stored like that, it can be left as it is, and be made right.
        let mut labelled = wrong.clone();
        labelled["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(update(&wrong, &labelled), Verdict::admit());
        assert_eq!(update(&wrong, &object(&spec(|_| ()))), Verdict::admit());
    }
}
