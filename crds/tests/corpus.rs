//! The corpus of descriptors, judged as files and as resources.

use std::collections::BTreeSet;

use ankka_crds::corpus::{self, Case, Layer};
use ankka_crds::resources::{AnkkaProjectSpec, Subject};
use ankka_crds::{Context, Located, ServiceSpec, descriptor, names, project, secrets, validate};
use serde_json::Value;

#[test]
fn every_case_is_judged_as_expected_in_a_file() {
    for case in corpus::cases_for(Layer::File) {
        let found: Vec<String> = match descriptor::read(&case.text, case.context()) {
            Ok(_) => Vec::new(),
            Err(problems) => problems.iter().map(written).collect(),
        };
        let expected: Vec<String> = case
            .problems
            .iter()
            .map(|problem| {
                let corpus::Expected { message, path, line, column } = problem;
                format!("{line}:{column} {path}: {message}")
            })
            .collect();
        assert_eq!(found, expected, "{}", case.name);
    }
}

#[test]
fn every_case_is_judged_as_expected_as_a_resource() {
    for case in corpus::cases_for(Layer::Api) {
        let (name, service) = resource(&case);
        let found: Vec<(String, String)> = match validate(&name, &service, case.context()) {
            Ok(_) => Vec::new(),
            Err(problems) => problems.into_iter().map(|problem| (problem.path, problem.message)).collect(),
        };
        let expected: Vec<(String, String)> =
            case.problems.iter().map(|problem| (problem.path.clone(), problem.message.clone())).collect();
        assert_eq!(found, expected, "{}", case.name);
    }
}

#[test]
fn a_span_is_the_offending_piece_of_what_was_read() {
    for case in corpus::cases_for(Layer::File) {
        for problem in descriptor::read(&case.text, case.context()).err().unwrap_or_default() {
            let before = case.text.get(..problem.span.start).expect("the span is within the file");
            assert!(problem.span.end <= case.text.len() && problem.span.start <= problem.span.end, "{}", case.name);
            let line = before.split(|byte| *byte == b'\n').count();
            assert_eq!(problem.line, line, "{}", case.name);
        }
    }
}

#[test]
fn both_readers_understand_a_valid_descriptor_alike() {
    for case in corpus::cases().iter().filter(|case| case.problems.is_empty() && case.applies_to(Layer::File)) {
        let descriptor = descriptor::read(&case.text, case.context()).expect("the case is valid");
        let (name, service) = resource(case);
        assert_eq!((descriptor.name, descriptor.service), (name, service), "{}", case.name);
    }
}

#[test]
fn each_sentence_of_our_own_is_documented_and_produced() {
    let page = include_str!("../../docs/reference/messages.md");
    let sentences: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |").map(|(sentence, _)| sentence))
        .collect();
    assert!(sentences.len() > 20, "the table of messages was not found");
    let mut produced: BTreeSet<String> =
        corpus::cases().into_iter().flat_map(|case| case.problems).map(|problem| problem.message).collect();
    produced.insert(too_large());
    for id in ["", "Shop", "system", &"a".repeat(47)] {
        let problems = project::validate(id, names::DEFAULT_PREFIX, None).expect_err("the id breaks a rule");
        produced.extend(problems.into_iter().map(|problem| problem.message));
    }
    produced.extend(about_secrets());
    produced.extend(about_administrators());
    for sentence in &sentences {
        assert!(produced.iter().any(|message| matches(message, sentence)), "no case produces: {sentence}");
    }
    for message in &produced {
        let known = sentences.iter().chain(&DOCUMENTED).any(|sentence| matches(message, sentence));
        assert!(known, "neither the documents nor the table have: {message}");
    }
    for sentence in DOCUMENTED {
        assert!(produced.iter().any(|message| matches(message, sentence)), "no case produces: {sentence}");
    }
}

/// What is said about Secrets that cannot be set.
fn about_secrets() -> Vec<String> {
    let names = ["", "KEY=value", "Keys", "ankka-keys", "cart-db"].map(secrets::validate_name);
    let entries = [("", 1), ("a b", 1), ("KEY", 0), ("KEY", secrets::VALUE_LIMIT + 1)];
    let entries = entries.map(|(key, length)| secrets::validate_entry(key, length));
    names.into_iter().chain(entries).filter_map(Result::err).collect()
}

/// What is said about administrators that nobody can be, and about Secrets to pull with that cannot be.
fn about_administrators() -> Vec<String> {
    let subject = |kind: &str, name: &str, namespace: Option<&str>| Subject {
        kind: kind.to_owned(),
        name: name.to_owned(),
        namespace: namespace.map(str::to_owned),
    };
    let spec = AnkkaProjectSpec {
        administrators: vec![
            subject("Robot", "r", None),
            subject("User", " ", None),
            subject("ServiceAccount", "Deployer", Some("CI")),
            subject("ServiceAccount", "deployer", None),
            subject("Group", "g", Some("ci")),
        ],
        image_pull_secrets: vec!["Not Ok".to_owned()],
        ..AnkkaProjectSpec::default()
    };
    let problems = project::validate_spec(&spec).expect_err("each breaks a rule");
    problems.into_iter().map(|problem| problem.message).collect()
}

