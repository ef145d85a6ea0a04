//! What holds for any input.

use std::collections::{BTreeMap, HashMap};

use ankka_crds::resources::{Autoscaling, EnvEntry, ResourcesSpec, SecretKeyRef};
use ankka_crds::{Context, Installation, Problem, ServiceSpec, Store, corpus, descriptor, names, validate};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

fn verdict_on_file(text: &[u8], context: Context<'_>) -> Result<(), Vec<Problem>> {
    let problems = descriptor::read(text, context).map(|_| ());
    problems.map_err(|problems| problems.into_iter().map(|located| located.problem).collect())
}

/// Text that is nearly a descriptor: a corpus entry with a piece cut out, doubled or replaced.
fn mutilated() -> impl Strategy<Value = Vec<u8>> {
    let cases: Vec<Vec<u8>> =
        corpus::cases().into_iter().map(|case| case.text).filter(|text| text.len() < 4096).collect();
    (prop::sample::select(cases), any::<prop::sample::Index>(), 0..40_usize, vec(any::<u8>(), 0..6)).prop_map(
        |(mut text, at, length, other)| {
            if !text.is_empty() {
                let start = at.index(text.len());
                let end = text.len().min(start + length);
                text.splice(start..end, other);
            }
            text
        },
    )
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-zA-Z0-9._/-]{0,12}",
        1 => any::<String>(),
        2 => prop::sample::select(vec![
            "cart", "process", "embedded", "1.0", "0.2.0", "small", "ANKKA_HTTP_PORT", "POD_IP", "ANKKA_S3_X",
            "cart-storage", "https://h:1", "*", "a.b", "",
        ]).prop_map(str::to_owned),
    ]
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -2..12_i64,
        prop::sample::select(vec![7626, 9000, 9010, 65535, 65536, i64::from(i32::MAX)])
    ]
}

fn env_entry() -> impl Strategy<Value = EnvEntry> {
    let secret = (option::of(word()), option::of(word())).prop_map(|(name, key)| SecretKeyRef { name, key });
    (option::of(word()), option::of(word()), option::of(secret)).prop_map(|(name, value, secret_key_ref)| EnvEntry {
        name,
        value,
        secret_key_ref,
    })
}

fn resources() -> impl Strategy<Value = ResourcesSpec> {
    let scaling = (option::of(number()), option::of(number()), option::of(number())).prop_map(
        |(min_instances, max_instances, target_cpu_percent)| Autoscaling {
            min_instances,
            max_instances,
            target_cpu_percent,
        },
    );
    (option::of(word()), option::of(scaling))
        .prop_map(|(instance_type, autoscaling)| ResourcesSpec { instance_type, autoscaling })
}

fn pairs() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map(word(), word(), 0..4)
}

