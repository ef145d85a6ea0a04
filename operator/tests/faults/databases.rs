//! Databases: whatever goes wrong with a request for one, and while none is made.

use serde_json::{Value, json};

use crate::{
    api::Api,
    every_fault::every_fault,
    operator::{DATABASE, DEPLOYMENT, Operator, SERVICE, cart, lifecycle, service, shop},
};

fn supply(service: &mut Value) {
    service["spec"]["service"]["env"] = json!([{"name": "ANKKA_DB_HOST", "value": "db"}]);
}

fn take_ours(service: &mut Value) {
    service["spec"]["service"]["env"] = json!([]);
}

fn reissue(service: &mut Value) {
    service["spec"]["database"] = json!({"credentialGeneration": 1});
}

async fn settled(start: &Api, change: impl FnOnce(&mut Value)) -> Api {
    let api = start.copy();
    api.edit(SERVICE, change);
    Operator::start(&api).await.settle().await;
    api.copy()
}

/// Names of the variables of the only container that name a database.
fn variables(api: &Api) -> Vec<String> {
    let deployment = api.get(DEPLOYMENT).expect("a deployment");
    let env = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array().expect("variables").clone();
    let names = env.iter().filter_map(|variable| variable["name"].as_str());
    names.filter(|name| name.starts_with("ANKKA_DB_")).map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn a_new_login() {
    let writes = every_fault(&cart().await, |api| api.edit(SERVICE, reissue)).await;
    assert!(writes >= 4, "the request, the deployment, and twice the status: {writes}");
}

#[tokio::test(start_paused = true)]
async fn supplying_and_no_longer_supplying() {
    let start = cart().await;
    every_fault(&start, |api| api.edit(SERVICE, supply)).await;
    let own = settled(&start, supply).await;
    assert_eq!(variables(&own), ["ANKKA_DB_HOST"]);
    assert!(own.get(DATABASE).is_some(), "the data stays");
    every_fault(&own, |api| api.edit(SERVICE, take_ours)).await;
    assert_eq!(variables(&settled(&own, take_ours).await).len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_service_of_the_same_name_finds_its_database() {
    let start = cart().await;
    let again = |api: &Api| {
        let before = api.get(DATABASE).expect("a database");
        api.delete(SERVICE);
        assert_eq!(api.get(DATABASE), Some(before), "it has no owner");
        api.put(SERVICE, service("cart"));
    };
    every_fault(&start, again).await;
}

#[tokio::test(start_paused = true)]
async fn instances_start_by_themselves_once_the_server_is_back() {
    let api = shop().await;
    api.database_down(true);
    api.put(SERVICE, service("cart"));
    let operator = Operator::start(&api).await;
    operator.settle().await;
    assert_eq!(lifecycle(&api), "UpdateInProgress");
    let status = &api.get(SERVICE).expect("stored")["status"];
    let detail = status["detail"].as_str().expect("a detail");
    assert!(detail.starts_with("waiting for database: the server does not answer; "), "{detail}");
    assert_eq!(api.get(DEPLOYMENT), None);
    api.database_down(false);
    operator.settle().await;
    assert_eq!(lifecycle(&api), "Ready");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_touches_no_instance_that_has_its_login() {
    let api = cart().await;
    api.database_down(true);
    api.edit(SERVICE, |service| service["spec"]["restarts"] = 1.into());
    Operator::start(&api).await.settle().await;
    assert_eq!(lifecycle(&api), "Ready", "a restart needs nothing of the server");

    let own = settled(&cart().await, supply).await;
    own.delete(DATABASE);
    own.database_down(true);
    let before = own.get(DEPLOYMENT).expect("a deployment");
    own.edit(SERVICE, take_ours);
    let operator = Operator::start(&own).await;
    operator.settle().await;
    assert_eq!(own.get(DEPLOYMENT), Some(before), "instances go on with the database of before");
    own.database_down(false);
    operator.settle().await;
    assert_eq!((lifecycle(&own).as_str(), variables(&own).len()), ("Ready", 5));
}
