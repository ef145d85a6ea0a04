//! Projects: their namespaces, and who may reach what runs there.

use ankka_crds::AnkkaProject;
use ankka_crds::resources::{AnkkaProjectSpec, Subject};
use ankka_desired::project::{Action, Decision, Facts, Kind, NamespaceSeen, Object, decide};
use ankka_desired::{OwnFields, Seen};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

fn judged(name: &str, namespace: Option<&NamespaceSeen>, policy: Option<&Seen>) -> Decision {
    administered(name, &[], namespace, policy, None)
}

fn administered(
    name: &str,
    administrators: &[Subject],
    namespace: Option<&NamespaceSeen>,
    policy: Option<&Seen>,
    binding: Option<&Seen>,
) -> Decision {
    let spec = AnkkaProjectSpec { administrators: administrators.to_vec(), ..AnkkaProjectSpec::default() };
    let mut project = AnkkaProject::new(name, spec);
    project.metadata.generation = Some(1);
    decide(&Facts {
        project: &project,
        prefix: "ankka",
        own_namespace: "ankka-system",
        gateway_namespace: "ankka-gateway",
        proxy_namespaces: &[],
        namespace,
        policy,
        administrators: binding,
    })
}

fn subject(kind: &str, name: &str, namespace: Option<&str>) -> Subject {
    Subject { kind: kind.to_owned(), name: name.to_owned(), namespace: namespace.map(str::to_owned) }
}

fn created(decision: &Decision) -> Vec<&Object> {
    let mut objects = Vec::new();
    for action in &decision.actions {
        let Action::Create(object) = action else { panic!("{action:?}") };
        objects.push(object);
    }
    objects
}

fn meta(body: &Value) -> ObjectMeta {
    serde_json::from_value(body["metadata"].clone()).expect("metadata")
}

/// The namespace and the policy of `shop`, as a first pass makes them.
fn made() -> (NamespaceSeen, Seen) {
    let decision = judged("shop", None, None);
    let objects = created(&decision);
    (NamespaceSeen::of(&meta(&objects[0].body)), Seen::of(&meta(&objects[1].body)))
}

#[test]
fn a_project_gets_a_namespace_and_a_policy() {
    let decision = judged("shop", None, None);
    let bodies: Vec<_> =
        created(&decision).iter().map(|object| serde_yaml_ng::to_string(&object.body).expect("YAML")).collect();
    insta::assert_snapshot!(bodies.join("---\n"));
    assert_eq!(decision.status.namespace.as_deref(), Some("ankka-shop"));
    assert_eq!(decision.status.conditions[0].status, "True");
}

#[test]
fn what_serves_the_gateway_may_run_in_other_namespaces() {
    let mut project = AnkkaProject::new("shop", AnkkaProjectSpec::default());
    project.metadata.generation = Some(1);
    let proxies = ["ankka-gateway", "projectcontour"].map(str::to_owned);
    let decision = decide(&Facts {
        project: &project,
        prefix: "ankka",
        own_namespace: "ankka-system",
        gateway_namespace: "ankka-gateway",
        proxy_namespaces: &proxies,
        namespace: None,
        policy: None,
        administrators: None,
    });
    let in_namespace =
        |name: &str| json!({ "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": name } } });
    assert_eq!(
        created(&decision)[1].body["spec"]["ingress"],
        json!([{ "from": [{ "podSelector": {} }, in_namespace("ankka-gateway"), in_namespace("projectcontour")] }])
    );
}

#[test]
fn a_settled_project_is_left_alone() {
    let (namespace, policy) = made();
    assert_eq!(judged("shop", Some(&namespace), Some(&policy)).actions, []);
}

