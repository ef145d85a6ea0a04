//! Keys that follow one another, are lost, or are somebody else's.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::{
    controller::{Controller, Service, shop},
    garage::{Garage, S3},
    proxy::Proxy,
};

#[tokio::test]
async fn the_old_key_ends_at_its_recorded_deadline_which_never_moves_and_is_then_cleared_away() {
    let garage = Garage::start().await;
    let api = shop();
    let reports = Service::named("reports");
    reports.ask(&api);
    let token = garage.token().await;
    let grace = [("ANKKA_OBJECT_STORE_CREDENTIAL_GRACE_SECONDS", "3")];
    let controller = Controller::of(&api, garage.admin, &token, &grace).await;
    controller.settle().await;
    let (id, secret) = reports.credential(&api);
    let old = || garage.s3("shop.reports", (&id, &secret), S3::Put("a"));

    reports.reissue(&api, 1);
    controller.settle().await;
    let recorded = reports.status(&api)["formerKeys"].clone();
    assert_eq!(recorded[0]["accessKey"], id.as_str(), "{recorded}");
    assert_eq!(old().await, StatusCode::OK, "until then it is accepted");
    reports.reissue(&api, 2);
    controller.settle().await;
    let former = reports.status(&api)["formerKeys"].as_array().cloned().expect("a list");
    assert!(former.len() == 2 && former.contains(&recorded[0]), "the end of the first has not moved: {former:#?}");

    // Nobody is needed for it to end.
    drop(controller);
    let ends_at: jiff::Timestamp = recorded[0]["endsAt"].as_str().expect("an end").parse().expect("RFC 3339");
    while jiff::Timestamp::now() <= ends_at {
        assert_eq!(old().await, StatusCode::OK, "not before");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(old().await, StatusCode::FORBIDDEN, "it has ended");
    tokio::time::sleep(Duration::from_secs(4)).await;
    Controller::start(&api, garage.admin, &token).await.settle().await;
    assert_eq!(garage.keys("shop.reports").await.len(), 1, "one key is left");
    assert_eq!(reports.status(&api)["formerKeys"], json!(null));
    let (id, secret) = reports.credential(&api);
    assert_eq!(garage.s3("shop.reports", (&id, &secret), S3::Put("a")).await, StatusCode::OK);
}

#[tokio::test]
async fn reissues_in_a_row_leave_one_key_without_an_end_and_none_is_refused_meanwhile() {
    let garage = Garage::start().await;
    let api = shop();
    let reports = Service::named("reports");
    reports.ask(&api);
    let controller = Controller::start(&api, garage.admin, &garage.token().await).await;
    controller.settle().await;
    for generation in 1..=10 {
        reports.reissue(&api, generation);
        controller.settle().await;
        let (id, secret) = reports.credential(&api);
        assert_eq!(garage.s3("shop.reports", (&id, &secret), S3::Put("a")).await, StatusCode::OK, "{generation}");
    }
    let keys = garage.keys("shop.reports#").await;
    assert_eq!((keys.len(), keys.iter().filter(|key| key["expiration"].is_null()).count()), (11, 1));
}

#[tokio::test]
async fn a_lost_key_is_issued_again_at_the_next_start_into_the_same_secret_and_without_a_rollout() {
    let garage = Garage::start().await;
    let api = shop();
    let reports = Service::named("reports");
    reports.ask(&api);
    let token = garage.token().await;
    let controller = Controller::start(&api, garage.admin, &token).await;
    controller.settle().await;
    let (id, _) = reports.credential(&api);
    garage.root(Method::POST, "DeleteKey", &[("id", &id)], Some(json!({}))).await;
    let stored = api.get(&reports.secret());
    controller.look_at("reports");
    controller.settle().await;
    assert_eq!(api.get(&reports.secret()), stored, "between starts nothing is written");

    let controller = Controller::start(&api, garage.admin, &token).await;
    controller.settle().await;
    let (again, secret) = reports.credential(&api);
    assert_ne!(again, id);
    assert_eq!(garage.s3("shop.reports", (&again, &secret), S3::Put("a")).await, StatusCode::OK);
    assert_eq!(reports.status(&api)["credentialGeneration"], json!(null), "no rollout");
    assert_eq!((reports.phase(&api), reports.detail(&api)), ("provisioned".to_owned(), String::new()));
}

#[tokio::test]
async fn what_an_administrator_does_by_hand_is_left_and_said() {
    let garage = Garage::start().await;
    let api = shop();
    let reports = Service::named("reports");
    reports.ask(&api);
    let token = garage.token().await;
    let controller = Controller::start(&api, garage.admin, &token).await;
    controller.settle().await;
    let (id, secret) = reports.credential(&api);
    let bucket = garage.bucket("shop.reports").await["id"].clone();
    let theirs =
        garage.root(Method::POST, "CreateKey", &[], Some(json!({"name": "backup"}))).await["accessKeyId"].clone();
    let read = json!({"read": true, "write": false, "owner": false});
    let all = json!({"read": true, "write": true, "owner": true});
    let grant = json!({"bucketId": bucket, "accessKeyId": theirs, "permissions": read});
    garage.root(Method::POST, "AllowBucketKey", &[], Some(grant)).await;
    let withdrawal = json!({"bucketId": bucket, "accessKeyId": id, "permissions": all});
    garage.root(Method::POST, "DenyBucketKey", &[], Some(withdrawal)).await;

    // The bucket itself is looked at because something else is asked for.
    api.edit(&reports.request(), |request| request["spec"]["versionAgeDays"] = 7.into());
    controller.settle().await;
    assert_eq!(garage.s3("shop.reports", (&id, &secret), S3::Put("a")).await, StatusCode::FORBIDDEN, "it is left");
    assert!(reports.detail(&api).starts_with(&format!("somebody has taken from access key {id}")));
    assert_eq!(reports.status(&api)["otherKeys"], json!([theirs]));
    assert_eq!(reports.phase(&api), "provisioned");
    reports.reissue(&api, 1);
    controller.settle().await;
    assert_eq!(reports.detail(&api), "");
    assert_eq!(reports.status(&api)["otherKeys"], json!([theirs]), "theirs is left");
    let keys = garage.keys("backup").await;
    assert_eq!(keys[0]["expiration"], json!(null));
}

#[tokio::test]
async fn a_bucket_made_by_hand_before_is_recovered_and_nobody_loses_access() {
    let garage = Garage::start().await;
    let made = garage.root(Method::POST, "CreateBucket", &[], Some(json!({"globalAlias": "shop.reports"}))).await;
    let theirs = garage.root(Method::POST, "CreateKey", &[], Some(json!({"name": "operator"}))).await;
    let (id, secret) = (theirs["accessKeyId"].as_str().expect("an id"), theirs["secretAccessKey"].as_str());
    let all = json!({"read": true, "write": true, "owner": true});
    let grant = json!({"bucketId": made["id"], "accessKeyId": id, "permissions": all});
    garage.root(Method::POST, "AllowBucketKey", &[], Some(grant)).await;
    let api = shop();
    let reports = Service::named("reports");
    reports.ask(&api);
    Controller::start(&api, garage.admin, &garage.token().await).await.settle().await;
    assert_eq!(reports.phase(&api), "recovered existing bucket");
    assert_eq!(reports.status(&api)["otherKeys"], json!([id]));
    let theirs = (id, secret.expect("a secret"));
    assert_eq!(garage.s3("shop.reports", theirs, S3::Put("a")).await, StatusCode::OK);
}

#[tokio::test]
async fn two_controllers_at_once_end_with_one_key() {
    let garage = Garage::start().await;
    let (proxy, token) = (Proxy::to(garage.admin).await, garage.token().await);
    let api = shop();
    let reports = Service::named("reports");
    reports.ask(&api);
    let one = Controller::start(&api, proxy.port, &token).await;
    let two = Controller::start(&api, proxy.port, &token).await;
    for generation in 0..5 {
        tokio::join!(one.settle(), two.settle());
        let when = format!("generation {generation}: {:#}", reports.status(&api));
        let (id, secret) = reports.credential(&api);
        assert_eq!(reports.status(&api)["accessKey"], id.as_str(), "{when}");
        assert_eq!(reports.status(&api)["credentialGeneration"].as_i64().unwrap_or_default(), generation, "{when}");
        assert_eq!(garage.s3("shop.reports", (&id, &secret), S3::Put("a")).await, StatusCode::OK, "{when}");
        let keys = garage.keys("shop.reports#").await;
        let lasting: Vec<_> = keys.iter().filter(|key| key["expiration"].is_null()).collect();
        assert_eq!((lasting.len(), &lasting[0]["id"]), (1, &json!(id)), "{when}");
        reports.reissue(&api, generation + 1);
    }
}