fn service() -> impl Strategy<Value = ServiceSpec> {
    let workload = (option::of(word()), option::of(word()), option::of(word()), option::of(word()));
    let beside = (option::of(vec(env_entry(), 0..5)), option::of(pairs()), option::of(pairs()));
    let scale = (option::of(any::<bool>()), option::of(number()), option::of(resources()));
    let storage = (
        option::of(any::<bool>()),
        option::of(any::<bool>()),
        option::of(vec(word(), 0..3)),
        option::of(any::<bool>()),
        option::of(number()),
    );
    (workload, beside, scale, storage).prop_map(|(workload, beside, scale, storage)| ServiceSpec {
        image: workload.0,
        runtime: workload.1,
        hosting: workload.2,
        protocol: workload.3,
        env: beside.0,
        labels: beside.1,
        annotations: beside.2,
        http: scale.0,
        port: scale.1,
        resources: scale.2,
        provision_object_storage: storage.0,
        expose_object_storage: storage.1,
        object_storage_origins: storage.2,
        object_storage_credential: storage.3,
        object_storage_version_age_days: storage.4,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_get_an_answer(bytes in prop_oneof![vec(any::<u8>(), 0..200), mutilated()]) {
        match descriptor::read(&bytes, Context::default()) {
            Ok(read) => prop_assert!(serde_json::from_slice::<Value>(&bytes).is_ok() || bytes.starts_with(b"\xef\xbb\xbf"), "{read:?}"),
            Err(problems) => {
                prop_assert!(!problems.is_empty());
                for located in problems {
                    prop_assert!(located.line > 0 && located.column > 0);
                    prop_assert!(located.span.start <= located.span.end && located.span.end <= bytes.len());
                    prop_assert!(!located.problem.message.contains('\n'), "{:?}", located.problem);
                }
            }
        }
    }

    #[test]
    fn what_is_json_is_decided_as_serde_json_decides_it(bytes in prop_oneof![vec(any::<u8>(), 0..40), mutilated()]) {
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let serde = serde_json::from_slice::<Value>(text);
        let refused = verdict_on_file(&bytes, Context::default())
            .is_err_and(|problems| problems[0].message.starts_with("not JSON"));
        // A number beyond the range of a float is JSON, which no field of ours can hold; serde_json looks no further.
        if !serde.as_ref().is_err_and(|error| error.to_string().starts_with("number out of range")) {
            prop_assert_eq!(refused, serde.is_err(), "{:?}", serde);
        }
    }

    #[test]
    fn a_file_and_a_resource_are_judged_alike(name in word(), service in service(), store in option::of(any::<bool>())) {
        let installation = Installation {
            store: store.map(|garage| if garage { Store::Garage } else { Store::Gcs }),
            cloud_provider: None,
        };
        let context = Context { project: Some("shop"), installation: Some(&installation) };
        let direct = validate(&name, &service, context).map(|_| ());
        for text in [json!({ "name": name, "service": service }).to_string(), format!("{:#}", json!({ "service": service, "name": name }))] {
            prop_assert_eq!(&verdict_on_file(text.as_bytes(), context), &direct);
        }
    }

    #[test]
    fn derived_names_never_collide_and_always_fit(pairs in vec(("[a-c]([a-c-]{0,44}[a-c])?", "[a-c]([a-c-]{0,61}[a-c])?"), 1..60)) {
        let mut taken: HashMap<(&str, String), (String, String)> = HashMap::new();
        for (project, service) in pairs {
            let names = [
                ("namespace", names::namespace("a-prefix-of-16-c", &project), 63, false),
                ("account", names::account(&service), 253, true),
                ("config", names::cluster_config(&service), 253, true),
                ("secret", names::database_secret(&service), 253, true),
                ("secret", names::storage_secret(&service), 253, true),
                ("database", names::database(&project, &service), names::DATABASE_LIMIT, true),
                ("database", names::database_login(&project, &service, 1), names::DATABASE_LIMIT, true),
                ("database", names::database_login(&project, &service, i64::MAX), names::DATABASE_LIMIT, true),
                ("bucket", names::bucket(&project, &service), 110, true),
            ];
            for (index, (kind, name, limit, per_service)) in names.into_iter().enumerate() {
                prop_assert!(name.len() <= limit, "{kind} {name}");
                // Names inside a namespace need to differ within a project only.
                let scoped = if matches!(kind, "account" | "config" | "secret") { format!("{project}/{name}") } else { name };
                let owner = (format!("{index} {project}"), if per_service { service.clone() } else { String::new() });
                let earlier = taken.entry((kind, scoped)).or_insert_with(|| owner.clone());
                prop_assert_eq!(&*earlier, &owner);
            }
        }
    }
}

#[test]
fn a_namespace_leads_back_to_its_project() {
    assert_eq!(names::project_of("ankka", "ankka-shop"), Some("shop"));
    for stranger in ["ankka", "ankka-", "ankkashop", "kube-system", ""] {
        assert_eq!(names::project_of("ankka", stranger), None);
    }
    assert_eq!(names::project_of("ankka", &names::namespace("ankka", "a-b")), Some("a-b"));
}

#[test]
fn a_long_database_name_is_cut_and_marked() {
    assert_eq!(names::database("shop", "cart"), "shop.cart");
    let long = names::database("shop", &"a".repeat(59));
    assert_eq!(long, format!("shop.{}-3fb44bdd", "a".repeat(49)));
    assert_eq!(names::database("shop", &"a".repeat(58)).len(), 63);
    assert!(!names::database("shop", &"a".repeat(58)).contains('-'));
    let chosen = long.strip_prefix("shop.").expect("it begins with the project");
    assert_ne!(names::database("shop", chosen), long, "nobody can choose another's cut name");
    assert_eq!(names::database_login("shop", "cart", 3), "shop.cart#3");
}

#[test]
fn only_one_pair_of_secrets_shares_a_name_and_the_documents_make_it_so() {
    assert_eq!(names::storage_secret("x-cloud"), names::cloud_storage_secret("x"));
    for issued in [names::storage_secret("cart"), names::cloud_storage_secret("cart")] {
        assert!(names::is_issued_secret(&issued));
    }
    assert!(!names::is_issued_secret(&names::database_secret("cart")));
}

#[test]
fn many_problems_are_found_and_placed_in_reasonable_time() {
    let labels: Vec<String> = (0..20_000).map(|index| format!("\"bad key {index}\": \"bad value\"")).collect();
    let env = vec!["{}"; 50_000].join(",");
    let text =
        format!(r#"{{"name":"cart","service":{{"image":"i","labels":{{{}}},"env":[{env}]}}}}"#, labels.join(","));
    let began = std::time::Instant::now();
    let problems = descriptor::read(text.as_bytes(), Context::default()).expect_err("it is full of faults");
    assert!(problems.len() > 140_000, "{}", problems.len());
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}
