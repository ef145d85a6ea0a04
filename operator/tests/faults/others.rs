//! What others do, and what is never written.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    api::Api,
    fault::{Fault, Write},
    operator::{
        ADMINISTRATORS, DEPLOYMENT, NAMESPACE, Operator, PROJECT, SERVICE, cart, in_shop, lifecycle, project, service,
        shop,
    },
};

type Change = fn(&mut Value);

fn touched<'a>(writes: &'a [Write], path: &str) -> Vec<&'a Write> {
    writes.iter().filter(|write| write.path == path && write.done).collect()
}

fn detail(api: &Api) -> String {
    api.get(SERVICE).expect("stored")["status"]["detail"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_new_service_takes_one_write_a_child_and_three_of_status_and_one_to_keep_its_descriptor() {
    let api = shop().await;
    let operator = Operator::start(&api).await;
    api.put(SERVICE, service("cart"));
    operator.settle().await;
    let writes = api.writes();
    assert!(writes.iter().all(|write| write.done), "{writes:#?}");
    let (kept, rest): (Vec<_>, Vec<_>) = writes.iter().partition(|write| write.path.contains("/controllerrevisions/"));
    assert_eq!(kept.len(), 1, "{kept:#?}");
    let (statuses, children): (Vec<&Write>, Vec<_>) = rest.iter().partition(|write| write.path.ends_with("/status"));
    assert_eq!(statuses.len(), 3, "{statuses:#?}");
    assert!(children.iter().all(|write| write.verb == "create"), "{children:#?}");
    assert_eq!(children.last().map(|write| write.path.as_str()), Some(DEPLOYMENT), "what it needs comes before");
}

#[tokio::test(start_paused = true)]
async fn in_a_rush_every_service_is_begun_before_any_is_talked_about() {
    let api = shop().await;
    for number in 0..40 {
        let name = format!("s{number}");
        api.put(&in_shop("/apis/ankka.dev/v1alpha1", &format!("ankkaservices/{name}")), service(&name));
    }
    Operator::start(&api).await.settle().await;
    let writes = api.writes();
    let first_word = writes.iter().position(|write| write.path.ends_with("/status"));
    let last_begun = writes.iter().rposition(|write| write.path.contains("/deployments/"));
    assert!(last_begun < first_word, "{last_begun:?} {first_word:?}");
    let words = writes.iter().filter(|write| write.path.ends_with("/status")).count();
    assert!((40..=42).contains(&words), "one word is enough for most: {words}");
}

#[tokio::test(start_paused = true)]
async fn a_strangers_object_is_never_touched_and_the_service_recovers_when_it_is_gone() {
    for stranger in
        [DEPLOYMENT.to_owned(), in_shop("/api/v1", "services/cart"), in_shop("/api/v1", "configmaps/cart-cluster")]
    {
        for labels in [json!({}), json!({"app.kubernetes.io/managed-by": "ankka"})] {
            let api = shop().await;
            let name = stranger.rsplit('/').next().expect("a name");
            let spec = json!({"replicas": 9});
            let metadata = json!({"name": name, "namespace": "ankka-shop", "labels": labels});
            api.put(&stranger, json!({"metadata": metadata, "spec": spec}));
            let before = api.get(&stranger);
            api.put(SERVICE, service("cart"));
            let operator = Operator::start(&api).await;
            operator.settle().await;
            let writes = api.writes();
            assert_eq!(touched(&writes, &stranger), Vec::<&Write>::new());
            assert_eq!(api.get(&stranger), before, "{labels}");
            assert_eq!(lifecycle(&api), "Failed");
            assert!(
                detail(&api).contains(&format!("named '{name}' already exists in 'ankka-shop'")),
                "{}",
                detail(&api)
            );

            api.delete(&stranger);
            operator.settle().await;
            tokio::time::sleep(std::time::Duration::from_secs(400)).await;
            operator.settle().await;
            assert_eq!(lifecycle(&api), "Ready", "{stranger} {labels}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_service_of_before_is_waited_for() {
    let api = shop().await;
    let owner = json!({"apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaService", "name": "cart", "uid": "before", "controller": true});
    let metadata = json!({
        "name": "cart", "namespace": "ankka-shop", "ownerReferences": [owner],
        "labels": {"app.kubernetes.io/managed-by": "ankka"},
    });
    api.put(DEPLOYMENT, json!({"metadata": metadata, "spec": {"replicas": 2}}));
    let before = api.get(DEPLOYMENT);
    api.put(SERVICE, service("cart"));
    let operator = Operator::start(&api).await;
    operator.settle().await;
    assert_eq!(api.get(DEPLOYMENT), before);
    assert_eq!(lifecycle(&api), "UpdateInProgress");
    api.delete(DEPLOYMENT);
    operator.settle().await;
    assert_eq!(lifecycle(&api), "Ready");
    assert_ne!(
        api.get(DEPLOYMENT).map(|made| made["metadata"]["uid"].clone()),
        before.map(|old| old["metadata"]["uid"].clone())
    );
}

#[tokio::test(start_paused = true)]
async fn what_others_change_in_a_child_is_undone_and_what_they_add_beside_it_stays() {
    let changes: [(&str, Change); 6] = [
        (DEPLOYMENT, |object| object["spec"]["replicas"] = 7.into()),
        (DEPLOYMENT, |object| object["spec"]["template"]["spec"]["hostNetwork"] = true.into()),
        (DEPLOYMENT, |object| object["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "helm"})),
        ("/api/v1/namespaces/ankka-shop/configmaps/cart-cluster", |object| object["data"]["more"] = "x".into()),
        ("/api/v1/namespaces/ankka-shop/configmaps/cart-cluster", |object| {
            object["metadata"].as_object_mut().expect("metadata").remove("labels");
        }),
        ("/apis/rbac.authorization.k8s.io/v1/namespaces/ankka-shop/roles/ankka-cart", |object| {
            object["rules"] = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        }),
    ];
    let settled = cart().await;
    for (path, change) in changes {
        let api = settled.copy();
        let operator = Operator::start(&api).await;
        operator.settle().await;
        let right = api.get(path).expect("made");
        api.edit(path, |object| {
            object["metadata"]["annotations"]["other.io/seen"] = "1".into();
            change(object);
        });
        operator.settle().await;
        let now = api.get(path).expect("still there");
        for field in ["spec", "data", "rules"] {
            assert_eq!(now.get(field), right.get(field), "{path}");
        }
        assert_eq!(now["metadata"]["labels"], right["metadata"]["labels"], "{path}");
        assert_eq!(now["metadata"]["annotations"]["other.io/seen"], "1", "{path}");
        assert_eq!(lifecycle(&api), "Ready");
    }
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_has_set_to_the_wanted_value_first_needs_no_write() {
    let api = cart().await;
    let operator = Operator::start(&api).await;
    api.edit(DEPLOYMENT, |object| object["spec"]["replicas"] = 3.into());
    api.edit(SERVICE, |object| {
        object["spec"]["service"]["resources"] = json!({"autoscaling": {"minInstances": 3}});
    });
    operator.settle().await;
    assert_eq!(lifecycle(&api), "Ready", "{}", detail(&api));
    let (before, versions) = (api.writes().len(), api.versions());
    Operator::start(&api).await.settle().await;
    assert_eq!(api.versions(), versions, "nothing was stored");
    assert!(api.writes().len() <= before + 1, "one look is enough after a start: {:#?}", &api.writes()[before..]);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_whose_instances_stay_as_they_are_is_not_said_to_roll() {
    let api = cart().await;
    let operator = Operator::start(&api).await;
    operator.settle().await;
    api.writes();
    api.edit(DEPLOYMENT, |object| object["metadata"]["labels"]["team"] = "other".into());
    operator.settle().await;
    assert_eq!(api.get(DEPLOYMENT).expect("made")["metadata"]["labels"]["team"], "checkout");
    assert_eq!(lifecycle(&api), "Ready");
    assert_eq!(touched(&api.writes(), &format!("{SERVICE}/status")), Vec::<&Write>::new());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_overtaken_is_judged_again_and_undoes_nothing() {
    let start = cart().await;
    for number in 0..3 {
        let api = start.copy();
        api.edit(SERVICE, |service| service["spec"]["service"]["image"] = "registry.example.com/acme/cart:2".into());
        api.fail(number, Fault::Overtaken);
        Operator::start(&api).await.settle().await;
        let writes = api.writes();
        if writes[number].verb == "create" {
            // What is not there yet cannot be overtaken.
            continue;
        }
        assert!(!writes[number].done, "{:?}", writes[number]);
        let path = writes[number].path.trim_end_matches("/status");
        let overtaken = api.get(path).expect("still there");
        assert_eq!(overtaken["metadata"]["annotations"]["other.io/overtaken"], "1", "{path}");
        let deployment = api.get(DEPLOYMENT).expect("still there");
        let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
        assert_eq!((image.as_str(), lifecycle(&api).as_str()), (Some("registry.example.com/acme/cart:2"), "Ready"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_took_the_place_of_an_object_is_not_deleted_in_its_stead() {
    let api = cart().await;
    let path = in_shop("/api/v1", "services/cart");
    api.edit(SERVICE, |service| service["spec"]["service"]["http"] = false.into());
    let operator = Operator::start(&api).await;
    let undisturbed = api.copy();
    Operator::start(&undisturbed).await.settle().await;
    let number = undisturbed.writes().iter().position(|write| write.verb == "delete").expect("the Service goes");
    api.fail(number, Fault::Overtaken);
    operator.settle().await;
    assert!(api.writes().iter().all(|write| write.verb != "delete" || !write.done));
    assert!(api.get(&path).is_some_and(|stranger| stranger["metadata"].get("ownerReferences").is_none()));
    assert_eq!(lifecycle(&api), "Ready");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_deleted_comes_back() {
    let api = cart().await;
    let operator = Operator::start(&api).await;
    operator.settle().await;
    let before = api.end_state();
    for path in api.versions().into_keys().filter(|path| path.ends_with("cart") && path != SERVICE) {
        api.delete(&path);
    }
    operator.settle().await;
    let after = api.end_state();
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    assert_eq!(lifecycle(&api), "Ready");
}

#[tokio::test(start_paused = true)]
async fn what_went_while_nobody_watched_is_noticed_by_the_next_listing() {
    let api = cart().await;
    let other = in_shop("/apis/ankka.dev/v1alpha1", "ankkaservices/other");
    api.put(&other, service("other"));
    let operator = Operator::start(&api).await;
    operator.settle().await;
    let role = in_shop("/apis/rbac.authorization.k8s.io/v1", "roles/ankka-cart");
    api.writes();
    api.lose(&[DEPLOYMENT, &role, &other]);
    operator.settle().await;
    let writes = api.writes();
    let made: BTreeSet<&str> =
        writes.iter().filter(|write| write.verb == "create").map(|write| write.path.as_str()).collect();
    assert_eq!(made, [&*role, DEPLOYMENT].into(), "and nothing for the service that is gone");
    assert_eq!(lifecycle(&api), "Ready");

    api.edit(SERVICE, |service| service["spec"]["paused"] = true.into());
    operator.settle().await;
    assert_eq!(lifecycle(&api), "Paused", "the watches go on");
}

#[tokio::test(start_paused = true)]
async fn without_the_lease_nothing_is_sent() {
    let api = shop().await;
    let operator = Operator::start(&api).await;
    operator.settle().await;
    operator.lose_lease();
    api.put(SERVICE, service("cart"));
    operator.settle().await;
    assert_eq!(api.writes(), []);
    assert!(api.get(DEPLOYMENT).is_none());
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_service_says_so_and_stops_nobody() {
    let api = shop().await;
    let mut broken = service("cart");
    broken["spec"]["service"]["port"] = "9000".into();
    api.put(SERVICE, broken);
    api.put(&in_shop("/apis/ankka.dev/v1alpha1", "ankkaservices/other"), service("other"));
    let operator = Operator::start(&api).await;
    let passes = operator.settle().await;
    assert!(passes < 30, "no loop: {passes}");
    assert_eq!(lifecycle(&api), "Failed");
    let said = detail(&api);
    assert!(said.starts_with("the stored service cannot be read") && !said.contains("9000"), "{said}");
    assert!(api.get(DEPLOYMENT).is_none());
    let other = api.get(&in_shop("/apis/ankka.dev/v1alpha1", "ankkaservices/other")).expect("stored");
    assert_eq!(other["status"]["lifecycle"], "Ready");

    api.writes();
    Operator::start(&api).await.settle().await;
    assert_eq!(api.writes(), [], "said once");
    api.edit(SERVICE, |service| service["spec"]["service"]["port"] = 9000.into());
    Operator::start(&api).await.settle().await;
    assert_eq!(lifecycle(&api), "Ready");
}

#[tokio::test(start_paused = true)]
async fn a_service_in_a_namespace_that_is_no_projects_fails_until_it_is() {
    let api = Api::default();
    api.put(NAMESPACE, json!({"metadata": {"name": "ankka-shop"}}));
    api.put(SERVICE, service("cart"));
    let operator = Operator::start(&api).await;
    operator.settle().await;
    assert_eq!(lifecycle(&api), "Failed");
    assert!(detail(&api).contains("is no project's"), "{}", detail(&api));

    api.put(PROJECT, project());
    operator.settle().await;
    let said = api.get(PROJECT).expect("stored")["status"]["detail"].clone();
    assert!(said.as_str().is_some_and(|said| said.contains("ankka.dev/adopt=shop")), "{said}");
    assert_eq!(lifecycle(&api), "Failed");

    api.edit(NAMESPACE, |namespace| namespace["metadata"]["annotations"] = json!({"ankka.dev/adopt": "shop"}));
    tokio::time::sleep(std::time::Duration::from_secs(400)).await;
    operator.settle().await;
    assert_eq!(lifecycle(&api), "Ready");
}

#[tokio::test(start_paused = true)]
async fn whom_others_bind_stays_and_whom_they_add_to_the_administrators_does_not() {
    let api = shop().await;
    let theirs = in_shop("/apis/rbac.authorization.k8s.io/v1", "rolebindings/theirs");
    let eve = json!([{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}]);
    let role = json!({"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"});
    let metadata =
        json!({"name": "theirs", "namespace": "ankka-shop", "labels": {"app.kubernetes.io/managed-by": "ankka"}});
    api.put(&theirs, json!({"metadata": metadata, "roleRef": role, "subjects": eve}));
    api.edit(PROJECT, |project| project["spec"]["administrators"] = json!([{"kind": "User", "name": "ann"}]));
    let operator = Operator::start(&api).await;
    operator.settle().await;
    let (before, bound) = (api.get(&theirs), api.get(ADMINISTRATORS).expect("made")["subjects"].clone());
    assert_eq!(bound[0]["name"], "ann");
    api.edit(ADMINISTRATORS, |binding| binding["subjects"] = eve.clone());
    operator.settle().await;
    assert_eq!(api.get(ADMINISTRATORS).expect("still there")["subjects"], bound);
    assert_eq!(api.get(&theirs), before);
}

#[tokio::test(start_paused = true)]
async fn a_project_of_which_no_administrator_is_left_is_settled() {
    let api = shop().await;
    api.edit(PROJECT, |project| project["spec"]["administrators"] = json!([{"kind": "User", "name": "ann"}]));
    let operator = Operator::start(&api).await;
    operator.settle().await;
    api.edit(PROJECT, |project| project["spec"]["administrators"] = json!([]));
    operator.settle().await;
    assert_eq!(api.get(ADMINISTRATORS).expect("it stays").get("subjects"), None, "an empty list is not stored");
    api.writes();
    let again = Operator::start(&api).await;
    assert_ne!(again.settle().await, 0);
    assert_eq!(api.writes(), []);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_being_deleted_is_left_alone() {
    let api = cart().await;
    api.edit(NAMESPACE, |namespace| namespace["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into());
    api.delete(DEPLOYMENT);
    Operator::start(&api).await.settle().await;
    let writes = api.writes();
    assert!(writes.iter().all(|write| write.path == format!("{PROJECT}/status")), "{writes:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_something_changes_again_each_time_is_put_right_less_and_less_often() {
    let api = cart().await;
    let operator = Operator::start(&api).await;
    operator.settle().await;
    api.writes();
    let begun = tokio::time::Instant::now();
    let mut told = String::new();
    for _ in 0..300 {
        if begun.elapsed() > std::time::Duration::from_mins(10) {
            break;
        }
        if replicas(&api) == 1 {
            api.edit(DEPLOYMENT, |object| object["spec"]["replicas"] = 7.into());
        }
        operator.pass().await;
        if replicas(&api) == 7 {
            told = detail(&api);
        }
    }
    let repairs = touched(&api.writes(), DEPLOYMENT).len();
    assert!((10..=25).contains(&repairs), "{repairs}");
    assert!(told.contains("something else changes the service's deployment each time"), "{told}");

    api.edit(SERVICE, |service| service["spec"]["service"]["image"] = "registry.example.com/acme/cart:2".into());
    let begun = tokio::time::Instant::now();
    while image(&api) != "registry.example.com/acme/cart:2" {
        operator.pass().await;
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(2), "what its author wants does not wait");
    operator.settle().await;
    assert_eq!((lifecycle(&api).as_str(), replicas(&api)), ("Ready", 1));
}

fn replicas(api: &Api) -> i64 {
    api.get(DEPLOYMENT).expect("made")["spec"]["replicas"].as_i64().unwrap_or_default()
}

fn image(api: &Api) -> Value {
    api.get(DEPLOYMENT).expect("made")["spec"]["template"]["spec"]["containers"][0]["image"].clone()
}
