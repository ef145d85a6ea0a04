//! A service's database: what is asked for, what waits for it, and what is said.

use ankka_crds::resources::DatabaseCommands;
use ankka_desired::{Action, Cause, ChildKind, DatabaseServer, DatabaseState};
use serde_json::{Value, json};

use crate::support::{World, provisioned, told};

const VARIABLES: [&str; 5] = ["ANKKA_DB_HOST", "ANKKA_DB_PORT", "ANKKA_DB_NAME", "ANKKA_DB_USER", "ANKKA_DB_PASSWORD"];

fn supplied() -> Value {
    json!({ "env": [{ "name": "ANKKA_DB_HOST", "value": "db" }] })
}

fn waiting(detail: &str) -> DatabaseState {
    let phase = Some("waiting for database".to_owned());
    DatabaseState { phase, secret: None, detail: Some(detail.to_owned()), ..provisioned() }
}

fn failed(detail: &str) -> DatabaseState {
    let phase = Some("database provisioning failed".to_owned());
    DatabaseState { phase, secret: None, detail: Some(detail.to_owned()), ..provisioned() }
}

/// Lifecycle, detail, phase of the database, and the condition about it.
fn said(world: &World) -> [String; 4] {
    let status = world.decide().status;
    let database = status.database.map_or_else(String::new, |database| {
        database.detail.map_or_else(|| database.phase.clone(), |detail| format!("{}: {detail}", database.phase))
    });
    let condition = status.conditions.iter().find(|condition| condition.type_ == "DatabaseReady");
    let condition = condition.map(|condition| format!("{}:{}", condition.status, condition.reason));
    [status.lifecycle.unwrap_or_default(), status.detail.unwrap_or_default(), database, condition.unwrap_or_default()]
}

/// The variables of a container that name a database, and where their values come from.
fn variables(world: &World, container: &str) -> Vec<(String, Value)> {
    let template = &world.body(ChildKind::Deployment)["spec"]["template"]["spec"];
    let containers = template["containers"].as_array().expect("containers");
    let container = containers.iter().find(|candidate| candidate["name"] == container).expect("the container");
    let named = |variable: &Value| variable["name"].as_str().is_some_and(|name| name.starts_with("ANKKA_DB_"));
    let env = container["env"].as_array().expect("variables").iter().filter(|variable| named(variable));
    env.map(|variable| (variable["name"].as_str().expect("a name").to_owned(), variable["valueFrom"].clone())).collect()
}

#[test]
fn a_new_service_asks_for_a_database_and_its_instances_wait_for_the_login() {
    let mut world = World::cart(json!({}));
    world.database = None;
    let everything_else = ["ankkadatabase", "serviceaccount", "role", "rolebinding", "configmap", "service"];
    assert_eq!(told(&world.decide().actions), everything_else.map(|kind| format!("create {kind}")));
    let updating = "UpdateInProgress";
    let phase = "waiting for database";
    assert_eq!(said(&world), [updating, phase, phase, "Unknown:WaitingForDatabase"]);
    assert_eq!(world.decide().status.conditions[0].reason, "WaitingForDatabase");

    world.children = World::cart(json!({})).settled(0).children;
    world.children.remove(&ChildKind::Deployment);
    world.database = Some(DatabaseState { phase: None, secret: None, ..provisioned() });
    assert_eq!(told(&world.decide().actions), [] as [&str; 0]);
    let why = "db.example.com:5432 does not answer: connection refused";
    world.database = Some(waiting(why));
    let phase = format!("waiting for database: {why}");
    let detail = format!("{phase}; {}", Cause::Database.row().next);
    assert_eq!(said(&world), [updating, &detail, &phase, "Unknown:WaitingForDatabase"]);

    world.database = Some(provisioned());
    assert_eq!(told(&world.decide().actions), ["create deployment"]);
    assert_eq!(said(&world), [updating, "", "provisioned", "True:Provisioned"]);
}

