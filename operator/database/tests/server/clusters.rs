//! Two clusters, and one database server.

use ankka_testing::api::Api;

use crate::{
    controller::{Administrator, Controller, DATABASE, SECRET, ask_for, credential, enter, phase, shop, status},
    postgres::Server,
};

/// A cluster that wants the same database as any other, and its controller.
async fn cluster(server: &Server, id: &str, take_over: Option<&str>) -> (Api, Controller) {
    let api = shop();
    ask_for(&api, "shop", "cart");
    let controller = controller(&api, server, id, take_over).await;
    (api, controller)
}

async fn controller(api: &Api, server: &Server, id: &str, take_over: Option<&str>) -> Controller {
    let further: Vec<_> = [Some(("CLUSTER", id)), take_over.map(|former| ("ANKKA_DATABASE_TAKE_OVER", former))]
        .into_iter()
        .flatten()
        .collect();
    Controller::of(api, server.port, Administrator::Superuser, &further).await
}

/// What stops a controller until somebody has decided.
async fn refused(api: &Api, controller: &Controller, owner: &str) {
    controller.look_at("cart");
    controller.pass().await;
    assert_eq!(phase(api), "database provisioning failed");
    let detail = status(api)["detail"].as_str().expect("a detail").to_owned();
    assert!(
        detail.starts_with(&format!("the database server is that of cluster {owner} and this is cluster ")),
        "{detail}"
    );
    assert!(detail.ends_with(&format!("set database.takeOver in the chart's values to {owner}")), "{detail}");
    assert_eq!(status(api)["conditions"][0]["reason"], "OtherCluster");
}

#[tokio::test]
async fn a_second_cluster_gets_no_database_of_the_firsts() {
    let server = Server::start();
    let (first, controller_of_first) = cluster(&server, "first", None).await;
    controller_of_first.settle().await;
    let before = credential(&first, SECRET);

    let (second, controller_of_second) = cluster(&server, "second", None).await;
    refused(&second, &controller_of_second, "first").await;
    assert_eq!(second.get(SECRET), None);
    assert_eq!(status(&second).get("database"), None, "it is not written down as its own");

    controller_of_first.look_at("cart");
    controller_of_first.settle().await;
    assert_eq!((phase(&first).as_str(), credential(&first, SECRET)), ("provisioned", before));
}

#[tokio::test]
async fn a_cluster_that_takes_the_place_of_another_recovers_its_data() {
    let server = Server::start();
    let (lost, controller_of_lost) = cluster(&server, "lost", None).await;
    controller_of_lost.settle().await;
    let cart = enter(&lost, SECRET).await.expect("it is let in");
    cart.batch_execute("CREATE TABLE items (name text); INSERT INTO items VALUES ('milk')").await.expect("data");

    let (rebuilt, controller_of_rebuilt) = cluster(&server, "rebuilt", Some("another")).await;
    refused(&rebuilt, &controller_of_rebuilt, "lost").await;
    drop(controller_of_rebuilt);
    let controller_of_rebuilt = controller(&rebuilt, &server, "rebuilt", Some("lost")).await;
    controller_of_rebuilt.settle().await;
    assert_eq!(phase(&rebuilt), "recovered existing data", "{:#}", status(&rebuilt));
    assert_eq!(credential(&rebuilt, SECRET), credential(&lost, SECRET));
    let found = enter(&rebuilt, SECRET).await.expect("it is let in").query_one("SELECT name FROM items", &[]).await;
    assert_eq!(found.expect("the data").get::<_, String>(0), "milk");

    // The other one was not gone, after all: it leaves everything as it is, and what runs there goes on.
    refused(&lost, &controller_of_lost, "rebuilt").await;
    lost.edit(DATABASE, |database| database["spec"]["credentialGeneration"] = 1.into());
    controller_of_lost.pass().await;
    assert_eq!(server.ask("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'shop.cart%'").await, "1");
    enter(&lost, SECRET).await.expect("it is let in");
}

#[tokio::test]
async fn a_server_of_before_is_claimed_by_who_comes_first_however_many_connections_it_has() {
    let server = Server::start();
    let (api, controller_of_first) = cluster(&server, "first", None).await;
    controller_of_first.settle().await;
    server.superuser("ankka").await.batch_execute("DROP TABLE ankka.installation").await.expect("it goes");
    controller_of_first.look_at("cart");
    controller_of_first.settle().await;
    assert_eq!(phase(&api), "provisioned");
    let claimed = server.superuser("ankka").await.query_one("SELECT cluster FROM ankka.installation", &[]).await;
    assert_eq!(claimed.expect("one row").get::<_, String>(0), "first");
}
