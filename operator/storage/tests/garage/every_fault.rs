//! Whatever goes wrong with whichever call to Garage or to the API server: in the end there is one bucket, one key without an end, and
//! one Secret, and all agree. What was in use is still accepted, and nothing was deleted.

use std::sync::atomic::{AtomicUsize, Ordering};

use ankka_testing::{api::Api, fault::Fault};
use futures::{StreamExt, stream};
use reqwest::StatusCode;
use serde_json::Value;

use crate::{
    controller::{Controller, Service, shop},
    garage::{Garage, S3},
    proxy::{Call, FAULTS, Fault as StoreFault, Proxy},
};

const API_FAULTS: [Fault; 7] = [
    Fault::CrashBefore,
    Fault::CrashAfter,
    Fault::CrashWithoutReply,
    Fault::ReplyLost,
    Fault::Refused(403),
    Fault::Refused(409),
    Fault::Refused(500),
];

/// Those that leave something half done. Where the same steps are taken for another reason, they tell the same.
const FEW: [StoreFault; 4] =
    [StoreFault::CrashBefore, StoreFault::CrashWithoutReply, StoreFault::ReplyLost, StoreFault::Refused(500)];
const FEW_API: [Fault; 4] = [Fault::CrashBefore, Fault::CrashWithoutReply, Fault::ReplyLost, Fault::Refused(409)];

/// How many runs are made at a time: most of one is waiting.
const RUNS: usize = 3;

/// What a scenario starts from, and what happens then.
struct Scenario {
    garage: Garage,
    token: String,
    services: AtomicUsize,
    /// The controller has come to rest before.
    settled: bool,
    change: Change,
    /// The phase in the end.
    phase: &'static str,
    /// The generation of the credential in the end.
    generation: i64,
    /// The key of before is still the one in the end.
    same_key: bool,
}

/// What happens to a bucket.
#[derive(Clone, Copy, Debug)]
enum Change {
    Nothing,
    Reissue,
    /// The namespace is made again.
    NamespaceAnew,
    /// The record is lost, the Secret is not.
    RecordLost,
    SecretDeleted,
    BucketDeleted,
    /// Another rule is wanted.
    Exposed,
}

/// What goes wrong in one run, at the call or the write of which number.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    None,
    Call(usize, StoreFault),
    Write(usize, Fault),
}

/// One run of a scenario, with a service of its own.
struct Run {
    api: Api,
    proxy: Proxy,
    service: Service,
    /// The credential of before.
    before: Option<(String, String)>,
}

impl Scenario {
    async fn of(settled: bool, change: Change, phase: &'static str, generation: i64, same_key: bool) -> Self {
        let garage = Garage::start().await;
        let token = garage.token().await;
        Self { garage, token, services: AtomicUsize::new(0), settled, change, phase, generation, same_key }
    }

    async fn begin(&self) -> Run {
        let service = Service(format!("r{}", self.services.fetch_add(1, Ordering::SeqCst)));
        let (api, proxy) = (shop(), Proxy::to(self.garage.admin).await);
        service.ask(&api);
        let mut before = None;
        if self.settled {
            self.controller(&api, &proxy).await.settle().await;
            assert_eq!(service.phase(&api), "provisioned", "{:#}", service.status(&api));
            before = Some(service.credential(&api));
        }
        match self.change {
            Change::Nothing => {}
            Change::Reissue => service.reissue(&api, 1),
            Change::NamespaceAnew => {
                api.delete(&service.secret());
                api.delete(&service.request());
                service.ask(&api);
            }
            Change::RecordLost => {
                api.delete(&service.request());
                service.ask(&api);
            }
            Change::SecretDeleted => api.delete(&service.secret()),
            Change::BucketDeleted => {
                let (id, secret) = before.as_ref().expect("settled");
                let deleted = self.garage.s3(&service.bucket(), (id, secret), S3::DeleteBucket).await;
                assert_eq!(deleted, StatusCode::NO_CONTENT, "a service may delete its empty bucket");
            }
            Change::Exposed => api.edit(&service.request(), |bucket| {
                bucket["spec"]["exposed"] = true.into();
                bucket["spec"]["origins"] = vec!["https://app.example.com"].into();
            }),
        }
        Run { api, proxy, service, before }
    }

