use ankka_crds::resources::{AnkkaBucketSpec, FormerKey};

use super::*;
use crate::store::{Allowed, NewKey, Permissions};

const MARK: &str = "newnewne";
const ID: &str = "b1";

fn names() -> Names {
    Names::new("shop", "reports")
}

fn key(id: &str, name: &str) -> KeySeen {
    KeySeen { id: id.to_owned(), name: name.to_owned(), ends_at: None, expired: false }
}

/// A bucket that lets these keys in.
fn open_to(keys: &[&str]) -> BucketSeen {
    let allowed =
        |id: &&str| Allowed { access_key_id: (*id).to_owned(), name: String::new(), permissions: Permissions::ALL };
    let mut bucket = BucketSeen::default();
    bucket.id = ID.to_owned();
    bucket.keys = keys.iter().map(allowed).collect();
    bucket
}

fn asked(generation: i64) -> AnkkaBucket {
    let spec = AnkkaBucketSpec {
        store: "garage".to_owned(),
        credential: true,
        credential_generation: generation,
        ..AnkkaBucketSpec::default()
    };
    AnkkaBucket::new("reports", spec)
}

/// One whose Secret holds key `k0`.
fn provisioned(generation: i64) -> AnkkaBucket {
    let mut bucket = asked(generation);
    bucket.status = Some(AnkkaBucketStatus {
        phase: Some("provisioned".to_owned()),
        bucket: Some("shop.reports".to_owned()),
        bucket_id: Some(ID.to_owned()),
        secret: Some("reports-storage".to_owned()),
        access_key: Some("k0".to_owned()),
        ..AnkkaBucketStatus::default()
    });
    bucket
}

fn issuing(mut bucket: AnkkaBucket, name: &str) -> AnkkaBucket {
    let status = bucket.status.get_or_insert_default();
    status.bucket = Some("shop.reports".to_owned());
    status.issuing = Some(name.to_owned());
    bucket
}

fn listing(keys: Vec<KeySeen>) -> Listing {
    Listing { bucket: Some(ID.to_owned()), keys }
}

fn ours() -> SecretSeen {
    SecretSeen::Ours("7".to_owned())
}

struct Case<'a> {
    bucket: AnkkaBucket,
    listing: Listing,
    seen: Seen<'a>,
    secret: SecretSeen,
    starting: bool,
    held: Option<Held>,
}

impl Case<'_> {
    fn plan(&self) -> Plan {
        let names = names();
        let Self { bucket, listing, seen, secret, starting, held } = self;
        decide(&Facts {
            bucket,
            names: &names,
            listing,
            seen: *seen,
            secret,
            starting: *starting,
            held: held.as_ref(),
            mark: MARK,
        })
    }
}

