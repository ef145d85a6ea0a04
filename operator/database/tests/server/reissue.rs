//! Logins that follow one another.

use std::time::Duration;

use crate::{
    controller::{Administrator, Controller, DATABASE, SECRET, ask_for, credential, enter, phase, shop, status},
    postgres::{Server, login},
};

#[tokio::test]
async fn the_old_login_ends_at_its_recorded_deadline_which_never_moves() {
    let server = Server::start();
    let api = shop();
    ask_for(&api, "shop", "cart");
    let grace = [("ANKKA_DATABASE_CREDENTIAL_GRACE_SECONDS", "3")];
    let controller = Controller::of(&api, server.port, Administrator::Superuser, &grace).await;
    controller.settle().await;
    let before = credential(&api, SECRET);
    let old = || login(server.port, "shop.cart", "shop.cart", &before["ANKKA_DB_PASSWORD"]);

    api.edit(DATABASE, |database| database["spec"]["credentialGeneration"] = 1.into());
    controller.settle().await;
    assert_eq!(status(&api)["credentialGeneration"], 1);
    assert_eq!(status(&api)["login"], "shop.cart#1");
    let recorded = status(&api)["formerLogins"].clone();
    assert_eq!(recorded[0]["login"], "shop.cart", "{recorded}");
    let ends_at: jiff::Timestamp = recorded[0]["endsAt"].as_str().expect("an end").parse().expect("RFC 3339");
    old().await.expect("until then it is let in");

    api.edit(DATABASE, |database| database["spec"]["credentialGeneration"] = 2.into());
    controller.settle().await;
    assert_eq!(status(&api)["formerLogins"][0], recorded[0], "the end of the first has not moved");
    assert_eq!(status(&api)["formerLogins"][1]["login"], "shop.cart#1");

    while jiff::Timestamp::now() <= ends_at {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    old().await.expect_err("it has ended");
    enter(&api, SECRET).await.expect("the latest is let in");
    assert_eq!(phase(&api), "provisioned");
}

#[tokio::test]
async fn a_password_that_somebody_changed_is_put_right() {
    let server = Server::start();
    let api = shop();
    ask_for(&api, "shop", "cart");
    let controller = Controller::start(&api, server.port).await;
    controller.settle().await;
    let before = credential(&api, SECRET);
    server.run(&["ALTER ROLE \"shop.cart\" PASSWORD 'changed'"]).await;
    enter(&api, SECRET).await.expect_err("it was changed");
    controller.look_at("cart");
    controller.settle().await;
    assert_eq!(credential(&api, SECRET), before);
    enter(&api, SECRET).await.expect("it is let in again");
}

#[tokio::test]
async fn a_role_made_by_hand_before_is_taken_over() {
    let server = Server::start();
    server.run(&["CREATE ROLE \"shop.cart\" PASSWORD 'of somebody'"]).await;
    let api = shop();
    ask_for(&api, "shop", "cart");
    Controller::start(&api, server.port).await.settle().await;
    assert_eq!(phase(&api), "provisioned", "{:#}", status(&api));
    enter(&api, SECRET).await.expect("it is let in");
}

#[tokio::test]
async fn under_another_key_the_next_login_is_issued_so_that_instances_are_replaced() {
    let server = Server::start();
    let api = shop();
    ask_for(&api, "shop", "cart");
    Controller::start(&api, server.port).await.settle().await;
    let before = credential(&api, SECRET);
    server.run(&["DROP DATABASE ankka WITH (FORCE)"]).await;
    let controller = Controller::start(&api, server.port).await;
    controller.look_at("cart");
    controller.settle().await;
    assert_eq!((status(&api)["credentialGeneration"].clone(), phase(&api)), (1.into(), "provisioned".to_owned()));
    enter(&api, SECRET).await.expect("the next login is let in");
    login(server.port, "shop.cart", "shop.cart", &before["ANKKA_DB_PASSWORD"])
        .await
        .expect("and the one before, for now");
    assert_eq!(status(&api)["formerLogins"][0]["login"], "shop.cart");
}

#[tokio::test]
async fn a_password_key_that_is_lost_while_the_controller_runs_is_made_anew() {
    let server = Server::start();
    let api = shop();
    ask_for(&api, "shop", "cart");
    let controller = Controller::start(&api, server.port).await;
    controller.settle().await;
    server.superuser("ankka").await.batch_execute("DROP SCHEMA ankka CASCADE").await.expect("it goes");
    controller.look_at("cart");
    controller.settle().await;
    assert_eq!(status(&api)["login"], "shop.cart#1", "{:#}", status(&api));
    enter(&api, SECRET).await.expect("the next login is let in");
}

#[tokio::test]
async fn a_connection_given_to_everybody_is_taken_back() {
    let server = Server::start();
    let api = shop();
    ask_for(&api, "shop", "cart");
    let controller = Controller::start(&api, server.port).await;
    controller.settle().await;
    enter(&api, SECRET)
        .await
        .expect("let in")
        .batch_execute("GRANT CONNECT ON DATABASE \"shop.cart\" TO PUBLIC")
        .await
        .expect("an owner may");
    controller.look_at("cart");
    controller.settle().await;
    assert_eq!(server.ask("SELECT has_database_privilege('public', 'shop.cart', 'CONNECT')").await, "f");
}