    async fn controller(&self, api: &Api, proxy: &Proxy) -> Controller {
        Controller::start(api, proxy.port, &self.token).await
    }

    /// Runs it undisturbed, and then with every fault at every call. Returns how many calls an undisturbed run makes, to Garage and to
    /// the API server.
    async fn every_fault(&self) -> (usize, usize) {
        self.faults(&FAULTS, &API_FAULTS).await
    }

    /// Runs it undisturbed, and then with these faults at every call.
    async fn faults(&self, store: &[StoreFault], api: &[Fault]) -> (usize, usize) {
        let (calls, writes) = self.run(Trouble::None).await;
        let at_calls = (0..calls).flat_map(|number| store.iter().map(move |fault| Trouble::Call(number, *fault)));
        let at_writes = (0..writes).flat_map(|number| api.iter().map(move |fault| Trouble::Write(number, *fault)));
        let runs = stream::iter(at_calls.chain(at_writes));
        runs.for_each_concurrent(RUNS, |trouble| async move {
            self.run(trouble).await;
        })
        .await;
        (calls, writes)
    }

    /// One run, and what it came to. How many calls it made, until the controller died, if it did.
    async fn run(&self, trouble: Trouble) -> (usize, usize) {
        let run = self.begin().await;
        let Run { api, proxy, .. } = &run;
        proxy.calls();
        api.writes();
        match trouble {
            Trouble::None => {}
            Trouble::Call(number, fault) => proxy.fail(number, fault, api),
            Trouble::Write(number, fault) => api.fail(number, fault),
        }
        let slow = matches!(trouble, Trouble::Call(_, StoreFault::Late | StoreFault::Silence));
        let patience: &[_] = if slow { &[("ANKKA_OBJECT_STORE_TIMEOUT_SECONDS", "4")] } else { &[] };
        let controller = Controller::of(api, proxy.port, &self.token, patience).await;
        controller.settle().await;
        let made = (proxy.calls(), api.writes().len());
        if api.is_dead() {
            drop(controller);
            self.controller(api, proxy).await.settle().await;
        }
        if slow {
            // What was given up may be carried out later than anybody has looked. The next lists tell.
            self.controller(api, proxy).await.settle().await;
        }
        // A machine that is busy can be too slow for that little patience by itself.
        let most = match trouble {
            Trouble::None => 1,
            _ if slow => usize::MAX,
            _ => 2,
        };
        self.all_agree(&run, &format!("{trouble:?}"), most).await;
        nothing_was_deleted(proxy);
        made
    }

    /// `most` keys may have been made.
    async fn all_agree(&self, run: &Run, when: &str, most: usize) {
        let Run { api, service, before, .. } = run;
        let status = service.status(api);
        assert_eq!(service.phase(api), self.phase, "{when}: {status:#}");
        assert_eq!(status["secret"], format!("{}-storage", service.0), "{when}");
        assert_eq!(status["credentialGeneration"].as_i64().unwrap_or_default(), self.generation, "{when}: {status:#}");
        assert_eq!(status["issuing"], Value::Null, "{when}");
        let (id, secret) = service.credential(api);
        assert_eq!(status["accessKey"], id.as_str(), "{when}");
        assert_eq!(
            self.garage.s3(&service.bucket(), (&id, &secret), S3::Put("kept")).await,
            StatusCode::OK,
            "{when}: the key reaches the bucket"
        );
        let keys = self.garage.keys(&format!("{}#", service.bucket())).await;
        let lasting = keys.iter().filter(|key| key["expiration"].is_null()).count();
        assert_eq!(lasting, 1, "{when}: {keys:#?}");
        let made = keys.len() - usize::from(before.is_some());
        assert!(made <= most, "{when}: {keys:#?}");
        if let Some((old, old_secret)) = before {
            assert_eq!(*old == id, self.same_key, "{when}: {old} and {id}");
            let accepted = self.garage.s3(&service.bucket(), (old, old_secret), S3::Get("kept")).await;
            assert_eq!(accepted, StatusCode::OK, "{when}: instances still run with the key of before");
        }
        let listed: Vec<_> = status["formerKeys"].as_array().into_iter().flatten().collect();
        assert_eq!(listed.len(), keys.len() - 1, "{when}: every other key is listed with its end: {status:#}");
        self.a_settled_pass_writes_nothing(run, when).await;
    }

