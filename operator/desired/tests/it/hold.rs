//! Services of which nothing is started: what is left alone, and what is said.

use ankka_crds::{AnkkaServiceStatus, Store};
use ankka_desired::{Action, ChildKind, Owner, Seen};
use serde_json::json;

use crate::support::{World, stranger, told};

fn failed(world: &World) -> String {
    let decision = world.decide();
    assert_eq!(decision.actions, []);
    assert_eq!(decision.status.lifecycle.as_deref(), Some("Failed"));
    decision.status.detail.expect("a reason")
}

#[test]
fn an_invalid_service_fails_with_every_message_and_is_left_running() {
    let world = World::cart(json!({})).settled(1);
    let broken = |mut world: World| {
        world.service.spec.service.image = Some(String::new());
        world.service.spec.service.port = Some(0);
        world
    };
    let detail = "service image must not be empty; service port 0 is outside the range 1-65535";
    assert_eq!(failed(&broken(world)), detail);
    assert_eq!(failed(&broken(World::cart(json!({})))), detail);
}

#[test]
fn thousands_of_problems_do_not_make_a_status_too_large_to_store() {
    let nameless = vec![json!({ "value": "x" }); 5000];
    let world = World::cart(json!({ "env": nameless }));
    assert!(failed(&world).len() <= 16 * 1024);
}

#[test]
fn an_invalid_service_can_still_be_paused() {
    let mut world = World::cart(json!({})).settled(1);
    world.service.spec.service.image = None;
    world.service.spec.paused = true;
    let decision = world.decide();
    let uid = world.children[&ChildKind::Deployment].uid.clone();
    assert_eq!(decision.actions, [Action::Scale { name: "cart".to_owned(), uid, replicas: 0 }]);
    assert_eq!(decision.status.lifecycle.as_deref(), Some("Paused"));
    world.workload.as_mut().expect("a workload").desired = 0;
    assert_eq!(world.decide().actions, []);
}

#[test]
fn a_strangers_deployment_is_not_scaled_either() {
    let mut world = World::cart(json!({})).settled(1);
    world.service.spec.service.image = None;
    world.service.spec.paused = true;
    world.children.insert(ChildKind::Deployment, stranger());
    assert_eq!(world.decide().actions, []);
}

#[test]
fn a_strangers_object_is_never_touched_and_is_named() {
    for kind in ChildKind::all().into_iter().filter(|kind| kind.is_owned()) {
        let mut world = World::cart(json!({ "resources": { "autoscaling": { "minInstances": 3 } } }));
        world.service.spec.exposed = true;
        world.children.insert(kind, stranger());
        let article = if kind == ChildKind::HttpRoute { "an" } else { "a" };
        let name = kind.name_for("cart");
        assert_eq!(
            failed(&world),
            format!(
                "{article} {} named '{name}' already exists in 'ankka-shop' and is not managed by ankka",
                kind.word()
            )
        );
    }
    let mut world = World::cart(json!({}));
    let owner = Some(Owner { kind: "Application".to_owned(), name: "cart".to_owned(), uid: "other".to_owned() });
    world.children.insert(ChildKind::Service, Seen { owner, ..stranger() });
    assert!(failed(&world).starts_with("a service named 'cart'"));
}

#[test]
fn a_name_that_the_service_does_not_want_may_be_anybodys() {
    let mut world = World::cart(json!({ "http": false }));
    world.children.insert(ChildKind::Service, stranger());
    world.children.insert(ChildKind::PodDisruptionBudget, stranger());
    let kinds = ["ankkadatabase", "serviceaccount", "role", "rolebinding", "configmap", "deployment"];
    assert_eq!(told(&world.decide().actions), kinds.map(|kind| format!("create {kind}")));
}

#[test]
fn what_a_service_of_before_has_left_is_waited_for() {
    let predecessor = |kind: ChildKind| Seen {
        owner: Some(Owner { kind: "AnkkaService".to_owned(), name: "cart".to_owned(), uid: "older".to_owned() }),
        uid: format!("old-{}", kind.word()),
        ..Default::default()
    };
    let mut world = World::cart(json!({}));
    world.children.insert(ChildKind::ServiceAccount, predecessor(ChildKind::ServiceAccount));
    let decision = world.decide();
    assert_eq!(
        told(&decision.actions),
        ["ankkadatabase", "role", "rolebinding", "configmap", "service"].map(|kind| format!("create {kind}"))
    );
    assert_eq!(decision.status.lifecycle.as_deref(), Some("UpdateInProgress"));
    assert_eq!(decision.status.conditions[0].reason, "WaitingForDeletion");
    let detail = "waiting for the serviceaccount 'ankka-cart' of before, which is being deleted, to be gone";
    assert_eq!(decision.status.detail.as_deref(), Some(detail));
    // The address of before does not hold up the new instances.
    world.children = [(ChildKind::Service, predecessor(ChildKind::Service))].into();
    assert!(told(&world.decide().actions).contains(&"create deployment".to_owned()));
}

#[test]
fn an_object_of_ours_that_is_being_deleted_is_waited_for() {
    let mut world = World::cart(json!({})).settled(1);
    world.children.get_mut(&ChildKind::Deployment).expect("a deployment").terminating = true;
    let decision = world.decide();
    assert_eq!(decision.actions, []);
    assert_eq!(decision.status.lifecycle.as_deref(), Some("UpdateInProgress"));
}

