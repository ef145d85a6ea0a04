//! What a service can do with what it was given, and what nobody can.

use ankka_testing::api::Api;
use tokio_postgres::error::SqlState;

use crate::{
    controller::{Administrator, Controller, ORDINARY, SECRET, ask_for, credential, enter, namespace, shop},
    postgres::{Server, login},
};

/// Services whose databases would be one if names were quoted, joined or cut carelessly.
fn alike() -> Vec<(String, String)> {
    let pair = |project: &str, service: &str| (project.to_owned(), service.to_owned());
    let long = format!("{}x", "s".repeat(61));
    vec![
        pair("a", "b-c"),
        pair("a-b", "c"),
        pair("shop-eu", "order-intake"),
        pair("shop", "eu-order-intake"),
        pair("select", "user"),
        pair("postgres", "postgres"),
        pair(&"p".repeat(46), &format!("{long}a")),
        pair(&"p".repeat(46), &format!("{long}b")),
        pair(&"p".repeat(45), &format!("{long}b")),
    ]
}

fn secret(project: &str, service: &str) -> String {
    format!("/api/v1/namespaces/ankka-{project}/secrets/{service}-db")
}

async fn reach_only_their_own(administrator: Administrator) {
    let server = Server::start();
    server.run(&[ORDINARY]).await;
    let api = Api::without_others();
    for (project, service) in alike() {
        let path = format!("/api/v1/namespaces/ankka-{project}");
        if api.get(&path).is_none() {
            api.put(&path, namespace(&project));
        }
        ask_for(&api, &project, &service);
    }
    Controller::of(&api, server.port, administrator, &[]).await.settle().await;

    for (project, service) in alike() {
        let own = enter(&api, &secret(&project, &service)).await.expect("its own database lets it in");
        own.batch_execute("CREATE TABLE mine (whose text); CREATE SCHEMA x; CREATE TABLE x.t (i int)")
            .await
            .expect("it owns it");
        own.batch_execute(&format!("INSERT INTO mine VALUES ('{project}/{service}')")).await.expect("it may write");
        own.batch_execute("CREATE EXTENSION pgcrypto").await.expect("a trusted extension");
        let denied = own.batch_execute("CREATE ROLE another").await.expect_err("it administers nothing");
        assert_eq!(denied.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
    }
    for (project, service) in alike() {
        let own = enter(&api, &secret(&project, &service)).await.expect("it is let in");
        let row = own.query_one("SELECT string_agg(whose, ' ') FROM mine", &[]).await.expect("its own rows");
        assert_eq!(row.get::<_, String>(0), format!("{project}/{service}"));
        let mine = credential(&api, &secret(&project, &service));
        let databases = alike().into_iter().map(|(p, s)| credential(&api, &secret(&p, &s))["ANKKA_DB_NAME"].clone());
        for other in databases.filter(|name| *name != mine["ANKKA_DB_NAME"]).chain(["ankka".to_owned()]) {
            let refused = login(server.port, &other, &mine["ANKKA_DB_USER"], &mine["ANKKA_DB_PASSWORD"]).await;
            let refused = refused.err().unwrap_or_else(|| panic!("{project}/{service} is let into {other}"));
            assert_eq!(refused.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{other}");
        }
    }
    let names = "SELECT count(*) FROM pg_database WHERE datname LIKE '%.%'";
    assert_eq!(server.ask(names).await, alike().len().to_string());
}

#[tokio::test]
async fn services_with_names_alike_reach_only_their_own_data() {
    reach_only_their_own(Administrator::Superuser).await;
}

#[tokio::test]
async fn and_so_they_do_when_the_administrator_is_no_superuser() {
    reach_only_their_own(Administrator::Ordinary).await;
}

#[tokio::test]
async fn what_a_reissued_login_makes_belongs_to_the_owner() {
    let server = Server::start();
    server.run(&[ORDINARY]).await;
    let api = shop();
    ask_for(&api, "shop", "cart");
    let controller = Controller::of(&api, server.port, Administrator::Ordinary, &[]).await;
    controller.settle().await;
    enter(&api, SECRET).await.expect("let in").batch_execute("CREATE TABLE before (i int)").await.expect("made");
    api.edit(crate::controller::DATABASE, |database| database["spec"]["credentialGeneration"] = 3.into());
    controller.settle().await;
    let later = enter(&api, SECRET).await.expect("the new login is let in");
    later
        .batch_execute("ALTER TABLE before ADD j int; CREATE TABLE after (i int)")
        .await
        .expect("it acts as the owner");
    let row =
        later.query_one("SELECT tableowner, session_user::text FROM pg_tables WHERE tablename = 'after'", &[]).await;
    let row = row.expect("one table");
    assert_eq!((row.get::<_, String>(0), row.get::<_, String>(1)), ("shop.cart".to_owned(), "shop.cart#3".to_owned()));
}

#[tokio::test]
async fn the_logins_of_one_service_are_found_by_an_index_however_many_roles_there_are() {
    let server = Server::with(&[
        "session_preload_libraries=auto_explain",
        "auto_explain.log_min_duration=0",
        // A plan that can avoid reading a whole table does.
        "enable_seqscan=off",
        "logging_collector=on",
        "log_directory=log",
        "log_filename=all.log",
    ]);
    let api = shop();
    ask_for(&api, "shop", "cart");
    Controller::start(&api, server.port).await.settle().await;
    let log = std::fs::read_to_string(server.data().join("log/all.log")).expect("a log");
    let range = "Index Cond: ((rolname >= 'shop.cart'::name) AND (rolname < 'shop.cart~'::name))";
    assert!(log.contains(range), "{log}");
}

#[tokio::test]
async fn no_password_reaches_the_servers_log() {
    let server =
        Server::with(&["log_statement=all", "logging_collector=on", "log_directory=log", "log_filename=all.log"]);
    let api = shop();
    ask_for(&api, "shop", "cart");
    Controller::start(&api, server.port).await.settle().await;
    let log = std::fs::read_to_string(server.data().join("log/all.log")).expect("a log");
    assert!(log.contains("CREATE ROLE \"shop.cart\""), "{log}");
    assert!(!log.contains(&credential(&api, SECRET)["ANKKA_DB_PASSWORD"]));
    let key = server.superuser("ankka").await.query_one("SELECT encode(key, 'hex') FROM ankka.password_key", &[]).await;
    assert!(!log.contains(&key.expect("one key").get::<_, String>(0)));
}
