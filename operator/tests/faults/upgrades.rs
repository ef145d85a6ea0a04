//! Another sidecar: the services that it is part of are rolled a few at a time.

use serde_json::{Value, json};

use crate::{
    api::Api,
    fault::Fault,
    operator::{Operator, in_shop, service, shop, variable},
};

const SERVICES: usize = 20;
const AT_A_TIME: usize = 3;
const BEFORE: &str = "registry.example.com/ankka/sidecar:1";
const NOW: &str = "registry.example.com/ankka/sidecar:2";

async fn operator(api: &Api, sidecar: &str) -> Operator {
    let variable = |name: &str| match name {
        "ANKKA_SIDECAR_IMAGE" => Some(sidecar.to_owned()),
        // So many services are never all quiet for long otherwise, and nothing here may need it.
        "ANKKA_OPERATOR_RESYNC_SECONDS" => Some("86400".to_owned()),
        name => variable(name),
    };
    Operator::start_with(api, variable).await
}

fn stored(number: usize) -> String {
    in_shop("/apis/ankka.dev/v1alpha1", &format!("ankkaservices/s{number}"))
}

fn deployment(number: usize) -> String {
    in_shop("/apis/apps/v1", &format!("deployments/s{number}"))
}

/// A cluster with settled process-hosted services, whose rollouts stand still from now on.
async fn settled() -> Api {
    let api = shop().await;
    for number in 0..SERVICES {
        let mut service = service(&format!("s{number}"));
        service["spec"]["service"]["hosting"] = "process".into();
        service["spec"]["service"]["protocol"] = "1.0".into();
        api.put(&stored(number), service);
    }
    operator(&api, BEFORE).await.settle().await;
    assert_eq!(with(&api, BEFORE).len(), SERVICES);
    held(&api)
}

fn held(api: &Api) -> Api {
    let api = api.copy();
    api.hold_rollouts(true);
    api
}

/// Whose template has this sidecar.
fn with(api: &Api, sidecar: &str) -> Vec<usize> {
    let has = |deployment: &Value| {
        let containers = deployment["spec"]["template"]["spec"]["containers"].as_array().expect("containers");
        containers.iter().any(|container| container["name"] == "sidecar" && container["image"] == sidecar)
    };
    (0..SERVICES).filter(|number| has(&api.get(&deployment(*number)).expect("made"))).collect()
}

fn is_rolling(api: &Api, number: usize) -> bool {
    let deployment = api.get(&deployment(number)).expect("made");
    deployment["status"]["observedGeneration"] != deployment["metadata"]["generation"]
}

fn rolling(api: &Api) -> Vec<usize> {
    (0..SERVICES).filter(|number| is_rolling(api, *number)).collect()
}

fn lifecycles(api: &Api, wanted: &str) -> usize {
    let is = |number: &usize| api.get(&stored(*number)).expect("stored")["status"]["lifecycle"] == wanted;
    (0..SERVICES).filter(is).count()
}

#[tokio::test(start_paused = true)]
async fn services_get_another_sidecar_three_at_a_time() {
    let api = settled().await;
    let operator = operator(&api, NOW).await;
    operator.settle().await;
    assert_eq!(with(&api, NOW), rolling(&api));
    assert_eq!(lifecycles(&api, "Ready"), SERVICES - AT_A_TIME, "who waits is as ready as before");
    for done in 1..=SERVICES {
        let rolling = rolling(&api);
        assert_eq!(rolling.len(), AT_A_TIME.min(SERVICES - done + 1), "{rolling:?}");
        api.roll_out(&deployment(rolling[0]));
        operator.settle().await;
        assert_eq!(with(&api, NOW).len(), SERVICES.min(done + AT_A_TIME));
    }
    assert_eq!(lifecycles(&api, "Ready"), SERVICES);
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_takes_over_counts_what_the_one_before_has_begun() {
    let before = settled().await;
    for fault in [Fault::CrashBefore, Fault::CrashAfter, Fault::CrashWithoutReply] {
        // Each is a write of the Deployment and one of the status.
        for number in 0..2 * AT_A_TIME {
            let api = held(&before);
            api.fail(number, fault);
            operator(&api, NOW).await.settle().await;
            let next = operator(&api, NOW).await;
            next.settle().await;
            assert_eq!(rolling(&api).len(), AT_A_TIME, "{fault:?} {number}");
            api.roll_out(&deployment(rolling(&api)[0]));
            next.settle().await;
            assert_eq!((rolling(&api).len(), with(&api, NOW).len()), (AT_A_TIME, AT_A_TIME + 1), "{fault:?} {number}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_somebody_asks_for_does_not_wait_and_takes_the_sidecar_along() {
    let api = settled().await;
    let operator = operator(&api, NOW).await;
    operator.settle().await;
    let waiting = with(&api, BEFORE)[0];
    api.edit(&stored(waiting), |service| service["spec"]["restarts"] = 1.into());
    operator.settle().await;
    assert!(with(&api, NOW).contains(&waiting) && is_rolling(&api, waiting));
    assert_eq!(with(&api, NOW).len(), AT_A_TIME + 1);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_failed_and_a_service_that_went_give_their_turns_to_others() {
    let api = settled().await;
    let operator = operator(&api, NOW).await;
    operator.settle().await;
    let [failing, going, _] = rolling(&api)[..] else { panic!("{:?}", rolling(&api)) };
    let stuck = api.get(&deployment(failing)).expect("made");
    api.judge(
        &deployment(failing),
        &json!({
            "observedGeneration": stuck["metadata"]["generation"], "replicas": 2, "updatedReplicas": 1, "readyReplicas": 1,
            "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}],
        }),
    );
    operator.settle().await;
    assert_eq!(with(&api, NOW).len(), AT_A_TIME + 1);
    api.edit(&stored(going), |service| service["spec"]["paused"] = true.into());
    operator.settle().await;
    api.roll_out(&deployment(going));
    operator.settle().await;
    assert_eq!(with(&api, NOW).len(), AT_A_TIME + 2);
}
