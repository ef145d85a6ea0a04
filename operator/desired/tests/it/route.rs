//! The address outside the cluster: who gets one, and what the status says about it.

use ankka_crds::AnkkaService;
use ankka_desired::{ChildKind, Claim, HttpRoute, RouteState};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::support::{World, seen, stranger, told};

const URL: &str = "https://cart-shop.apps.example.com";
const INSIDE: &str = "http://cart.ankka-shop.svc.cluster.local:9000";

/// An exposed service of which everything is there but its route.
fn exposed() -> World {
    let mut world = World::cart(json!({})).settled(1);
    world.service.spec.exposed = true;
    world
}

/// One whose route is there, and whose gateway says this about it.
fn routed(parents: &Value) -> World {
    let mut world = exposed();
    let child = world.child(ChildKind::HttpRoute).expect("a route");
    world.children.insert(child.kind, seen(&child, world.service.metadata.uid.as_deref().expect("a UID")));
    world.route = Some(state("2026-11-30T10:00:00Z", parents));
    world
}

fn state(created: &str, parents: &Value) -> RouteState {
    let metadata = json!({ "generation": 2, "creationTimestamp": created });
    let route = json!({ "metadata": metadata, "status": { "parents": parents } });
    RouteState::of(&serde_json::from_value::<HttpRoute>(route).expect("a route"))
}