#[test]
fn labels_that_drifted_are_put_back_and_others_stay() {
    let (mut namespace, policy) = made();
    namespace.labels.insert("pod-security.kubernetes.io/enforce".to_owned(), "privileged".to_owned());
    let decision = judged("shop", Some(&namespace), Some(&policy));
    let [Action::Update { object, .. }] = decision.actions.as_slice() else { panic!("{decision:?}") };
    assert_eq!(object.kind, Kind::Namespace);
    let live = json!({
        "metadata": { "name": "ankka-shop", "uid": "u", "resourceVersion": "7", "labels": { "theirs": "1" }, "managedFields": [] },
        "spec": { "finalizers": ["kubernetes"] }, "status": { "phase": "Active" },
    });
    let body = object.merged(&live);
    assert_eq!(body["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "baseline");
    assert_eq!(body["metadata"]["labels"]["theirs"], "1");
    assert_eq!((&body["metadata"]["uid"], &body["metadata"]["resourceVersion"]), (&json!("u"), &json!("7")));
    assert_eq!(body["spec"], live["spec"]);
    assert_eq!((body.get("status"), body["metadata"].get("managedFields")), (None, None));
}

#[test]
fn a_namespace_of_somebody_else_is_refused_until_it_says_otherwise() {
    let mut namespace = NamespaceSeen { uid: "u".to_owned(), ..Default::default() };
    let decision = judged("shop", Some(&namespace), None);
    assert_eq!(decision.actions, []);
    assert_eq!(
        decision.status.detail.as_deref(),
        Some(
            "namespace 'ankka-shop' already exists and is not managed by ankka; to let the project have it: \
             kubectl annotate namespace ankka-shop ankka.dev/adopt=shop"
        )
    );
    assert_eq!(decision.status.conditions[1].type_, "Stalled");
    namespace.adopt = Some("other".to_owned());
    assert_eq!(judged("shop", Some(&namespace), None).actions, []);
    namespace.adopt = Some("shop".to_owned());
    let decision = judged("shop", Some(&namespace), None);
    assert!(matches!(decision.actions.as_slice(), [Action::Update { uid, .. }, Action::Create(_)] if uid == "u"));
}

#[test]
fn a_namespace_of_ours_that_lost_its_labels_gets_them_back() {
    let record = json!([{ "manager": "ankka-operator", "operation": "Update", "fieldsType": "FieldsV1",
        "fieldsV1": { "f:metadata": { "f:labels": { "f:kubernetes.io/metadata.name": {} } } } }]);
    let bare = json!({ "metadata": { "name": "ankka-shop", "uid": "u", "managedFields": record } });
    let decision = judged("shop", Some(&NamespaceSeen::of(&meta(&bare))), None);
    assert!(matches!(decision.actions.as_slice(), [Action::Update { uid, .. }, Action::Create(_)] if uid == "u"));
}

#[test]
fn nothing_is_made_in_a_namespace_that_is_being_deleted() {
    let (namespace, _) = made();
    let decision = judged("shop", Some(&NamespaceSeen { terminating: true, ..namespace }), None);
    assert_eq!(decision.actions, []);
    assert_eq!(decision.status.conditions[1].type_, "Reconciling");
}

#[test]
fn a_policy_of_somebody_else_is_named_and_one_of_ours_is_repaired() {
    let (namespace, policy) = made();
    let decision = judged("shop", Some(&namespace), Some(&Seen { rendered: None, ..policy.clone() }));
    assert_eq!(decision.actions, []);
    assert!(decision.status.detail.is_some_and(|detail| detail.contains("networkpolicy named 'ankka-project'")));
    let decision = judged("shop", Some(&namespace), Some(&Seen { foreign: true, ..policy }));
    assert!(
        matches!(decision.actions.as_slice(), [Action::Update { object, .. }] if object.kind == Kind::NetworkPolicy)
    );
}

#[test]
fn administrators_are_bound_in_the_projects_namespace() {
    let (namespace, policy) = made();
    let named = [
        subject("User", "ann", None),
        subject("Group", "team", None),
        subject("ServiceAccount", "deployer", Some("ci")),
    ];
    let decision = administered("shop", &named, Some(&namespace), Some(&policy), None);
    let [binding] = created(&decision)[..] else { panic!("{decision:?}") };
    insta::assert_snapshot!(serde_yaml_ng::to_string(&binding.body).expect("YAML"));
    let seen = Seen::of(&meta(&binding.body));
    assert_eq!(administered("shop", &named, Some(&namespace), Some(&policy), Some(&seen)).actions, []);

    for fewer in [&named[..1], &[]] {
        let decision = administered("shop", fewer, Some(&namespace), Some(&policy), Some(&seen));
        let [Action::Update { object, .. }] = decision.actions.as_slice() else { panic!("{decision:?}") };
        let bound = object.body.get("subjects").map(|subjects| subjects.as_array().expect("a list").len());
        let named = (!fewer.is_empty()).then_some(fewer.len());
        assert_eq!(bound, named, "whoever is not named any more is not bound any more, and an empty list is none");
    }
}

#[test]
fn a_binding_of_somebody_else_is_named_and_stays_and_without_administrators_nobody_minds_it() {
    let (namespace, policy) = made();
    let foreign = Seen { uid: "theirs".to_owned(), ..Seen::default() };
    let decision =
        administered("shop", &[subject("User", "ann", None)], Some(&namespace), Some(&policy), Some(&foreign));
    assert_eq!(decision.actions, []);
    assert_eq!(
        decision.status.detail.as_deref(),
        Some("a rolebinding named 'ankka:administrators' already exists in 'ankka-shop' and is not managed by ankka")
    );
    let decision = administered("shop", &[], Some(&namespace), Some(&policy), Some(&foreign));
    assert_eq!((decision.actions, decision.status.detail), (Vec::new(), None));
}

#[test]
fn an_administrator_that_nobody_can_be_is_named() {
    let decision = administered("shop", &[subject("Robot", "r", None)], None, None, None);
    assert_eq!(decision.actions, []);
    assert_eq!(
        decision.status.detail.as_deref(),
        Some("administrator kind must be \"User\", \"Group\" or \"ServiceAccount\", not \"Robot\"")
    );
}

#[test]
fn no_services_binding_has_the_name_of_the_administrators() {
    assert_eq!(ankka_desired::ChildKind::RoleBinding.service_of(ankka_desired::project::ADMINISTRATORS), None);
}

#[test]
fn an_id_that_breaks_a_rule_makes_nothing() {
    for id in ["system", "Shop", &"a".repeat(47)] {
        let decision = judged(id, None, None);
        assert_eq!(decision.actions, []);
        assert_eq!(decision.status.conditions[0].reason, "InvalidId");
        assert_eq!(decision.status.namespace, None);
    }
}

#[test]
fn what_a_real_server_records_of_the_policy_is_read_rightly() {
    let recorded = include_bytes!("../../testdata/recorded/networkpolicy.json");
    let (namespace, ours) = made();
    let rendered = ours.rendered;
    let seen = Seen { rendered, ..Seen::of(&serde_json::from_slice(recorded).expect("metadata")) };
    assert_ne!(seen.own, OwnFields::default());
    assert_eq!(judged("shop", Some(&namespace), Some(&seen)).actions, []);
}