fn case(bucket: AnkkaBucket, keys: Vec<KeySeen>, seen: Seen<'_>) -> Case<'_> {
    Case { bucket, listing: listing(keys), seen, secret: ours(), starting: false, held: None }
}

fn issue(generation: i64) -> Credential {
    Credential::Issue { name: format!("shop.reports#{generation}.{MARK}"), generation }
}

fn keep(generation: i64) -> Credential {
    Credential::Keep { key: "k0".to_owned(), generation }
}

const K0: &str = "shop.reports#0.aaaaaaaa";

#[test]
fn nothing_is_done_about_a_settled_bucket() {
    for seen in [Seen::NotLookedAt, Seen::There(&open_to(&["k0"]))] {
        let plan = case(provisioned(0), vec![key("k0", K0)], seen).plan();
        let others = matches!(seen, Seen::There(_)).then(Vec::new);
        let nothing = Plan {
            intent: None,
            recovered: false,
            orphans: Vec::new(),
            make_bucket: false,
            origins: None,
            allow: Vec::new(),
            credential: keep(0),
            former: BTreeMap::new(),
            expired: Vec::new(),
            others,
            note: None,
        };
        assert_eq!(plan, nothing);
    }
}

#[test]
fn a_first_bucket_is_written_down_with_its_key_before_either_is_made() {
    let mut case = case(asked(0), Vec::new(), Seen::Absent);
    case.secret = SecretSeen::Absent;
    case.listing.bucket = None;
    let plan = case.plan();
    assert!(plan.make_bucket && !plan.recovered);
    assert_eq!(plan.credential, issue(0));
    let name = Some(format!("shop.reports#0.{MARK}"));
    assert_eq!(plan.intent, Some(Intent { issuing: name, bucket_id: None }));
}

#[test]
fn a_bucket_that_is_there_before_its_record_is_recovered() {
    let there = open_to(&["k0"]);
    // The record is gone, the Secret is not: it holds the only key that it can hold.
    let plan = case(asked(0), vec![key("k0", K0)], Seen::There(&there)).plan();
    assert!(plan.recovered && plan.intent.is_none() && !plan.make_bucket);
    assert_eq!(plan.credential, keep(0));
    // The namespace was made again: a new key, and the one before ends.
    let mut again = case(asked(0), vec![key("k0", K0)], Seen::There(&there));
    again.secret = SecretSeen::Absent;
    let plan = again.plan();
    assert_eq!((plan.recovered, plan.credential), (true, issue(0)));
    assert_eq!(plan.former, BTreeMap::from([("k0".to_owned(), End::Open)]));
}

#[test]
fn a_secret_that_can_hold_one_key_or_another_is_given_a_new_one() {
    let there = open_to(&["k0", "k1"]);
    let keys = vec![key("k0", K0), key("k1", "shop.reports#1.bbbbbbbb")];
    let plan = case(asked(0), keys, Seen::There(&there)).plan();
    assert_eq!(plan.credential, issue(1));
    assert_eq!(plan.former.len(), 2, "both may be in use");
    let plan = case(asked(0), Vec::new(), Seen::There(&open_to(&[]))).plan();
    assert_eq!(plan.credential, issue(0), "the one that it held is gone");
}

#[test]
fn a_reissue_makes_a_key_of_the_generation_that_is_asked_for() {
    let there = open_to(&["k0"]);
    let plan = case(provisioned(3), vec![key("k0", K0)], Seen::There(&there)).plan();
    assert_eq!(plan.credential, issue(3));
    assert_eq!(plan.former, BTreeMap::from([("k0".to_owned(), End::Open)]));
    assert_eq!(plan.intent.expect("an intent").bucket_id.as_deref(), Some(ID));
}

#[test]
fn an_end_is_never_moved() {
    let at: Timestamp = "2026-12-01T10:00:00Z".parse().expect("a time");
    let mut former = key("k1", "shop.reports#0.bbbbbbbb");
    let mut bucket = provisioned(0);
    bucket.status.as_mut().expect("a status").former_keys =
        vec![FormerKey { access_key: "k1".to_owned(), ends_at: "2026-12-01T10:00:00Z".to_owned() }];
    let there = open_to(&["k0", "k1"]);
    let plan = case(bucket.clone(), vec![key("k0", K0), former.clone()], Seen::There(&there)).plan();
    assert_eq!(plan.former["k1"], End::Recorded(at), "the store has not heard of it");
    former.ends_at = Some(at);
    let plan = case(bucket.clone(), vec![key("k0", K0), former.clone()], Seen::There(&there)).plan();
    assert_eq!(plan.former["k1"], End::Kept(at));
    former.expired = true;
    let plan = case(bucket, vec![key("k0", K0), former], Seen::There(&there)).plan();
    assert_eq!((plan.former.len(), plan.expired), (0, vec!["k1".to_owned()]));
}

#[test]
fn a_key_that_was_begun_is_gone_on_with_while_its_secret_is_known() {
    let name = "shop.reports#1.bbbbbbbb";
    let there = open_to(&["k0"]);
    let keys = vec![key("k0", K0), key("k1", name)];
    let mut begun = case(issuing(provisioned(1), name), keys, Seen::There(&there));
    let new = NewKey { id: "k1".to_owned(), secret: "s".to_owned().into() };
    begun.held = Some(Held { name: name.to_owned(), key: new, written: None });
    let plan = begun.plan();
    assert_eq!((plan.credential, plan.intent), (Credential::Resume { generation: 1 }, None));
    assert_eq!(plan.former.into_keys().collect::<Vec<_>>(), ["k0"]);

    // Asked for once more meanwhile: the one that was begun may be in the Secret.
    begun.bucket.spec.credential_generation = 2;
    begun.seen = Seen::There(&there);
    assert_eq!(begun.plan().credential, issue(2));
}

#[test]
fn a_key_nobody_heard_of_ends_at_once_when_it_never_reached_the_secret() {
    let name = "shop.reports#1.bbbbbbbb";
    let keys = || vec![key("k0", K0), key("k1", name)];
    let unused = open_to(&["k0"]);
    let plan = case(issuing(provisioned(1), name), keys(), Seen::There(&unused)).plan();
    assert_eq!((plan.credential, plan.orphans), (issue(1), vec!["k1".to_owned()]));
    assert_eq!(plan.former.into_keys().collect::<Vec<_>>(), ["k0"]);

    let used = open_to(&["k0", "k1"]);
    let plan = case(issuing(provisioned(1), name), keys(), Seen::There(&used)).plan();
    assert_eq!((plan.orphans.len(), plan.former.len()), (0, 2), "it was let in, so it may have reached the Secret");

    let mut anew = open_to(&[]);
    anew.id = "b2".to_owned();
    let plan = case(issuing(provisioned(1), name), keys(), Seen::There(&anew)).plan();
    assert_eq!((plan.orphans.len(), plan.former.len()), (0, 2), "a bucket that was made anew lets nobody in");
    let plan = case(issuing(provisioned(1), name), keys(), Seen::Absent).plan();
    assert_eq!((plan.orphans.len(), plan.former.len()), (0, 2));
}

#[test]
fn a_secret_that_was_deleted_is_written_with_a_key_for_which_instances_are_replaced() {
    let there = open_to(&["k0"]);
    let mut deleted = case(provisioned(0), vec![key("k0", K0)], Seen::There(&there));
    deleted.secret = SecretSeen::Absent;
    assert_eq!(deleted.plan().credential, issue(1));
}

#[test]
fn a_key_that_the_store_has_lost_is_issued_again_only_at_the_start_and_without_a_rollout() {
    let there = open_to(&[]);
    let mut lost = case(provisioned(0), Vec::new(), Seen::There(&there));
    assert_eq!(lost.plan().credential, Credential::Lost { key: "k0".to_owned(), generation: 0 });
    lost.starting = true;
    assert_eq!(lost.plan().credential, issue(0));
}

#[test]
fn a_bucket_that_was_made_anew_lets_in_every_key_that_is_in_use() {
    let at: Timestamp = "2026-12-01T10:00:00Z".parse().expect("a time");
    let former = KeySeen { ends_at: Some(at), ..key("k1", "shop.reports#0.bbbbbbbb") };
    let keys = || vec![key("k0", K0), former.clone()];
    let plan = case(provisioned(0), keys(), Seen::Absent).plan();
    assert_eq!((plan.make_bucket, plan.allow), (true, vec!["k0".to_owned(), "k1".to_owned()]));
    // The pass that made it was cut short.
    let mut half = open_to(&["k0"]);
    half.id = "b2".to_owned();
    let plan = case(provisioned(0), keys(), Seen::There(&half)).plan();
    assert_eq!((plan.make_bucket, plan.allow), (false, vec!["k1".to_owned()]));
}

#[test]
fn what_somebody_does_to_a_key_by_hand_is_said_and_left() {
    let there = open_to(&["theirs"]);
    let plan = case(provisioned(0), vec![key("k0", K0)], Seen::There(&there)).plan();
    assert_eq!((plan.allow.len(), plan.credential), (0, keep(0)));
    assert_eq!(plan.others, Some(vec!["theirs".to_owned()]));
    assert!(plan.note.expect("a note").starts_with("somebody has taken from access key k0"));
    let ending = KeySeen { ends_at: Some(Timestamp::UNIX_EPOCH), ..key("k0", K0) };
    let plan = case(provisioned(0), vec![ending], Seen::There(&open_to(&["k0"]))).plan();
    assert!(plan.note.expect("a note").starts_with("somebody has given access key k0 an end"));
}

#[test]
fn the_rule_is_what_an_exposed_bucket_asks_for_and_none_otherwise() {
    let there = open_to(&["k0"]);
    let mut bucket = provisioned(0);
    bucket.spec.origins = vec!["https://app.example.com".to_owned()];
    assert_eq!(case(bucket.clone(), vec![key("k0", K0)], Seen::There(&there)).plan().origins, None);
    bucket.spec.exposed = true;
    let plan = case(bucket.clone(), vec![key("k0", K0)], Seen::There(&there)).plan();
    assert_eq!(plan.origins.as_deref(), Some(&["https://app.example.com".to_owned()][..]));
    assert!(must_look(&bucket, &listing(vec![key("k0", K0)]), &ours(), false, false), "services may change theirs");
}

#[test]
fn a_settled_bucket_is_not_looked_at_before_it_is_due() {
    let keys = || listing(vec![key("k0", K0)]);
    let look = |bucket: &AnkkaBucket, listing: &Listing, secret: &SecretSeen, starting, due| {
        must_look(bucket, listing, secret, starting, due)
    };
    let settled = provisioned(0);
    assert!(!look(&settled, &keys(), &ours(), true, false));
    assert!(look(&settled, &keys(), &ours(), false, true));
    assert!(look(&settled, &Listing { bucket: None, ..keys() }, &ours(), false, false));
    assert!(look(&settled, &keys(), &SecretSeen::Absent, false, false));
    assert!(look(&settled, &listing(Vec::new()), &ours(), true, false));
    assert!(look(&asked(0), &keys(), &ours(), false, false));
    assert!(look(&issuing(settled, K0), &keys(), &ours(), false, false));
}