#[test]
fn the_request_names_the_service_and_has_no_owner() {
    let body = World::cart(json!({})).body(ChildKind::Database);
    assert_eq!((&body["apiVersion"], &body["kind"]), (&json!("ankka.dev/v1alpha1"), &json!("AnkkaDatabase")));
    assert_eq!((&body["metadata"]["name"], &body["spec"]), (&json!("cart"), &json!({})));
    assert_eq!(body["metadata"].get("ownerReferences"), None);
    assert_eq!(body["metadata"].get("finalizers"), None);
    assert_eq!(body["metadata"]["labels"]["ankka.dev/service"], "cart");
}

#[test]
fn the_node_gets_five_variables_from_the_secret_and_nobody_else_does() {
    let reads = |container: &str, world: &World| variables(world, container);
    let expected =
        VARIABLES.map(|name| (name.to_owned(), json!({ "secretKeyRef": { "name": "cart-db", "key": name } })));
    assert_eq!(reads("service", &World::cart(json!({}))), expected);
    let process = World::cart(json!({ "hosting": "process", "protocol": "1.0" }));
    assert_eq!(reads("sidecar", &process), expected);
    assert_eq!(reads("service", &process), []);
}

#[test]
fn what_a_service_supplies_is_all_it_gets() {
    let mut world = World::cart(supplied());
    world.database = None;
    assert_eq!(said(&world), ["UpdateInProgress", "", "supplied", ""]);
    assert!(world.child(ChildKind::Database).is_none());
    assert_eq!(variables(&world, "service"), [("ANKKA_DB_HOST".to_owned(), Value::Null)]);

    // The database of before stays as it is, with its login.
    let mut world = World::cart(json!({})).settled(1);
    world.service.spec.service.env = World::cart(supplied()).service.spec.service.env;
    world.service.spec.database = Some(DatabaseCommands { credential_generation: 7 });
    assert_eq!(told(&world.decide().actions), ["update deployment"]);
    assert_eq!(said(&world)[2..], ["supplied", ""]);
}

#[test]
fn instances_that_bring_their_own_database_serve_until_ours_is_there() {
    let mut world = World::cart(supplied()).settled(1);
    world.service.spec.service.env = None;
    world.database = None;
    assert_eq!(told(&world.decide().actions), ["create ankkadatabase"]);
    let left = "; running instances are left running";
    let expected = ["UpdateInProgress", &format!("waiting for database{left}"), "waiting for database"];
    assert_eq!(said(&world)[..3], expected);
    let denied = "permission denied to create role";
    world.database = Some(failed(denied));
    let next = Cause::DatabaseRefused.row().next;
    assert_eq!(said(&world)[..2], ["Failed", &format!("database: {denied}; {next}{left}")]);

    world.service.spec.paused = true;
    let uid = world.children[&ChildKind::Deployment].uid.clone();
    let pause = Action::Scale { name: "cart".to_owned(), uid, replicas: 0 };
    assert!(world.decide().actions.contains(&pause));
    assert_eq!(said(&world)[0], "Paused");

    world.service.spec.paused = false;
    world.database = Some(provisioned());
    assert!(told(&world.decide().actions).contains(&"update deployment".to_owned()));
}

#[test]
fn a_database_that_cannot_be_made_fails_the_service() {
    let mut world = World::cart(json!({}));
    world.database = Some(failed("permission denied to create role"));
    let reason = "DatabaseProvisioningFailed";
    let why = "permission denied to create role";
    let phase = format!("database provisioning failed: {why}");
    let detail = format!("database: {why}; {}", Cause::DatabaseRefused.row().next);
    assert_eq!(said(&world), ["Failed", &detail, &phase, &format!("False:{reason}")]);
    let conditions = world.decide().status.conditions;
    assert_eq!((conditions[0].reason.as_str(), conditions[1].type_.as_str()), (reason, "Stalled"));
}