#[test]
fn a_pause_waits_for_nothing() {
    let mut world = World::cart(json!({})).settled(1);
    world.children.get_mut(&ChildKind::ServiceAccount).expect("an account").terminating = true;
    world.service.spec.restarts = 1;
    assert_eq!(told(&world.decide().actions), [] as [&str; 0]);
    world.service.spec.paused = true;
    assert_eq!(told(&world.decide().actions), ["update deployment"]);
}

#[test]
fn nothing_is_done_while_the_service_or_its_namespace_is_being_deleted() {
    let time = serde_json::from_value(json!("2026-11-30T10:00:00Z")).expect("a time");
    let mut world = World::cart(json!({}));
    world.service.metadata.deletion_timestamp = Some(time);
    assert_eq!(world.decide().actions, []);
    assert_eq!(world.decide().status, AnkkaServiceStatus::default());
    let mut world = World::cart(json!({}));
    world.project.as_mut().expect("a project").terminating = true;
    assert_eq!(world.decide().actions, []);
}

#[test]
fn a_service_outside_a_project_fails_with_the_next_step() {
    let mut world = World::cart(json!({}));
    world.project = None;
    assert_eq!(
        failed(&world),
        "namespace 'ankka-shop' is no project's; create the project with: ankka projects create shop"
    );
    world.service.metadata.namespace = Some("default".to_owned());
    assert_eq!(
        failed(&world),
        "namespace 'default' is no project's; apply the service to a project, whose namespace is 'ankka-<project>'"
    );
}

#[test]
fn process_hosting_needs_a_sidecar_image() {
    let mut world = World::cart(json!({ "hosting": "process", "protocol": "1.0" }));
    world.settings.sidecar_image = None;
    assert_eq!(failed(&world), "operator has no sidecar image");
    assert_eq!(world.decide().status.desired_instances, 1);
}

#[test]
fn an_image_for_another_platform_gets_no_instance_and_running_ones_stay() {
    let mut world = World::cart(json!({ "runtime": "0.3.0" }));
    let status = world.decide().status;
    assert_eq!(world.decide().actions, []);
    assert_eq!(status.lifecycle.as_deref(), Some("Unavailable"));
    let detail = "runtime 0.3.0 is outside the platform's supported range: runtimes 0.1.x–0.2.x (platform 0.2.0); \
                  build the image against a supported version and apply it again";
    assert_eq!(status.detail.as_deref(), Some(detail));
    assert_eq!(status.address, None);

    let running = World::cart(json!({})).settled(1);
    (world.children, world.workload) = (running.children, running.workload);
    let decision = world.decide();
    assert_eq!(decision.actions, []);
    let detail = format!("{detail}; running instances are left running");
    assert_eq!(decision.status.detail, Some(detail));
    assert_eq!(decision.status.ready_instances, 1);
    assert!(decision.status.address.is_some());
    world.service.spec.paused = true;
    assert_eq!(told(&world.decide().actions), ["scale to 0"]);
}

#[test]
fn a_bucket_without_a_store_fails_and_says_so_in_three_places() {
    let world = World::cart(json!({ "provisionObjectStorage": true }));
    assert_eq!(failed(&world), "object storage: the installation has no object store");
    let status = world.decide().status;
    let storage = status.object_storage.expect("a phase");
    assert_eq!(storage.phase, "object storage provisioning failed");
    assert_eq!(storage.detail.as_deref(), Some("the installation has no object store"));
    let ready = status.conditions.iter().find(|condition| condition.type_ == "StorageReady").expect("a condition");
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "NoObjectStore"));
}

#[test]
fn a_bucket_that_is_not_there_yet_holds_the_instances_back() {
    let mut world = World::cart(json!({ "provisionObjectStorage": true }));
    world.settings.installation.store = Some(Store::Garage);
    let decision = world.decide();
    assert_eq!(decision.actions, []);
    assert_eq!(decision.status.lifecycle.as_deref(), Some("UpdateInProgress"));
    assert_eq!(decision.status.object_storage.expect("a phase").phase, "waiting for object storage");
}

#[test]
fn pausing_keeps_the_address_and_drops_instances_and_budget() {
    let mut world = World::cart(json!({ "resources": { "autoscaling": { "minInstances": 3 } } })).settled(3);
    world.service.spec.paused = true;
    assert_eq!(told(&world.decide().actions), ["delete poddisruptionbudget", "update deployment"]);
    assert!(world.child(ChildKind::Service).is_some());
    assert_eq!(world.body(ChildKind::Deployment)["spec"]["replicas"], 0);
}

#[test]
fn a_settled_service_is_left_alone() {
    for more in [json!({}), json!({ "http": false }), json!({ "resources": { "autoscaling": { "minInstances": 3 } } })]
    {
        let world = World::cart(more).settled(1);
        assert_eq!(world.decide().actions, []);
    }
}

#[test]
fn turning_http_off_removes_the_address_only_if_it_is_ours() {
    let mut world = World::cart(json!({})).settled(1);
    world.service.spec.service.http = Some(false);
    assert_eq!(told(&world.decide().actions), ["delete service", "update deployment"]);
    world.children.insert(ChildKind::Service, stranger());
    assert_eq!(told(&world.decide().actions), ["update deployment"]);
}
