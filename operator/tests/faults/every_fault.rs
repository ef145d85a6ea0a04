//! Whatever goes wrong with whichever write: the end is that of the undisturbed run.

use crate::{
    api::Api,
    fault::Fault,
    operator::{ADMINISTRATORS, Operator, PROJECT, SERVICE, cart, project, service, shop},
};

const FAULTS: [Fault; 9] = [
    Fault::CrashBefore,
    Fault::CrashAfter,
    Fault::CrashWithoutReply,
    Fault::ReplyLost,
    Fault::Refused(403),
    Fault::Refused(409),
    Fault::Refused(500),
    Fault::Refused(429),
    Fault::Silence,
];

/// Runs `change` undisturbed, and then with every fault at every write, and compares the ends. Returns the number of writes
/// of the undisturbed run.
pub(crate) async fn every_fault(start: &Api, change: impl Fn(&Api)) -> usize {
    let undisturbed = start.copy();
    change(&undisturbed);
    let operator = Operator::start(&undisturbed).await;
    operator.settle().await;
    let writes = undisturbed.writes().len();
    let expected = undisturbed.end_state();

    for number in 0..writes {
        for fault in FAULTS {
            let api = start.copy();
            change(&api);
            api.fail(number, fault);
            let operator = Operator::start(&api).await;
            operator.settle().await;
            if api.is_dead() {
                drop(operator);
                Operator::start(&api).await.settle().await;
            }
            let end = api.end_state();
            for (path, object) in &expected {
                assert_eq!(end.get(path), Some(object), "{fault:?} at write {number}: {path}");
            }
            assert_eq!(end.len(), expected.len(), "{fault:?} at write {number}: {:?}", end.keys());

            let settled = api.versions();
            api.writes();
            Operator::start(&api).await.settle().await;
            assert_eq!(api.writes(), [], "{fault:?} at write {number}: a settled service is written to");
            assert_eq!(api.versions(), settled);
        }
    }
    writes
}

#[tokio::test(start_paused = true)]
async fn a_new_project() {
    let writes = every_fault(&Api::default(), |api| api.put(PROJECT, project())).await;
    assert_eq!(writes, 3, "namespace, policy, status");
}

#[tokio::test(start_paused = true)]
async fn administrators_of_a_project() {
    let named = |names: &'static [&'static str]| {
        move |project: &mut serde_json::Value| {
            let subjects = names.iter().map(|name| serde_json::json!({"kind": "User", "name": name}));
            project["spec"]["administrators"] = subjects.collect();
        }
    };
    let start = shop().await;
    let writes = every_fault(&start, |api| api.edit(PROJECT, named(&["ann", "bob"]))).await;
    assert_eq!(writes, 2, "binding, status");
    let two = start.copy();
    two.edit(PROJECT, named(&["ann", "bob"]));
    Operator::start(&two).await.settle().await;
    for fewer in [&["bob"][..], &[]] {
        let writes = every_fault(&two, |api| api.edit(PROJECT, named(fewer))).await;
        assert_eq!(writes, 2, "binding, status");
    }
    let writes = every_fault(&two, |api| api.delete(ADMINISTRATORS)).await;
    assert_eq!(writes, 1, "it comes back");
}

#[tokio::test(start_paused = true)]
async fn a_first_apply() {
    let writes = every_fault(&shop().await, |api| api.put(SERVICE, service("cart"))).await;
    let words =
        "a database and six children; that it waits, that it starts, that it is ready; and the descriptor is kept";
    assert_eq!(writes, 7 + 3 + 1, "{words}");
}

#[tokio::test(start_paused = true)]
async fn an_update() {
    let writes = every_fault(&cart().await, |api| {
        api.edit(SERVICE, |service| {
            service["spec"]["service"]["image"] = "registry.example.com/acme/cart:2".into();
            service["spec"]["service"]["labels"] = serde_json::json!({"tier": "front"});
        });
    })
    .await;
    assert!(writes >= 3, "deployment, and twice the status: {writes}");
}

#[tokio::test(start_paused = true)]
async fn scaling_out_and_in() {
    let start = cart().await;
    let instances = |number: i64| {
        move |service: &mut serde_json::Value| {
            service["spec"]["service"]["resources"] = serde_json::json!({"autoscaling": {"minInstances": number}});
        }
    };
    every_fault(&start, |api| api.edit(SERVICE, instances(3))).await;
    let three = start.copy();
    three.edit(SERVICE, instances(3));
    Operator::start(&three).await.settle().await;
    every_fault(&three, |api| api.edit(SERVICE, instances(1))).await;
}

#[tokio::test(start_paused = true)]
async fn pausing_and_resuming() {
    let start = cart().await;
    let pause = |paused: bool| move |service: &mut serde_json::Value| service["spec"]["paused"] = paused.into();
    every_fault(&start, |api| api.edit(SERVICE, pause(true))).await;
    let paused = start.copy();
    paused.edit(SERVICE, pause(true));
    Operator::start(&paused).await.settle().await;
    every_fault(&paused, |api| api.edit(SERVICE, pause(false))).await;
}

#[tokio::test(start_paused = true)]
async fn serving_no_http_any_more() {
    let writes = every_fault(&cart().await, |api| {
        api.edit(SERVICE, |service| service["spec"]["service"]["http"] = false.into());
    })
    .await;
    assert!(writes >= 3, "the Service goes, the Deployment changes, the status says so: {writes}");
}

#[tokio::test(start_paused = true)]
async fn exposing_and_unexposing() {
    let start = cart().await;
    start.has_gateway_api(true);
    let expose = |exposed: bool| move |service: &mut serde_json::Value| service["spec"]["exposed"] = exposed.into();
    let writes = every_fault(&start, |api| api.edit(SERVICE, expose(true))).await;
    assert_eq!(writes, 2, "the route, and the status");
    let exposed = start.copy();
    exposed.edit(SERVICE, expose(true));
    Operator::start(&exposed).await.settle().await;
    let writes = every_fault(&exposed, |api| api.edit(SERVICE, expose(false))).await;
    assert_eq!(writes, 2, "the route, and the status");
    every_fault(&exposed, |api| api.edit(SERVICE, |service| service["spec"]["service"]["port"] = 8080.into())).await;
}

#[tokio::test(start_paused = true)]
async fn deleting_is_the_garbage_collectors() {
    let writes = every_fault(&cart().await, |api| api.delete(SERVICE)).await;
    assert_eq!(writes, 0);
}