#[test]
fn a_server_that_goes_down_later_stops_nothing() {
    let mut world = World::cart(json!({})).settled(1);
    let down = DatabaseState { secret: Some("cart-db".to_owned()), ..waiting("no answer") };
    world.database = Some(down);
    assert_eq!(world.decide().actions, []);
    assert_eq!(said(&world), ["Ready", "", "waiting for database: no answer", "Unknown:WaitingForDatabase"]);
    world.service.spec.restarts = 1;
    assert_eq!(told(&world.decide().actions), ["update deployment"]);
}

#[test]
fn without_a_server_nothing_is_started_and_the_next_step_is_said() {
    let mut world = World::cart(json!({}));
    (world.settings.database, world.database) = (DatabaseServer::None, None);
    assert_eq!(world.decide().actions, []);
    let [lifecycle, detail, phase, condition] = said(&world);
    assert_eq!(lifecycle, "Failed");
    assert!(detail.starts_with("database: the installation has no database server; supply a database"), "{detail}");
    assert_eq!(phase, "database provisioning failed: the installation has no database server");
    assert_eq!(condition, "False:NoDatabaseServer");

    let mut world = World::cart(supplied());
    world.settings.database = DatabaseServer::None;
    assert!(told(&world.decide().actions).contains(&"create deployment".to_owned()));
}

#[test]
fn a_paused_services_database_is_made_too() {
    let mut world = World::cart(json!({}));
    (world.service.spec.paused, world.database) = (true, None);
    assert!(told(&world.decide().actions).contains(&"create ankkadatabase".to_owned()));
    assert_eq!(said(&world), ["Paused", "", "waiting for database", "Unknown:WaitingForDatabase"]);
    world.database = Some(provisioned());
    assert_eq!(world.body(ChildKind::Deployment)["spec"]["replicas"], 0);
}

#[test]
fn a_new_login_is_asked_for_and_rolls_once_it_is_in_place() {
    let mut world = World::cart(json!({})).settled(1);
    let template = world.template();
    assert!(!template.contains("database-credential-generation"));
    world.service.spec.database = Some(DatabaseCommands { credential_generation: 2 });
    let actions = world.decide().actions;
    assert_eq!(told(&actions), ["update ankkadatabase"]);
    assert!(
        matches!(&actions[0], Action::Update { child, .. } if child.body["spec"] == json!({ "credentialGeneration": 2 }))
    );

    world.database.as_mut().expect("a database").asked = 2;
    world.children = world.decided();
    assert_eq!(told(&world.decide().actions), [] as [&str; 0], "the Secret still holds the login of before");
    assert_eq!(world.template(), template);
    world.database.as_mut().expect("a database").in_place = 2;
    assert_eq!(told(&world.decide().actions), ["update deployment"]);
    let annotations = &world.body(ChildKind::Deployment)["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["ankka.dev/database-credential-generation"], "2");
}

#[test]
fn what_was_asked_for_is_never_taken_back() {
    // Deleted and applied again, a service knows of no command; its database does.
    let mut world = World::cart(json!({}));
    let database = world.database.as_mut().expect("a database");
    (database.asked, database.in_place) = (3, 3);
    assert_eq!(world.body(ChildKind::Database)["spec"], json!({ "credentialGeneration": 3 }));
    world.service.spec.database = Some(DatabaseCommands { credential_generation: 1 });
    world.children = world.decided();
    assert_eq!(world.decide().actions, []);
}

#[test]
fn a_request_that_somebody_wrote_by_hand_becomes_ours() {
    let mut world = World::cart(json!({})).settled(1);
    world.children.insert(ChildKind::Database, crate::support::stranger());
    assert_eq!(told(&world.decide().actions), ["update ankkadatabase"]);
}

#[test]
fn data_from_before_the_service_is_recovered() {
    let mut world = World::cart(json!({})).settled(1);
    let at = |time: &str| serde_json::from_value(json!(time)).expect("a time");
    world.service.metadata.creation_timestamp = at("2026-11-30T10:00:00Z");
    assert_eq!(said(&world)[2..], ["provisioned", "True:Provisioned"]);
    world.service.metadata.creation_timestamp = at("2026-11-30T10:00:01Z");
    assert_eq!(said(&world)[2..], ["recovered existing data", "True:Recovered"]);
}