#[test]
fn generated_descriptors_are_the_same_each_time_and_break_many_rules() {
    let descriptors: Vec<Value> = corpus::generated(7, 2000).collect();
    assert_eq!(descriptors, corpus::generated(7, 2000).collect::<Vec<_>>());
    let mut messages = BTreeSet::new();
    let mut valid = 0;
    for descriptor in &descriptors {
        let service: ServiceSpec = serde_json::from_value(descriptor["service"].clone()).expect("the types are right");
        let name = descriptor["name"].as_str().expect("the name is a string");
        match validate(name, &service, Context::default()) {
            Ok(_) => valid += 1,
            Err(problems) => messages.extend(problems.into_iter().map(|problem| problem.message)),
        }
    }
    assert!(valid > 20, "{valid} are valid");
    assert!(messages.len() > 100, "{} messages", messages.len());
}

#[test]
fn the_size_limit_is_the_last_size_that_is_read() {
    assert_eq!(too_large(), "the descriptor is 1048577 bytes, over the 1048576 byte limit");
    let spaces = vec![b' '; descriptor::SIZE_LIMIT];
    let problems = descriptor::read(&spaces, Context::default()).expect_err("there is nothing in it");
    assert_eq!(problems[0].problem.message, "not JSON: the file is empty");
}

/// What is said about a file of one byte too many, which is not worth keeping in the corpus.
fn too_large() -> String {
    let spaces = vec![b' '; descriptor::SIZE_LIMIT + 1];
    let problems = descriptor::read(&spaces, Context::default()).expect_err("it is too large");
    assert_eq!(problems.len(), 1);
    problems[0].problem.message.clone()
}

fn written(problem: &Located) -> String {
    let Located { problem, line, column, .. } = problem;
    format!("{line}:{column} {}: {}", problem.path, problem.message)
}

fn resource(case: &Case) -> (String, ServiceSpec) {
    let (name, service) = case.resource();
    let service =
        serde_json::from_value(service).unwrap_or_else(|error| panic!("{} is not for the API: {error}", case.name));
    (name, service)
}

/// Whether a message is one of a sentence in which `<…>` stands for anything.
fn matches(message: &str, sentence: &str) -> bool {
    let mut rest = message;
    let mut parts = sentence.split('<');
    let Some(after) = parts.next().and_then(|first| rest.strip_prefix(first)) else {
        return false;
    };
    rest = after;
    for part in parts {
        let (_, literal) = part.split_once('>').expect("a placeholder is closed");
        if literal.is_empty() {
            rest = "";
        } else {
            let Some(at) = rest.find(literal) else {
                return false;
            };
            rest = &rest[at + literal.len()..];
        }
    }
    rest.is_empty()
}

/// The sentences of the user's documents and of the reference.
const DOCUMENTED: [&str; 29] = [
    "service name must not be empty",
    "service name '<name>' is invalid: lowercase letters, digits and '-', starting with a letter",
    "service image must not be empty",
    "runtime version '<text>' is not MAJOR.MINOR.PATCH (optionally followed by +build or -SNAPSHOT)",
    "hosting must be \"embedded\" or \"process\", not \"<value>\"",
    "protocol must be declared for process hosting",
    "protocol is meaningful only for process hosting",
    "protocol version '<text>' is not MAJOR.MINOR",
    "service port <n> is outside the range 1-65535",
    "env var name must not be empty",
    "env var '<name>' sets both value and secretKeyRef",
    "env var '<name>' sets neither value nor secretKeyRef",
    "env var 'ANKKA_HTTP_PORT' conflicts with the service port; declare the port instead",
    "env var '<name>' is set by the platform and cannot be declared",
    "env var '<name>': secret '<secret>' is issued by the platform and cannot be read by a service",
    "unknown instanceType '<value>'; one of small, medium, large",
    "minInstances must be at least 1",
    "maxInstances (<max>) is below minInstances (<min>)",
    "targetCpuPercent must be between 1 and 100, was <n>",
    "provisionObjectStorage cannot be combined with env var '<name>', which supplies an object store of the service's own",
    "exposeObjectStorage needs provisionObjectStorage: only a bucket the platform made can be reached from outside the cluster",
    "objectStorageOrigins needs provisionObjectStorage: it describes a bucket the platform makes",
    "objectStorageCredential needs provisionObjectStorage: it describes a bucket the platform makes",
    "objectStorageVersionAgeDays needs provisionObjectStorage: it describes a bucket the platform makes",
    "objectStorageOrigins: '<origin>' is not an origin",
    "objectStorageVersionAgeDays is <n>; it must be one or more",
    "objectStorageCredential: a bucket in Garage is reached only with a storage credential",
    "bucket name '<name>' is <n> characters, over the 63 character limit for a bucket's name; a shorter service name or project id is the only fix",
    "object storage 'gcs' needs a cloud provider, and the installation names none",
];
