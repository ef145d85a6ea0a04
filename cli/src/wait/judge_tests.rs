//! The decision, as tables.

use serde_json::json;

use super::*;

const GENERATION: i64 = 4;

fn target() -> Target {
    Target { generation: GENERATION, since: Some("2026-11-30T12:00:00Z".parse().expect("is a time")), login: None }
}

fn service(observed: i64, lifecycle: &str, stalled: Option<&str>, detail: Option<&str>) -> AnkkaService {
    let conditions: Vec<_> = stalled
        .map(|message| {
            json!({ "type": "Stalled", "status": "True", "reason": "Failed", "message": message, "lastTransitionTime": "2026-11-30T12:00:01Z" })
        })
        .into_iter()
        .collect();
    serde_json::from_value(json!({
        "metadata": { "name": "cart", "generation": GENERATION },
        "spec": { "service": { "image": "i:1" } },
        "status": {
            "observedGeneration": observed, "lifecycle": lifecycle, "detail": detail,
            "readyInstances": 0, "desiredInstances": 1, "conditions": conditions,
        },
    }))
    .expect("is a service")
}

fn instance(reason: &str, message: &str) -> Instance {
    Instance {
        name: "cart-1".to_owned(),
        template: "new".to_owned(),
        created: Some("2026-11-30T12:00:05Z".parse().expect("is a time")),
        trouble: Some(Trouble {
            reason: reason.to_owned(),
            message: message.to_owned(),
            container: Some("service".to_owned()),
        }),
        ..Instance::default()
    }
}

#[test]
fn the_platform_has_the_first_word_about_this_generation() {
    let verdict = |service| judge(target(), &service, &[]);
    assert_eq!(verdict(service(GENERATION, "Ready", None, None)), Verdict::Ready);
    assert_eq!(verdict(service(GENERATION, "Paused", None, None)), Verdict::Paused);
    assert_eq!(verdict(service(GENERATION, "Failed", Some("why"), None)), Verdict::Hopeless("why".to_owned()));
    assert_eq!(
        verdict(service(GENERATION, "Failed", Some("why"), Some("detail"))),
        Verdict::Hopeless("detail".to_owned())
    );
    assert_eq!(
        verdict(service(GENERATION, "UpdateInProgress", None, Some("exceeded quota"))),
        Verdict::Waiting("exceeded quota".to_owned())
    );
    for stale in [service(GENERATION - 1, "Ready", None, None), service(GENERATION - 1, "Failed", Some("old"), None)] {
        assert_eq!(verdict(stale), Verdict::Waiting("no operator has reported on generation 4".to_owned()));
    }
}

#[test]
fn what_cannot_succeed_ends_the_waiting() {
    let table = [
        ("InvalidImageName", "couldn't parse image name \"ACME/Cart:1\": invalid reference format"),
        ("ErrImagePull", "failed to resolve reference \"r.example.com/a:1\": r.example.com/a:1: not found"),
        ("ErrImagePull", "manifest unknown: manifest unknown"),
        ("ErrImagePull", "unexpected status from HEAD request: 403 Forbidden"),
        (
            "ErrImagePull",
            "pull access denied, repository does not exist or may require authorization: authorization failed",
        ),
        ("ErrImagePull", "401 Unauthorized"),
        ("ErrImagePull", "no match for platform in manifest: not found"),
        ("ImagePullBackOff", "Back-off pulling image \"a:1\": ErrImagePull: a:1: not found"),
        ("RunContainerError", "exec /app: exec format error"),
    ];
    for (reason, message) in table {
        let verdict =
            judge(target(), &service(GENERATION, "UpdateInProgress", None, None), &[instance(reason, message)]);
        assert!(
            matches!(&verdict, Verdict::Hopeless(why) if why.starts_with("cart-1: ")),
            "{reason}: {message}: {verdict:?}"
        );
    }
}

