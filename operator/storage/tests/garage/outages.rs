//! A store that is down or refuses, strangers, and places where nothing may be made.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    controller::{Controller, Service, shop},
    garage::{Garage, S3},
};

#[tokio::test]
async fn a_store_that_goes_down_is_noticed_and_no_pass_tries_it_until_it_is_back() {
    let mut garage = Garage::start().await;
    let api = shop();
    let (reports, late) = (Service::named("reports"), Service::named("late"));
    reports.ask(&api);
    let mut controller = Controller::start(&api, garage.admin, &garage.token().await).await;
    controller.settle().await;
    controller.monitor();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    garage.down();
    controller.asked().await;
    let started = Instant::now();
    late.ask(&api);
    controller.settle().await;
    assert!(started.elapsed() < Duration::from_secs(4), "a pass waited for an answer: {:?}", started.elapsed());
    assert_eq!(late.phase(&api), "waiting for object storage");
    let said = format!("the object store at http://127.0.0.1:{} could not be reached: ", garage.admin);
    assert!(late.detail(&api).starts_with(&said), "{}", late.detail(&api));
    let stored = api.versions();
    reports.reissue(&api, 1);
    controller.settle().await;
    assert_eq!(reports.status(&api)["secret"], "reports-storage", "instances may start");
    assert_eq!(
        api.get(&reports.secret()).map(|secret| secret["metadata"]["resourceVersion"].clone()),
        stored.get(&reports.secret()).cloned()
    );

    garage.up().await;
    controller.asked().await;
    controller.settle().await;
    for (service, generation) in [(&reports, json!(1)), (&late, json!(null))] {
        assert_eq!((service.phase(&api), service.detail(&api)), ("provisioned".to_owned(), String::new()));
        assert_eq!(service.status(&api)["credentialGeneration"], generation);
        let (id, secret) = service.credential(&api);
        assert!(garage.s3(&service.bucket(), (&id, &secret), S3::Put("a")).await.is_success());
    }
}

#[tokio::test]
async fn a_token_that_is_refused_is_a_failure_with_its_reason_and_not_an_absent_bucket() {
    let garage = Garage::start().await;
    let api = shop();
    let reports = Service::named("reports");
    reports.ask(&api);
    let stranger = Controller::start(&api, garage.admin, "not a token").await;
    stranger.pass().await;
    assert_eq!(reports.phase(&api), "object storage provisioning failed");
    assert_eq!(
        reports.detail(&api),
        "the object store answered 403 to GET /v2/ListBuckets: Forbidden: Invalid bearer token"
    );
    assert!(garage.buckets().await.is_empty());
    Controller::start(&api, garage.admin, &garage.token().await).await.settle().await;
    assert_eq!(reports.phase(&api), "provisioned");
}

#[tokio::test]
async fn a_strangers_secret_is_never_touched_and_no_key_is_made_for_it() {
    let garage = Garage::start().await;
    let api = shop();
    let reports = Service::named("reports");
    let metadata = json!({"name": "reports-storage", "namespace": "ankka-shop"});
    let theirs = json!({"kind": "Secret", "metadata": metadata, "type": "Opaque", "data": {"mine": "eA=="}});
    api.put(&reports.secret(), theirs);
    let stored = api.get(&reports.secret());
    reports.ask(&api);
    let controller = Controller::start(&api, garage.admin, &garage.token().await).await;
    controller.pass().await;
    controller.pass().await;
    assert_eq!(reports.phase(&api), "object storage provisioning failed");
    assert_eq!(
        reports.detail(&api),
        "a secret named 'reports-storage' already exists in 'ankka-shop' and is not managed by ankka; rename or delete it"
    );
    assert_eq!(api.get(&reports.secret()), stored);
    assert!(garage.keys("").await.is_empty());
    api.delete(&reports.secret());
    controller.settle().await;
    assert_eq!(reports.phase(&api), "provisioned");
}

#[tokio::test]
async fn without_a_store_or_with_a_name_it_refuses_the_reason_is_said() {
    let api = shop();
    let (reports, refused, bare) = (Service::named("reports"), Service::named("x-s3alias"), Service::named("bare"));
    for service in [&reports, &refused, &bare] {
        service.ask(&api);
    }
    api.edit(&bare.request(), |request| request["spec"]["credential"] = false.into());
    Controller::with(&api, &BTreeMap::new()).await.settle().await;
    for (service, reason) in [
        (&reports, "the installation has no object store"),
        (&refused, "bucket name 'shop.x-s3alias' is one Garage refuses"),
        (&bare, "objectStorageCredential: a bucket in Garage is reached only with a storage credential"),
    ] {
        assert_eq!(service.phase(&api), "object storage provisioning failed");
        assert!(service.detail(&api).starts_with(reason), "{}", service.detail(&api));
    }
    assert!(api.versions().into_keys().all(|path| !path.contains("/secrets/")));
}

#[tokio::test]
async fn a_bucket_elsewhere_is_anothers_to_make_and_two_services_with_one_secret_are_told_apart() {
    let garage = Garage::start().await;
    let api = shop();
    let (there, here) = (Service::named("x"), Service::named("x-cloud"));
    there.ask(&api);
    api.edit(&there.request(), |request| request["spec"]["store"] = "gcs".into());
    here.ask(&api);
    Controller::start(&api, garage.admin, &garage.token().await).await.settle().await;
    assert_eq!(there.status(&api), json!(null));
    assert_eq!(here.phase(&api), "object storage provisioning failed");
    assert!(here.detail(&api).starts_with("secret 'x-cloud-storage' is that of service 'x'"), "{}", here.detail(&api));
    assert!(garage.buckets().await.is_empty());
}

#[tokio::test]
async fn without_the_lease_nothing_is_sent() {
    let garage = Garage::start().await;
    let api = shop();
    let reports = Service::named("reports");
    reports.ask(&api);
    let controller = Controller::start(&api, garage.admin, &garage.token().await).await;
    controller.lose_lease();
    controller.pass().await;
    assert_eq!(api.writes(), []);
    assert!(garage.buckets().await.is_empty() && garage.keys("").await.is_empty());
    assert_eq!(reports.status(&api), json!(null));
}
