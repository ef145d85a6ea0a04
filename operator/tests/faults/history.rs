//! Descriptors that are kept.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    api::Api,
    every_fault::every_fault,
    operator::{Operator, SERVICE, cart, in_shop, lifecycle, service, shop},
};

/// Where the kept descriptors are.
fn paths(api: &Api) -> Vec<String> {
    api.versions().into_keys().filter(|path| path.contains("/controllerrevisions/")).collect()
}

/// The generations that took up the kept descriptors last, by their image's tag, oldest first.
fn kept(api: &Api) -> Vec<(String, i64)> {
    let told = paths(api).into_iter().map(|path| {
        let revision = api.get(&path).expect("listed");
        let image = revision["data"]["service"]["image"].as_str().unwrap_or_default().to_owned();
        (image.rsplit(':').next().unwrap_or_default().to_owned(), revision["revision"].as_i64().unwrap_or_default())
    });
    let mut told: Vec<_> = told.collect();
    told.sort_by_key(|(_, generation)| *generation);
    told
}

fn pairs(told: &[(&str, i64)]) -> Vec<(String, i64)> {
    told.iter().map(|(tag, generation)| ((*tag).to_owned(), *generation)).collect()
}

fn tag(tag: &'static str) -> impl Fn(&Api) {
    move |api| {
        api.edit(SERVICE, |service| {
            service["spec"]["service"]["image"] = format!("registry.example.com/acme/cart:{tag}").into();
        });
    }
}

#[tokio::test(start_paused = true)]
async fn each_descriptor_is_kept_once_and_one_that_comes_back_is_the_newest() {
    let api = cart().await;
    let operator = Operator::start(&api).await;
    operator.settle().await;
    assert_eq!(kept(&api), pairs(&[("1", 1)]));
    tag("2")(&api);
    operator.settle().await;
    api.edit(SERVICE, |service| service["spec"]["paused"] = true.into());
    operator.settle().await;
    assert_eq!(kept(&api), pairs(&[("1", 1), ("2", 2)]), "a pause is no descriptor");
    let two = api.copy();
    tag("1")(&api);
    operator.settle().await;
    assert_eq!(kept(&api), pairs(&[("2", 2), ("1", 4)]));
    every_fault(&two, tag("1")).await;
    every_fault(&two, tag("3")).await;
}

#[tokio::test(start_paused = true)]
async fn the_fifty_first_takes_the_place_of_the_oldest_whatever_goes_wrong() {
    let api = cart().await;
    let newest = paths(&api).pop().expect("kept");
    for number in 1..50 {
        let mut revision = api.get(&newest).expect("kept");
        let name = format!("ankka-cart-{number:012x}");
        revision["metadata"]["name"] = name.as_str().into();
        revision["metadata"]["annotations"]["ankka.dev/generation"] = number.to_string().into();
        api.put(&in_shop("/apis/apps/v1", &format!("controllerrevisions/{name}")), revision);
    }
    api.edit(&newest, |revision| revision["metadata"]["annotations"]["ankka.dev/generation"] = "50".into());
    every_fault(&api, tag("2")).await;
    tag("2")(&api);
    Operator::start(&api).await.settle().await;
    let left = paths(&api);
    assert_eq!(left.len(), 50);
    assert!(left.contains(&newest) && !left.iter().any(|path| path.ends_with("-000000000001")), "{left:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_strangers_revision_of_our_name_is_left_alone_and_what_is_deleted_is_kept_again() {
    for labels in [json!({}), json!({"app.kubernetes.io/managed-by": "ankka"})] {
        let api = shop().await;
        let path = paths(&cart().await).pop().expect("kept");
        let name = path.rsplit('/').next().expect("a name");
        let metadata = json!({"name": name, "namespace": "ankka-shop", "labels": labels});
        api.put(&path, json!({"metadata": metadata, "data": {"theirs": true}, "revision": 7}));
        let before = api.get(&path);
        api.put(SERVICE, service("cart"));
        let operator = Operator::start(&api).await;
        operator.settle().await;
        assert_eq!((api.get(&path), lifecycle(&api).as_str()), (before, "Ready"));
        api.delete(&path);
        operator.settle().await;
        tokio::time::sleep(Duration::from_secs(400)).await;
        operator.settle().await;
        assert_eq!(kept(&api), pairs(&[("1", 1)]));
        api.delete(&path);
        operator.settle().await;
        assert_eq!(kept(&api), pairs(&[("1", 1)]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_descriptor_that_breaks_a_rule_is_not_kept() {
    let api = cart().await;
    api.edit(SERVICE, |service: &mut Value| service["spec"]["service"]["port"] = 0.into());
    Operator::start(&api).await.settle().await;
    assert_eq!(kept(&api), pairs(&[("1", 1)]));
}