#[test]
fn what_may_still_come_is_waited_for() {
    let table = [
        ("CreateContainerConfigError", "secret \"cart-secrets\" not found"),
        ("CreateContainerConfigError", "couldn't find key token in Secret ankka-shop/cart-secrets"),
        ("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu"),
        (
            "ErrImagePull",
            "failed to do request: Head \"https://r.example.com/v2/a\": dial tcp 10.0.0.1:443: connect: connection refused",
        ),
        ("ErrImagePull", "dial tcp: lookup r.example.com: no such host"),
        ("ErrImagePull", "429 Too Many Requests"),
        ("ErrImagePull", "500 Internal Server Error"),
        ("ImagePullBackOff", "Back-off pulling image \"a:1\""),
        ("CrashLoopBackOff", "it ended with exit code 1"),
    ];
    for (reason, message) in table {
        let verdict =
            judge(target(), &service(GENERATION, "UpdateInProgress", None, None), &[instance(reason, message)]);
        assert_eq!(verdict, Verdict::Waiting(format!("cart-1: {reason}: {message}")));
    }
}

#[test]
fn the_third_crash_is_the_last() {
    for (crashes, ends) in [(0, false), (1, false), (2, false), (3, true), (9, true)] {
        let crashed = Instance { crashes, ..instance("CrashLoopBackOff", "it ended with exit code 1") };
        let verdict = judge(target(), &service(GENERATION, "UpdateInProgress", None, None), &[crashed]);
        assert_eq!(matches!(verdict, Verdict::Hopeless(_)), ends, "{crashes} crashes: {verdict:?}");
    }
}

#[test]
fn a_program_for_another_architecture_is_known_by_its_last_words() {
    let crashed = Instance {
        crashes: 1,
        last_words: Some("exec /app: exec format error\n".to_owned()),
        ..instance("Error", "it ended with exit code 255")
    };
    let verdict = judge(target(), &service(GENERATION, "UpdateInProgress", None, None), &[crashed]);
    assert!(matches!(&verdict, Verdict::Hopeless(why) if why.contains("another architecture")), "{verdict:?}");
}

#[test]
fn instances_of_an_older_generation_say_nothing_about_this_one() {
    let broken = instance("ErrImagePull", "manifest unknown");
    let old = Instance { created: Some("2026-11-30T11:59:00Z".parse().expect("is a time")), ..broken.clone() };
    let stopping = Instance { terminating: true, ..broken.clone() };
    let ready = Instance { ready: true, crashes: 7, ..broken.clone() };
    let waiting = |instances: &[Instance]| {
        matches!(judge(target(), &service(GENERATION, "UpdateInProgress", None, None), instances), Verdict::Waiting(_))
    };
    assert!(waiting(std::slice::from_ref(&old)));
    assert!(waiting(&[stopping]));
    assert!(waiting(&[ready]));
    assert!(!waiting(&[broken]));

    // Nothing was changed, so what is there is what is waited for.
    let same = Target { since: None, ..target() };
    let verdict = judge(same, &service(GENERATION, "UpdateInProgress", None, None), &[old]);
    assert!(matches!(verdict, Verdict::Hopeless(_)), "{verdict:?}");
}

fn advised(service: Option<&AnkkaService>, instances: &[Instance]) -> String {
    let place = Place { service: "cart", project: "shop", namespace: "ankka-shop" };
    advice(target(), service, instances, place)
}

