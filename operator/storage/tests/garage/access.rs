//! What a service's key reaches, and what the controller's own token does not.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::{
    controller::{Controller, Service, shop},
    garage::{Garage, S3, call},
};

#[tokio::test]
async fn a_key_reaches_its_own_bucket_and_no_other_before_and_after_a_reissue() {
    let garage = Garage::start().await;
    let api = shop();
    let (reports, other) = (Service::named("reports"), Service::named("reports-2"));
    reports.ask(&api);
    other.ask(&api);
    let controller = Controller::start(&api, garage.admin, &garage.token().await).await;
    controller.settle().await;
    for _ in 0..2 {
        let (id, secret) = reports.credential(&api);
        let s3 = |bucket: String, action| {
            let (garage, key) = (&garage, (id.as_str(), secret.as_str()));
            async move { garage.s3(&bucket, key, action).await }
        };
        assert_eq!(s3(reports.bucket(), S3::Put("a")).await, StatusCode::OK);
        assert_eq!(s3(reports.bucket(), S3::Get("a")).await, StatusCode::OK);
        assert_eq!(s3(reports.bucket(), S3::Delete("a")).await, StatusCode::NO_CONTENT);
        for action in [S3::Put("a"), S3::Get("a"), S3::DeleteBucket] {
            assert_eq!(s3(other.bucket(), action).await, StatusCode::FORBIDDEN, "{action:?}");
        }
        reports.reissue(&api, 1);
        controller.settle().await;
    }
    assert_eq!(reports.status(&api)["credentialGeneration"], 1);
    let status = reports.status(&api);
    assert_eq!(status["endpoint"], "http://garage.garage-system.svc.cluster.local:3900");
    assert_eq!((&status["region"], &status["bucket"]), (&json!("garage"), &json!("shop.reports")));
}

#[tokio::test]
async fn the_token_can_neither_read_a_secret_nor_delete_a_bucket() {
    let garage = Garage::start().await;
    let api = shop();
    let reports = Service::named("reports");
    reports.ask(&api);
    let token = garage.token().await;
    Controller::start(&api, garage.admin, &token).await.settle().await;
    let (key, _) = reports.credential(&api);
    let bucket = garage.bucket("shop.reports").await["id"].as_str().expect("an id").to_owned();
    let forbidden = [
        (Method::GET, "GetKeyInfo", vec![("id", key.as_str()), ("showSecretKey", "true")]),
        (Method::GET, "ListKeysInfo", Vec::new()),
        (Method::POST, "DeleteBucket", vec![("id", bucket.as_str())]),
        (Method::GET, "ListAdminTokens", Vec::new()),
    ];
    for (method, operation, query) in forbidden {
        let (status, answer) = call(garage.admin, &token, method, operation, &query, Some(json!({}))).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{operation}: {answer}");
    }
}

#[tokio::test]
async fn no_secret_is_in_a_status() {
    let garage = Garage::start().await;
    let api = shop();
    let reports = Service::named("reports");
    reports.ask(&api);
    Controller::start(&api, garage.admin, &garage.token().await).await.settle().await;
    let (_, secret) = reports.credential(&api);
    assert!(!reports.status(&api).to_string().contains(&secret));
}
