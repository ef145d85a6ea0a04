//! Projects: their namespaces, and who may reach what runs there.

use ankka_crds::AnkkaProject;
use ankka_crds::resources::AnkkaProjectSpec;
use ankka_desired::project::{Action, Decision, Facts, Kind, NamespaceSeen, Object, decide};
use ankka_desired::{OwnFields, Seen};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

fn judged(name: &str, namespace: Option<&NamespaceSeen>, policy: Option<&Seen>) -> Decision {
    let mut project = AnkkaProject::new(name, AnkkaProjectSpec::default());
    project.metadata.generation = Some(1);
    decide(&Facts {
        project: &project,
        prefix: "ankka",
        own_namespace: "ankka-system",
        gateway_namespace: "ankka-gateway",
        namespace,
        policy,
    })
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