#[test]
fn the_advice_is_as_special_as_the_cause_is_known() {
    let going = |detail| service(GENERATION, "UpdateInProgress", None, detail);
    let crashed = |message| Instance { crashes: 3, ..instance("CrashLoopBackOff", message) };
    let down = format!("database: no answer; {}", Cause::Database.row().next);
    let table = [
        (
            None,
            crashed("it ended with exit code 1"),
            "crashed 3 times: it ended with exit code 1",
            "see why with: ankka services logs cart --previous -p shop",
        ),
        (
            None,
            crashed("it ended with exit code 137 (OOMKilled)"),
            "(OOMKilled)",
            "give the service a larger instanceType",
        ),
        (
            Some(down.as_str()),
            crashed("it ended with exit code 1"),
            "exit code 1; database: no answer",
            "see whether the database server answers",
        ),
        (Some("Error: container service ended"), crashed("it ended with exit code 1"), "exit code 1", "see why with"),
        (None, instance("ErrImagePull", "manifest unknown"), "manifest unknown", "check the image's name and tag"),
        (None, instance("InvalidImageName", "bad"), "bad", "correct the image in the descriptor"),
        (
            None,
            instance("RunContainerError", "exec format error"),
            "another architecture",
            "build the image for the architecture",
        ),
    ];
    for (detail, instance, why, next) in table {
        let (service, instances) = (going(detail), [instance]);
        let verdict = judge(target(), &service, &instances);
        assert!(matches!(&verdict, Verdict::Hopeless(found) if found.contains(why)), "{why}: {verdict:?}");
        let advice = advised(Some(&service), &instances);
        assert!(advice.starts_with(next) && advice.ends_with("; instances that were ready go on serving"), "{advice}");
    }
    // The platform's own word, and its next step, come first.
    let failed = service(GENERATION, "Failed", Some("why"), None);
    assert!(advised(Some(&failed), &[crashed("it ended with exit code 1")]).contains("correct the descriptor"));
}

#[test]
fn the_advice_is_about_what_stands_in_the_way() {
    let mut service = service(GENERATION, "Failed", Some("why"), None);
    assert!(advised(Some(&service), &[]).contains("correct the descriptor"));
    for (reason, words) in [
        ("NameTaken", "remove what has that name"),
        ("NoProject", "goes on by itself"),
        ("NoDatabaseServer", "goes on by itself"),
        ("DatabaseProvisioningFailed", "goes on by itself"),
    ] {
        service.status.as_mut().expect("has one").conditions[0].reason = reason.to_owned();
        assert!(advised(Some(&service), &[]).contains(words), "{reason}");
    }
    let mut going = serde_json::to_value(&service).expect("is JSON");
    going["metadata"]["deletionTimestamp"] = json!("2026-11-30T12:00:02Z");
    let going: AnkkaService = serde_json::from_value(going).expect("is a service");
    assert_eq!(judge(target(), &going, &[]), Verdict::Hopeless("it is being deleted".to_owned()));
    for gone in [Some(&going), None] {
        assert_eq!(advised(gone, &[]), "apply it again once it is gone");
    }
}

#[test]
fn a_reissued_login_is_done_when_every_instance_that_stays_uses_it() {
    let target = Target { login: Some(2), ..target() };
    let ready = service(GENERATION, "Ready", None, None);
    let with = |login, terminating| Instance { login, terminating, ready: true, ..instance("", "") };
    let verdict = |instances: &[Instance]| judge(target, &ready, instances);
    let before = Verdict::Waiting("the instances use the database login of before".to_owned());
    assert_eq!(verdict(&[]), before);
    assert_eq!(verdict(&[with(1, false)]), before);
    assert_eq!(verdict(&[with(2, false), with(1, false)]), before);
    assert_eq!(verdict(&[with(2, false), with(1, true)]), Verdict::Ready);
    assert_eq!(verdict(&[with(3, false)]), Verdict::Ready);
    assert_eq!(judge(target, &service(GENERATION, "Paused", None, None), &[]), Verdict::Paused);
    let mut refused = ready.clone();
    refused.status.as_mut().expect("a status").database =
        serde_json::from_value(json!({ "phase": "waiting for database", "detail": "connection refused" })).ok();
    let why = "the instances use the database login of before: connection refused";
    assert_eq!(judge(target, &refused, &[]), Verdict::Waiting(why.to_owned()));
}
