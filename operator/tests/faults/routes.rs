//! Routes: what their gateway says, clusters without them, and two services with one host name.

use serde_json::{Value, json};

use crate::{
    api::Api,
    operator::{DEPLOYMENT, Operator, SERVICE, cart, lifecycle, service},
};

const ROUTE: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/ankka-shop/httproutes/cart";

/// A cluster with the Gateway API and an exposed service.
async fn exposed() -> Api {
    let api = cart().await;
    api.has_gateway_api(true);
    expose(&api, SERVICE, true);
    Operator::start(&api).await.settle().await;
    api.copy()
}

fn expose(api: &Api, path: &str, exposed: bool) {
    api.edit(path, |service| service["spec"]["exposed"] = exposed.into());
}

fn said(api: &Api, path: &str) -> String {
    api.get(path).expect("stored")["status"]["route"].as_str().unwrap_or_default().to_owned()
}

fn address(api: &Api) -> String {
    api.get(SERVICE).expect("stored")["status"]["address"].as_str().unwrap_or_default().to_owned()
}

/// The gateway's controller judges the route as it is now.
fn judge(api: &Api, accepted: &str) {
    let generation = api.get(ROUTE).expect("made")["metadata"]["generation"].clone();
    let condition = |type_: &str, status: &str| json!({"type": type_, "status": status, "reason": "Judged", "message": "by the test", "observedGeneration": generation});
    let parent = json!({
        "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "ankka-gateway", "name": "ankka", "sectionName": "https"},
        "controllerName": "example.com/gateway",
        "conditions": [condition("Accepted", accepted), condition("ResolvedRefs", "True")],
    });
    api.judge(ROUTE, &json!({"parents": [parent]}));
}

#[tokio::test(start_paused = true)]
async fn what_the_gateway_says_is_in_the_status_at_once() {
    let api = exposed().await;
    assert_eq!(
        (said(&api, SERVICE).as_str(), address(&api).as_str()),
        ("pending", "https://cart-shop.apps.example.com")
    );
    let operator = Operator::start(&api).await;
    operator.settle().await;
    api.writes();
    judge(&api, "True");
    operator.settle().await;
    assert_eq!(said(&api, SERVICE), "accepted");
    judge(&api, "False");
    operator.settle().await;
    assert_eq!(said(&api, SERVICE), "rejected: Judged: by the test");
    assert_eq!(lifecycle(&api), "Ready");
    assert!(api.writes().iter().all(|write| write.path == format!("{SERVICE}/status")), "the route is as it should be");
    let settled = api.versions();
    Operator::start(&api).await.settle().await;
    assert_eq!(api.versions(), settled);
}