    async fn a_settled_pass_writes_nothing(&self, Run { api, proxy, service, .. }: &Run, when: &str) {
        let (stored, before) = (api.versions(), proxy.history().len());
        let controller = self.controller(api, proxy).await;
        controller.settle().await;
        controller.look_at(&service.0);
        controller.settle().await;
        assert_eq!(api.versions(), stored, "{when}: a settled bucket is written to");
        let calls: Vec<String> = proxy.history().drain(before..).map(|call| call.operation).collect();
        let looked = if matches!(self.change, Change::Exposed) { 2 } else { 0 };
        let expected = ["ListBuckets", "ListKeys"].into_iter().chain(std::iter::repeat_n("GetBucketInfo", looked));
        assert_eq!(calls, expected.collect::<Vec<_>>(), "{when}: nothing is asked of a settled bucket but the lists");
    }
}

/// Of everything that was ever sent, nothing deletes a bucket or an object. No secret is asked for, or told to anybody but its Secret.
fn nothing_was_deleted(proxy: &Proxy) {
    let allowed = [
        "GetBucketInfo",
        "ListBuckets",
        "ListKeys",
        "CreateBucket",
        "CreateKey",
        "AllowBucketKey",
        "UpdateBucket",
        "UpdateKey",
        "DeleteKey",
    ];
    let secrets = proxy.secrets();
    for Call { operation, query, body } in proxy.history() {
        assert!(allowed.contains(&operation.as_str()), "{operation}");
        assert!(!query.to_lowercase().contains("secret"), "{operation}?{query}");
        let told = secrets.iter().any(|secret| query.contains(secret) || body.contains(secret));
        assert!(!told, "{operation} tells a secret");
    }
}

#[tokio::test]
async fn a_first_bucket() {
    let scenario = Scenario::of(false, Change::Nothing, "provisioned", 0, false).await;
    let (calls, writes) = scenario.every_fault().await;
    assert_eq!(calls, 6, "two lists, look, bucket, key, permission");
    assert_eq!(writes, 4, "look at the Secret, intent, the Secret, status");
}

#[tokio::test]
async fn a_reissue() {
    let scenario = Scenario::of(true, Change::Reissue, "provisioned", 1, false).await;
    let (calls, writes) = scenario.every_fault().await;
    assert_eq!(calls, 6, "two lists, look, key, permission, end");
    assert_eq!(writes, 4, "look at the Secret, intent, the Secret, status");
}

#[tokio::test]
async fn a_namespace_that_is_made_again() {
    let scenario = Scenario::of(true, Change::NamespaceAnew, "recovered existing bucket", 0, false).await;
    scenario.faults(&FEW, &FEW_API).await;
}

#[tokio::test]
async fn a_record_that_is_lost() {
    let scenario = Scenario::of(true, Change::RecordLost, "recovered existing bucket", 0, true).await;
    let (calls, writes) = scenario.faults(&FEW, &FEW_API).await;
    assert_eq!((calls, writes), (3, 2), "two lists, look; look at the Secret, status");
}

#[tokio::test]
async fn a_secret_that_is_deleted_by_hand() {
    Scenario::of(true, Change::SecretDeleted, "provisioned", 1, false).await.faults(&FEW, &FEW_API).await;
}

#[tokio::test]
async fn a_bucket_that_its_service_has_deleted() {
    let scenario = Scenario::of(true, Change::BucketDeleted, "provisioned", 0, true).await;
    let (calls, writes) = scenario.faults(&FEW, &FEW_API).await;
    assert_eq!((calls, writes), (5, 2), "two lists, look, bucket, permission; look at the Secret, status");
}

#[tokio::test]
async fn a_rule_for_a_bucket_that_is_exposed() {
    let scenario = Scenario::of(true, Change::Exposed, "provisioned", 0, true).await;
    let (calls, writes) = scenario.faults(&FEW, &FEW_API).await;
    assert_eq!((calls, writes), (4, 2), "two lists, look, rule; look at the Secret, status");
}
