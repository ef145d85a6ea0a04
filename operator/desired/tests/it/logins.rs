//! Logins of before: until when they are accepted, and instances that are about to be shut out with one.

use ankka_crds::resources::FormerLogin;
use ankka_desired::{Cause, PodState, Problem};
use serde_json::{Value, json};

use crate::support::World;

const END: &str = "2026-11-30T13:00:00Z";

fn former(login: &str, ends_at: &str) -> FormerLogin {
    FormerLogin { login: login.to_owned(), ends_at: ends_at.to_owned() }
}

/// An instance as the API server holds it, made for a login of this generation.
fn instance(annotations: &Value, secret: &str) -> PodState {
    let pod = json!({
        "metadata": { "name": "cart-1", "labels": { "ankka.dev/service": "cart" }, "annotations": annotations },
        "spec": { "containers": [{ "name": "service", "env": [
            { "name": "ANKKA_DB_HOST", "value": "db" },
            { "name": "ANKKA_DB_USER", "valueFrom": { "secretKeyRef": { "name": secret, "key": "ANKKA_DB_USER" } } },
        ] }] },
    });
    PodState::of(&serde_json::from_value(pod).expect("a pod"))
}

fn made_for(generation: i64) -> PodState {
    PodState { login: Some(generation), ready: true, ..PodState::default() }
}

/// The second login is in place, the first one ends in an hour, and three instances run as these.
fn reissued(pods: Vec<PodState>) -> World {
    let mut world = World::cart(json!({ "resources": { "autoscaling": { "minInstances": 3 } } }));
    let database = world.database.as_mut().expect("a database");
    (database.asked, database.in_place) = (1, 1);
    database.former = vec![former("shop.cart", END)];
    World { pods, ..world.settled(3) }
}

/// Of which one cannot be replaced: the new one's image cannot be pulled.
fn stuck(pods: Vec<PodState>) -> World {
    let mut world = reissued(pods);
    let workload = world.workload.as_mut().expect("a workload");
    (workload.updated, workload.total, workload.complete) = (1, 4, false);
    let problem = Some(Problem::new(Cause::Image, "ImagePullBackOff: no"));
    world.pods.push(PodState { login: Some(1), problem, created: "later".to_owned(), ..PodState::default() });
    world
}

/// The logins that are still accepted, and what is said of the database.
fn said(world: &World) -> (Vec<String>, Option<String>) {
    let status = world.decide().status;
    let database = status.database.expect("a database");
    let condition = status.conditions.iter().find(|condition| condition.type_ == "DatabaseReady").expect("a condition");
    assert_eq!((condition.status.as_str(), &condition.message), ("True", &database.detail.clone().unwrap_or_default()));
    let logins = database.former_logins.iter().map(|login| format!("{} {}", login.login, login.ends_at)).collect();
    (logins, database.detail)
}

#[test]
fn an_instance_is_known_by_the_login_it_was_made_for() {
    assert_eq!(instance(&json!({}), "cart-db").login, Some(0));
    assert_eq!(instance(&json!({ "ankka.dev/database-credential-generation": "3" }), "cart-db").login, Some(3));
    assert_eq!(instance(&json!({}), "its-own").login, None, "a login that is not the platform's");
}

#[test]
fn a_login_of_before_is_listed_until_its_end_which_is_looked_at() {
    let mut world = reissued(vec![made_for(1)]);
    world.database.as_mut().expect("a database").former.insert(0, former("shop.cart#9", "2026-11-30T11:00:00Z"));
    assert_eq!(said(&world), (vec![format!("shop.cart {END}")], None));
    let at = world.decide().review.expect("a time to look again");
    assert_eq!(at.to_string(), END);
    world.now = at;
    assert_eq!(said(&world), (vec![], None));
    assert_eq!(world.decide().review, None);
}

#[test]
fn nothing_is_said_of_instances_that_are_being_replaced() {
    let mut world = reissued(vec![made_for(0), made_for(0), made_for(1)]);
    (world.workload.as_mut().expect("a workload").updated, world.workload.as_mut().expect("a workload").total) = (1, 3);
    assert_eq!(said(&world).1, None);
    world.service.spec.paused = true;
    assert_eq!(said(&world).1, None);
}

#[test]
fn instances_that_a_stuck_rollout_leaves_are_counted_with_the_end_of_their_login() {
    let going = PodState { terminating: true, ..made_for(0) };
    let mut world = stuck(vec![made_for(0), made_for(0), going]);
    let mend =
        "mend what holds up the rollout that replaces them, or go back with: ankka services rollback cart -p shop";
    let warning = format!("2 instances still use login 'shop.cart', which ends at {END}; {mend}");
    assert_eq!(said(&world), (vec![format!("shop.cart {END}")], Some(warning)));
    assert!(world.decide().status.detail.expect("a detail").starts_with("ImagePullBackOff"), "the cause stays");

    world.pods.remove(0);
    world.now = END.parse().expect("a time");
    let late =
        format!("1 instance still uses login 'shop.cart', which has let nobody in since it ended at {END}; {mend}");
    assert_eq!(said(&world), (vec![], Some(late)));
    world.pods.retain(|pod| pod.login == Some(1));
    assert_eq!(said(&world).1, None);
}

#[test]
fn the_login_that_ends_first_counts() {
    let mut world = stuck(vec![made_for(0), made_for(1)]);
    let database = world.database.as_mut().expect("a database");
    (database.asked, database.in_place) = (2, 2);
    database.former.push(former("shop.cart#1", "2026-11-30T12:30:00Z"));
    world.children = world.decided();
    let detail = said(&world).1.expect("a warning");
    assert!(
        detail.starts_with("2 instances still use login 'shop.cart#1', which ends at 2026-11-30T12:30:00Z"),
        "{detail}"
    );
}

#[test]
fn instances_that_a_service_that_cannot_be_run_leaves_are_told_of_too() {
    let mut world = reissued(vec![made_for(0)]);
    world.service.spec.service.runtime = Some("9.0.0".to_owned());
    let detail = said(&world).1.expect("a warning");
    assert!(detail.starts_with("1 instance still uses login 'shop.cart'"), "{detail}");
    assert_eq!(world.decide().review.expect("a time to look again").to_string(), END);

    // Stored under older rules: what was said of its database before is all there is to go by.
    world.service.status = Some(world.decide().status);
    world.service.spec.service.image = None;
    assert_eq!(said(&world).1.as_ref(), Some(&detail));
    world.pods.clear();
    assert_eq!(said(&world).1, None);
    world.service.spec.paused = true;
    assert_eq!(world.decide().status.lifecycle.as_deref(), Some("Paused"));
}

#[test]
fn a_service_that_brings_its_own_database_has_no_logins_of_before() {
    let mut world = stuck(vec![made_for(0)]);
    world.service.spec.service.env =
        serde_json::from_value(json!([{ "name": "ANKKA_DB_HOST", "value": "db" }])).expect("variables");
    let database = world.decide().status.database.expect("a database");
    assert_eq!((database.phase.as_str(), database.detail, database.former_logins), ("supplied", None, vec![]));
}