fn listener(conditions: &Value) -> Value {
    json!([{
        "parentRef": { "group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "ankka-gateway", "name": "ankka", "sectionName": "https" },
        "controllerName": "example.com/gateway",
        "conditions": conditions,
    }])
}

fn condition(type_: &str, status: &str, observed: Option<i64>) -> Value {
    json!({ "type": type_, "status": status, "reason": format!("{type_}Reason"), "message": "as it is", "observedGeneration": observed })
}

fn accepted() -> Value {
    listener(&json!([condition("Accepted", "True", Some(2)), condition("ResolvedRefs", "True", Some(2))]))
}

/// The route's word, and the address.
fn said(world: &World) -> (String, Option<String>) {
    let status = world.decide().status;
    (status.route.expect("a word"), status.address)
}

#[test]
fn a_route_is_accepted_only_when_both_conditions_are_true_of_what_it_is_now() {
    let both = |a: (&str, Option<i64>), r: (&str, Option<i64>)| {
        listener(&json!([condition("Accepted", a.0, a.1), condition("ResolvedRefs", r.0, r.1)]))
    };
    let rejected = |type_: &str| format!("rejected: {type_}Reason: as it is");
    let mut elsewhere = accepted();
    elsewhere[0]["parentRef"]["sectionName"] = json!("other");
    let table = [
        (json!([]), "pending".to_owned()),
        (listener(&json!([])), "pending".to_owned()),
        (listener(&json!([condition("Accepted", "True", Some(2))])), "pending".to_owned()),
        (both(("True", Some(2)), ("True", Some(2))), "accepted".to_owned()),
        (both(("True", None), ("True", None)), "accepted".to_owned()),
        (both(("True", Some(2)), ("Unknown", Some(2))), "pending".to_owned()),
        (both(("True", Some(1)), ("True", Some(2))), "pending".to_owned()),
        (both(("False", Some(1)), ("True", Some(2))), "pending".to_owned()),
        (both(("False", Some(2)), ("True", Some(2))), rejected("Accepted")),
        (both(("True", Some(2)), ("False", Some(2))), rejected("ResolvedRefs")),
        (both(("False", Some(2)), ("False", Some(2))), rejected("Accepted")),
        (elsewhere, "pending".to_owned()),
    ];
    for (parents, word) in table {
        let world = routed(&parents);
        assert_eq!(told(&world.decide().actions), [] as [&str; 0]);
        let address = if word.starts_with("rejected") { INSIDE } else { URL };
        assert_eq!(said(&world), (word, Some(address.to_owned())), "{parents}");
    }
}

#[test]
fn the_condition_goes_with_the_word_and_a_rejection_is_the_detail_of_a_service_that_stays_ready() {
    let table = [
        (accepted(), ("True", "Accepted", "")),
        (json!([]), ("Unknown", "Pending", "")),
        (
            listener(&json!([condition("Accepted", "False", Some(2))])),
            ("False", "Rejected", "AcceptedReason: as it is"),
        ),
    ];
    for (parents, expected) in table {
        let status = routed(&parents).decide().status;
        let found = status.conditions.iter().find(|condition| condition.type_ == "RouteAccepted").expect("a condition");
        assert_eq!((found.status.as_str(), found.reason.as_str(), found.message.as_str()), expected);
        assert_eq!(found.observed_generation, Some(1));
        assert_eq!(status.lifecycle.as_deref(), Some("Ready"));
        let detail = (expected.0 == "False").then(|| "route rejected: AcceptedReason: as it is".to_owned());
        assert_eq!(status.detail, detail);
    }
    let closed = World::cart(json!({})).settled(1).decide().status;
    assert_eq!((closed.route, closed.address.as_deref()), (None, Some(INSIDE)));
    assert!(closed.conditions.iter().all(|condition| condition.type_ != "RouteAccepted"));
}

#[test]
fn a_route_that_is_about_to_be_written_is_pending() {
    let world = exposed();
    assert_eq!(told(&world.decide().actions), ["create httproute"]);
    assert_eq!(said(&world), ("pending".to_owned(), Some(URL.to_owned())));
    let mut moved = routed(&accepted());
    moved.settings.gateway.section = "public".to_owned();
    assert_eq!(told(&moved.decide().actions), ["update httproute"]);
    assert_eq!(said(&moved).0, "pending");
}

#[test]
fn what_stands_in_the_way_is_said_and_everything_else_runs() {
    type Change = fn(&mut World);
    let table: [(Change, &str); 4] = [
        (
            |world| world.settings.domain = None,
            "rejected: the operator has no base domain (ANKKA_BASE_DOMAIN); no route can be rendered",
        ),
        (
            |world| world.service.spec.service.http = Some(false),
            "rejected: service 'cart' serves no HTTP, so it cannot be exposed",
        ),
        (
            |world| world.routes_served = false,
            "rejected: the cluster has no Gateway API (gateway.networking.k8s.io/v1 HTTPRoute), so no route can be made; once an administrator has installed it, the route is made without further ado",
        ),
        (
            |world| world.rivals = vec![claim("2020-01-01T00:00:00Z", "a", Some("2020-01-01T00:00:00Z"))],
            "rejected: the host name 'cart-shop.apps.example.com' belongs to another service, which was exposed earlier; a service of another name gets an address of its own",
        ),
    ];
    for (change, word) in table {
        let mut world = World::cart(json!({}));
        world.service.spec.exposed = true;
        change(&mut world);
        let actions = told(&world.decide().actions);
        assert!(actions.contains(&"create deployment".to_owned()), "{actions:?}");
        assert!(!actions.contains(&"create httproute".to_owned()), "{actions:?}");
        let status = world.decide().status;
        assert_eq!(status.route.as_deref(), Some(word));
        assert_ne!(status.address.as_deref(), Some(URL));

        let mut before = routed(&accepted());
        change(&mut before);
        assert!(told(&before.decide().actions).contains(&"delete httproute".to_owned()), "{word}");
    }
    let mut long = World::new(&json!({ "name": "a".repeat(63), "exposed": true, "service": { "image": "i:1" } }));
    assert!(said(&long).0.contains("is 68 characters, over the 63 character limit"));
    long.service.spec.exposed = false;
    assert_eq!(long.decide().status.route, None);
}

/// What a service claims that was made at `created`, and whose route at `route`.
fn claim(created: &str, uid: &str, route: Option<&str>) -> Claim {
    let mut service = AnkkaService::default();
    service.spec.exposed = true;
    service.metadata.creation_timestamp = Some(Time(created.parse().expect("a time")));
    service.metadata.uid = Some(uid.to_owned());
    Claim::of(&service, route.map(|created| state(created, &json!([]))).as_ref()).expect("a claim")
}

#[test]
fn of_two_claims_the_older_route_wins_else_the_older_service_else_the_lower_uid() {
    let order = [
        claim("2026-03-01T00:00:00Z", "z", Some("2026-01-01T00:00:00Z")),
        claim("2026-01-01T00:00:00Z", "b", Some("2026-02-01T00:00:00Z")),
        claim("2026-01-01T00:00:00Z", "c", Some("2026-02-01T00:00:00Z")),
        claim("2025-01-01T00:00:00Z", "z", None),
        claim("2026-01-01T00:00:00Z", "a", None),
        claim("2026-01-01T00:00:00Z", "b", None),
    ];
    assert!(order.is_sorted(), "{order:#?}");
    for (place, own) in order.iter().enumerate() {
        for (other, rival) in order.iter().enumerate().filter(|(other, _)| *other != place) {
            assert_eq!(rival < own, other < place);
        }
    }
    let mut service = AnkkaService::default();
    assert_eq!(Claim::of(&service, None), None, "not exposed");
    service.spec.exposed = true;
    service.spec.service.http = Some(false);
    assert_eq!(Claim::of(&service, None), None, "serves no HTTP");
    assert!(Claim::of(&service, Some(&RouteState::default())).is_some(), "a route that is there holds its name");
}

#[test]
fn a_later_claim_changes_nothing() {
    let mut world = routed(&accepted());
    world.rivals = vec![
        claim("2020-01-01T00:00:00Z", "0", None),
        claim("2020-01-01T00:00:00Z", "1", Some("2026-12-01T00:00:00Z")),
    ];
    assert_eq!(told(&world.decide().actions), [] as [&str; 0]);
    assert_eq!(said(&world).0, "accepted");
}

#[test]
fn exposing_changes_no_other_object() {
    let closed = World::cart(json!({}));
    let mut open = World::cart(json!({}));
    open.service.spec.exposed = true;
    let mut wanted = open.wanted();
    assert_eq!(wanted.pop().map(|child| child.kind), Some(ChildKind::HttpRoute));
    assert_eq!(wanted, closed.wanted());
}

#[test]
fn unexposing_takes_away_our_route_and_nobody_elses() {
    let mut world = routed(&accepted());
    world.service.spec.exposed = false;
    assert_eq!(told(&world.decide().actions), ["delete httproute"]);
    world.children.insert(ChildKind::HttpRoute, stranger());
    assert_eq!(world.decide().actions, []);
}

#[test]
fn a_pause_keeps_the_route() {
    let mut world = routed(&accepted());
    world.service.spec.paused = true;
    assert_eq!(told(&world.decide().actions), ["update deployment"]);
    assert_eq!(said(&world), ("accepted".to_owned(), Some(URL.to_owned())));
}

#[test]
fn a_service_that_cannot_be_rendered_keeps_its_route_until_it_is_unexposed() {
    let mut world = routed(&accepted());
    world.service.spec.service.image = None;
    assert_eq!(world.decide().actions, []);
    assert_eq!(said(&world), ("accepted".to_owned(), Some(URL.to_owned())));
    world.service.spec.exposed = false;
    assert_eq!(told(&world.decide().actions), ["delete httproute"]);

    let mut without = exposed();
    without.service.spec.service.image = None;
    assert_eq!(without.decide().actions, []);
    assert_eq!(said(&without).0, "pending");
    assert_ne!(said(&without).1.as_deref(), Some(URL), "nothing answers there");
}

#[test]
fn a_strangers_route_fails_the_service_and_is_the_routes_rejection() {
    let mut world = exposed();
    world.children.insert(ChildKind::HttpRoute, stranger());
    let why = "an httproute named 'cart' already exists in 'ankka-shop' and is not managed by ankka";
    let status = world.decide().status;
    assert_eq!(status.detail.as_deref(), Some(why));
    assert_eq!(status.route, Some(format!("rejected: {why}")));
    assert_eq!((status.lifecycle.as_deref(), status.address.as_deref()), (Some("Failed"), Some(INSIDE)));
}