#[tokio::test(start_paused = true)]
async fn a_route_that_somebody_changes_or_deletes_comes_back_and_its_word_follows() {
    let api = exposed().await;
    let operator = Operator::start(&api).await;
    operator.settle().await;
    judge(&api, "True");
    operator.settle().await;
    let right = api.get(ROUTE).expect("made")["spec"].clone();
    api.edit(ROUTE, |route| route["spec"]["hostnames"] = json!(["elsewhere.example.com"]));
    operator.settle().await;
    assert_eq!(api.get(ROUTE).expect("made")["spec"], right);
    assert_eq!(said(&api, SERVICE), "pending", "nobody has judged what it is now");
    judge(&api, "True");
    operator.settle().await;
    api.edit(ROUTE, |route| route["metadata"]["labels"]["ankka.dev/service"] = "other".into());
    operator.settle().await;
    assert_eq!(said(&api, SERVICE), "accepted", "what it routes is as it was");
    api.delete(ROUTE);
    operator.settle().await;
    assert_eq!((api.get(ROUTE).expect("made anew")["spec"].clone(), said(&api, SERVICE).as_str()), (right, "pending"));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_the_gateway_api_runs_everything_else_and_one_that_gets_it_is_noticed() {
    let api = cart().await;
    expose(&api, SERVICE, true);
    api.edit(SERVICE, |service| service["spec"]["service"]["image"] = "registry.example.com/acme/cart:2".into());
    let operator = Operator::start(&api).await;
    operator.settle().await;
    assert!(said(&api, SERVICE).starts_with("rejected: the cluster has no Gateway API"), "{}", said(&api, SERVICE));
    assert_eq!(address(&api), "http://cart.ankka-shop.svc.cluster.local:9000");
    assert_eq!(lifecycle(&api), "Ready");
    let image =
        |api: &Api| api.get(DEPLOYMENT).expect("made")["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    assert_eq!(image(&api), "registry.example.com/acme/cart:2");
    for _ in 0..2 {
        api.has_gateway_api(true);
        operator.settle().await;
        assert!(api.get(ROUTE).is_some());
        assert_eq!(said(&api, SERVICE), "pending");
        judge(&api, "True");
        operator.settle().await;
        assert_eq!(said(&api, SERVICE), "accepted");

        api.has_gateway_api(false);
        operator.settle().await;
        assert!(said(&api, SERVICE).starts_with("rejected: the cluster has no Gateway API"), "{}", said(&api, SERVICE));
    }
    api.edit(SERVICE, |service| service["spec"]["service"]["image"] = "registry.example.com/acme/cart:3".into());
    operator.settle().await;
    assert_eq!((image(&api), lifecycle(&api)), (json!("registry.example.com/acme/cart:3"), "Ready".to_owned()));
}

const LATER: &str = "/apis/ankka.dev/v1alpha1/namespaces/ankka-b-c/ankkaservices/a";
const EARLIER: &str = "/apis/ankka.dev/v1alpha1/namespaces/ankka-c/ankkaservices/a-b";

fn route_of(service: &str) -> String {
    service.replace("ankka.dev/v1alpha1", "gateway.networking.k8s.io/v1").replace("ankkaservices", "httproutes")
}

/// Two services that derive one host name, of which the first is exposed when both are.
async fn two() -> (Api, Operator) {
    let api = Api::default();
    api.has_gateway_api(true);
    for (project, path) in [("c", EARLIER), ("b-c", LATER)] {
        let mut metadata = json!({"apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaProject", "spec": {}});
        metadata["metadata"] = json!({"name": project});
        api.put(&format!("/apis/ankka.dev/v1alpha1/ankkaprojects/{project}"), metadata);
        Operator::start(&api).await.settle().await;
        let mut service: Value = service(path.rsplit('/').next().expect("a name"));
        service["metadata"]["namespace"] = format!("ankka-{project}").into();
        api.put(path, service);
    }
    let operator = Operator::start(&api).await;
    operator.settle().await;
    for path in [EARLIER, LATER] {
        expose(&api, path, true);
        operator.settle().await;
    }
    (api, operator)
}

fn is_refused(api: &Api, path: &str) {
    let word = said(api, path);
    assert!(word.starts_with("rejected: the host name 'a-b-c.apps.example.com' belongs to another service"), "{word}");
    assert!(!word.contains("'c'") && !word.contains("ankka-c"), "{word}");
    assert_eq!(api.get(&route_of(path)), None);
}

#[tokio::test(start_paused = true)]
async fn of_two_services_with_one_host_name_the_one_exposed_first_has_it_until_it_lets_go() {
    type End = fn(&Api);
    let ends: [End; 3] = [
        |api| expose(api, EARLIER, false),
        |api| api.delete(EARLIER),
        |api| api.edit(EARLIER, |service| service["spec"]["service"]["http"] = false.into()),
    ];
    for end in ends {
        let (api, operator) = two().await;
        assert_eq!(said(&api, EARLIER), "pending");
        is_refused(&api, LATER);
        Operator::start(&api).await.settle().await;
        is_refused(&api, LATER);
        end(&api);
        operator.settle().await;
        assert!(api.get(&route_of(LATER)).is_some() && api.get(&route_of(EARLIER)).is_none());
        assert_eq!(said(&api, LATER), "pending");
        if api.get(EARLIER).is_some_and(|service| service["spec"]["exposed"] == false) {
            expose(&api, EARLIER, true);
            operator.settle().await;
            is_refused(&api, EARLIER);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_services_exposed_while_nobody_looked_the_older_service_has_the_name() {
    let (api, operator) = two().await;
    for path in [EARLIER, LATER] {
        expose(&api, path, false);
    }
    operator.settle().await;
    drop(operator);
    for path in [LATER, EARLIER] {
        expose(&api, path, true);
    }
    Operator::start(&api).await.settle().await;
    assert_eq!(said(&api, EARLIER), "pending");
    is_refused(&api, LATER);
}
