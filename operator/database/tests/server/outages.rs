//! A server that is down or refuses, strangers, and places where nothing may be made.

use std::time::{Duration, Instant};

use ankka_testing::api::Api;
use serde_json::json;

use crate::{
    controller::{
        Administrator, Controller, DATABASE, ORDINARY, SECRET, ask_for, enter, namespace, phase, shop, status,
    },
    postgres::Server,
};

fn detail(api: &Api) -> String {
    status(api)["detail"].as_str().unwrap_or_default().to_owned()
}

fn condition(api: &Api, type_: &str) -> String {
    let status = status(api);
    let all = status["conditions"].as_array().into_iter().flatten();
    let found = all.filter(|condition| condition["type"] == type_).map(|condition| condition["status"].clone());
    found.map(|status| status.as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn a_server_that_is_down_is_waited_for_and_what_was_written_stays() {
    let mut server = Server::start();
    let api = shop();
    ask_for(&api, "shop", "cart");
    let controller = Controller::start(&api, server.port).await;
    controller.settle().await;
    server.down();
    controller.look_at("cart");
    controller.pass().await;
    assert_eq!(phase(&api), "waiting for database");
    assert!(detail(&api).contains(&format!("127.0.0.1:{}", server.port)), "{}", detail(&api));
    assert!(detail(&api).contains("onnection"), "{}", detail(&api));
    assert_eq!(status(&api)["secret"], "cart-db", "instances may start");
    assert_eq!((condition(&api, "Ready"), condition(&api, "Reconciling")), ("Unknown".to_owned(), "True".to_owned()));
    let told = api.versions();
    controller.pass().await;
    controller.pass().await;
    assert_eq!(api.versions(), told, "the same reason is not written again");
    ask_for(&api, "shop", "mail");

    server.up();
    controller.settle().await;
    assert_eq!((phase(&api), detail(&api)), ("provisioned".to_owned(), String::new()));
    assert_eq!((condition(&api, "Ready"), condition(&api, "Reconciling")), ("True".to_owned(), String::new()));
    enter(&api, "/api/v1/namespaces/ankka-shop/secrets/mail-db").await.expect("asked for meanwhile");
}

#[tokio::test]
async fn a_server_that_goes_down_is_noticed_and_no_pass_tries_it_until_it_is_back() {
    let mut server = Server::start();
    let api = shop();
    for service in ["cart", "mail", "till"] {
        ask_for(&api, "shop", service);
    }
    let mut controller = Controller::start(&api, server.port).await;
    controller.settle().await;
    controller.monitor();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    server.down();
    controller.asked().await;
    // Whoever connects now gets no answer.
    let silent = std::net::TcpListener::bind(("127.0.0.1", server.port)).expect("the port is free");
    let started = Instant::now();
    controller.settle().await;
    controller.look_at("cart");
    controller.settle().await;
    assert!(started.elapsed() < Duration::from_secs(4), "a pass waited for an answer: {:?}", started.elapsed());
    for service in ["cart", "mail", "till"] {
        let path = format!("/apis/ankka.dev/v1alpha1/namespaces/ankka-shop/ankkadatabases/{service}");
        let status = &api.get(&path).expect("stored")["status"];
        assert_eq!(status["phase"], "waiting for database", "{service}");
        assert!(status["detail"].as_str().is_some_and(|why| why.contains("127.0.0.1:")), "{status}");
    }
    drop(silent);
    server.up();
    controller.asked().await;
    controller.settle().await;
    assert_eq!((phase(&api), detail(&api)), ("provisioned".to_owned(), String::new()));
}

#[tokio::test]
async fn an_administrator_that_is_refused_or_may_too_little_is_a_failure_with_its_reason() {
    let server = Server::start();
    let api = shop();
    ask_for(&api, "shop", "cart");
    let stranger = Controller::of(&api, server.port, Administrator::Ordinary, &[]).await;
    stranger.pass().await;
    assert_eq!(phase(&api), "database provisioning failed");
    assert!(detail(&api).ends_with("password authentication failed for user \"admin\""), "{}", detail(&api));
    assert_eq!(condition(&api, "Stalled"), "True");

    server.run(&[ORDINARY, "CREATE DATABASE ankka OWNER admin", "ALTER ROLE admin NOCREATEDB NOCREATEROLE"]).await;
    stranger.pass().await;
    assert!(detail(&api).starts_with("failed to create role 'shop.cart' at 127.0.0.1:"), "{}", detail(&api));
    assert!(detail(&api).contains("permission denied"), "{}", detail(&api));
    assert!(api.get(SECRET).is_none());

    server.run(&["ALTER ROLE admin CREATEDB CREATEROLE"]).await;
    stranger.settle().await;
    assert_eq!(phase(&api), "provisioned");
}

#[tokio::test]
async fn a_strangers_secret_is_never_touched() {
    let server = Server::start();
    let api = shop();
    let metadata = json!({"name": "cart-db", "namespace": "ankka-shop"});
    api.put(SECRET, json!({"kind": "Secret", "metadata": metadata, "type": "Opaque", "data": {"mine": "eA=="}}));
    let stored = api.get(SECRET);
    ask_for(&api, "shop", "cart");
    let controller = Controller::start(&api, server.port).await;
    controller.pass().await;
    assert_eq!(phase(&api), "database provisioning failed");
    assert_eq!(
        detail(&api),
        "a secret named 'cart-db' already exists in 'ankka-shop' and is not managed by ankka; rename or delete it"
    );
    assert_eq!(api.get(SECRET), stored);
    assert_eq!(status(&api)["secret"], json!(null));
    api.delete(SECRET);
    controller.settle().await;
    assert_eq!(phase(&api), "provisioned");
}

#[tokio::test]
async fn a_strangers_database_is_never_touched() {
    let server = Server::start();
    server.run(&["CREATE DATABASE \"shop.cart\""]).await;
    let api = shop();
    ask_for(&api, "shop", "cart");
    Controller::start(&api, server.port).await.pass().await;
    assert_eq!(phase(&api), "database provisioning failed");
    assert!(
        detail(&api).starts_with("database 'shop.cart' belongs to role 'the super user' and is not managed by ankka")
    );
    assert_eq!(server.ask("SELECT has_database_privilege('public', 'shop.cart', 'CONNECT')").await, "t");
}

#[tokio::test]
async fn a_database_that_is_gone_is_not_replaced_by_an_empty_one() {
    let server = Server::start();
    let api = shop();
    ask_for(&api, "shop", "cart");
    let controller = Controller::start(&api, server.port).await;
    controller.settle().await;
    server.run(&["DROP DATABASE \"shop.cart\""]).await;
    controller.look_at("cart");
    controller.pass().await;
    assert_eq!(phase(&api), "database provisioning failed");
    assert!(detail(&api).contains("no longer on the server"), "{}", detail(&api));
    assert!(detail(&api).contains("'ankka services restart cart'"), "{}", detail(&api));
    server.run(&["CREATE DATABASE \"shop.cart\" OWNER \"shop.cart\""]).await;
    controller.settle().await;
    assert_eq!(phase(&api), "provisioned", "restored");
}

#[tokio::test]
async fn what_a_standby_says_decides_nothing() {
    let mut server = Server::start();
    let api = shop();
    ask_for(&api, "shop", "cart");
    let controller = Controller::start(&api, server.port).await;
    controller.settle().await;
    // A standby that lags behind has not heard of the database yet.
    server.run(&["DROP DATABASE \"shop.cart\"", "ALTER SYSTEM SET default_transaction_read_only = on"]).await;
    server.down();
    server.up();
    controller.look_at("cart");
    controller.pass().await;
    assert_eq!(phase(&api), "waiting for database", "{}", detail(&api));
    assert!(detail(&api).ends_with("database does not allow writes"), "{}", detail(&api));
}

#[tokio::test]
async fn nothing_is_made_in_a_namespace_that_goes_or_is_no_projects() {
    let server = Server::start();
    let api = shop();
    let mut going = namespace("going");
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    api.put("/api/v1/namespaces/ankka-going", going);
    ask_for(&api, "going", "cart");
    api.put("/api/v1/namespaces/ankka-other", json!({"kind": "Namespace", "metadata": {"name": "ankka-other"}}));
    ask_for(&api, "other", "cart");
    let controller = Controller::start(&api, server.port).await;
    controller.settle().await;
    assert_eq!(server.ask("SELECT count(*) FROM pg_database WHERE datname LIKE '%.%'").await, "0");
    assert!(api.versions().into_keys().all(|path| !path.contains("/secrets/")));
    let path = |project: &str| format!("/apis/ankka.dev/v1alpha1/namespaces/ankka-{project}/ankkadatabases/cart");
    let other = api.get(&path("other")).expect("stored");
    assert_eq!(other["status"]["phase"], "database provisioning failed");
    assert_eq!(
        other["status"]["detail"],
        "namespace 'ankka-other' is not a project's: it is not labelled app.kubernetes.io/managed-by=ankka"
    );
    assert_eq!(api.get(&path("going")).expect("stored").get("status"), None);

    api.edit("/api/v1/namespaces/ankka-other", |other| other["metadata"] = namespace("other")["metadata"].clone());
    controller.settle().await;
    let other = api.get(&path("other")).expect("stored");
    assert_eq!(other["status"]["phase"], "provisioned");
}

#[tokio::test]
async fn without_the_lease_nothing_is_sent() {
    let server = Server::start();
    let api = shop();
    ask_for(&api, "shop", "cart");
    let controller = Controller::start(&api, server.port).await;
    controller.lose_lease();
    controller.pass().await;
    assert_eq!(api.writes(), []);
    assert_eq!(server.ask("SELECT count(*) FROM pg_database WHERE datname LIKE '%.%' OR datname = 'ankka'").await, "0");
    assert_eq!(api.get(DATABASE).expect("stored").get("status"), None);
}
