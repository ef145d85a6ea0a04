//! Random sequences of applies, commands, faults and meddling, over the decisions and a modelled store behind the real
//! admission: wherever they lead, the end is what the last descriptor and the commands ask for.
//!
//! A few hundred run with every test run. `cargo platform prove sequences` runs 10,000; `PROPTEST_CASES` says how many.

mod cluster;
mod database;
mod gateway;
mod meddling;
mod step;
mod store;
mod workload;

use ankka_crds::{AnkkaServiceSpec, AnkkaServiceStatus, ServiceSpec, digest, history, labels};
use ankka_desired::ChildKind;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use serde_json::{Value, json};

use self::cluster::Cluster;
use self::step::{Command, Controller, Descriptor, Meddling, Pass, Step};
use self::store::Answer;

/// What the last descriptor and the commands ask for, kept beside the cluster.
#[derive(Default)]
struct Expected {
    spec: Option<AnkkaServiceSpec>,
    /// Changes since the service was made.
    changes: usize,
    /// The last descriptor that can be run and whose instances become ready.
    good: Option<ServiceSpec>,
}

impl Expected {
    fn command(&mut self, command: Command, in_place: Option<i64>) {
        let Some(spec) = &mut self.spec else { return };
        let before = spec.clone();
        store::commanded(spec, command, in_place);
        self.changes += usize::from(*spec != before);
    }

    fn apply(&mut self, descriptor: &ServiceSpec) {
        let made = self.spec.is_none();
        self.changes = if made { 0 } else { self.changes };
        let spec = self.spec.get_or_insert_default();
        self.changes += usize::from(made || spec.service != *descriptor);
        spec.service = descriptor.clone();
    }
}

fn run(steps: &[Step]) {
    let mut cluster = Cluster::default();
    let mut expected = Expected::default();
    for step in steps {
        take(&mut cluster, &mut expected, step);
        assert_eq!(cluster.service.as_ref().map(|service| &service.spec), expected.spec.as_ref(), "after {step:?}");
        cluster.observe();
    }
    cluster.calm();
    cluster.settle();
    compare(&cluster, &expected);

    // The last good descriptor brings the service back.
    let good = expected.good.clone().unwrap_or_else(|| Descriptor::simple(1).service());
    assert_ne!(cluster.apply(good.clone(), None), Answer::Refused);
    expected.apply(&good);
    cluster.command(cluster.service.clone(), Command::Resume, true);
    expected.command(Command::Resume, None);
    cluster.settle();
    compare(&cluster, &expected);
    let status = status(&cluster);
    assert_eq!(status.lifecycle.as_deref(), Some("Ready"), "{status:?}");
    assert_eq!(status.ready_instances, status.desired_instances);
    if let Some(request) = cluster.api.get(ChildKind::Database) {
        cluster.databases.check(&request);
    }
}

fn take(cluster: &mut Cluster, expected: &mut Expected, step: &Step) {
    let in_place = cluster.in_place();
    match step {
        Step::Apply(descriptor) => {
            let service = descriptor.service();
            let answer = cluster.apply(service.clone(), None);
            assert_eq!(answer == Answer::Refused, descriptor.is_broken(), "{answer:?}");
            if !descriptor.is_broken() {
                expected.apply(&service);
            }
            if descriptor.is_good() {
                expected.good = Some(service);
            }
        }
        Step::Command(command) => {
            assert_ne!(cluster.command(cluster.service.clone(), *command, true), Answer::Refused);
            expected.command(*command, in_place);
        }
        Step::Race(first, second) => {
            let read = cluster.service.clone();
            // Whoever finds it as they want it has come first.
            let found_so = read.as_ref().is_none_or(|read| store::command(read, *second, in_place).is_none());
            for (command, counts) in [(first, true), (second, !found_so)] {
                let answer = cluster.command(read.clone(), *command, true);
                assert!(matches!(answer, Answer::Stored | Answer::Unchanged), "{answer:?}");
                if counts {
                    expected.command(*command, in_place);
                }
            }
        }
        Step::Stale(command, age) => {
            let read = cluster.read_before(*age);
            let version = |service: &Option<ankka_crds::AnkkaService>| {
                service.as_ref().and_then(|service| service.metadata.resource_version.clone())
            };
            let current = version(&read) == version(&cluster.service);
            let answer = cluster.command(read, *command, false);
            if current {
                expected.command(*command, in_place);
            } else {
                assert!(matches!(answer, Answer::Conflict | Answer::Unchanged), "{answer:?}");
            }
        }
        Step::Rollback(number) => {
            if let Some((generation, descriptor)) = cluster.earlier(*number) {
                assert_eq!(cluster.apply(descriptor.clone(), Some(generation)), Answer::Stored);
                expected.apply(&descriptor);
                let service = cluster.service.as_ref().expect("a service");
                assert_eq!(history::of(service)[0].rolled_back_to, Some(generation));
            }
        }
        Step::Delete => {
            cluster.service = None;
            expected.spec = None;
        }
        Step::Pass(pass) => cluster.pass(*pass),
        Step::Turn(controller) => {
            cluster.turn(*controller);
        }
        Step::Meddle(meddling) => cluster.meddle(*meddling),
        Step::Surroundings(change) => cluster.surround(*change),
    }
}

fn status(cluster: &Cluster) -> AnkkaServiceStatus {
    cluster.service.as_ref().and_then(|service| service.status.clone()).unwrap_or_default()
}

/// The cluster is as a new one becomes in which nothing else ever happened.
fn compare(cluster: &Cluster, expected: &Expected) {
    let Some(spec) = &expected.spec else {
        let left: Vec<_> = cluster.api.state().into_keys().filter(|kind| *kind != ChildKind::Database).collect();
        assert_eq!(left, [], "of a service that is gone");
        return;
    };
    let service = cluster.service.as_ref().expect("a service");
    let changes = history::of(service);
    assert_eq!(changes.len(), expected.changes.min(history::KEPT), "{changes:?}");
    assert_eq!(changes[0].digest, digest::of_descriptor("cart", &spec.service));
    assert_eq!(Some(changes[0].generation), service.metadata.generation);

    assert_eq!(
        cluster.kept(&changes[0].digest).map(|kept| digest::of_descriptor("cart", &kept)),
        Some(changes[0].digest.clone()),
        "the present descriptor is kept"
    );

    let mut fresh = cluster.fresh(spec);
    fresh.settle();
    let (now, wanted) = (status(cluster), status(&fresh));
    if fresh.api.get(ChildKind::Deployment).is_none() {
        // It cannot be run: what ran before is left alone, but for a pause and the end of an exposure.
        assert_eq!(now.lifecycle, wanted.lifecycle);
        let detail = |status: &AnkkaServiceStatus| {
            status.detail.clone().unwrap_or_default().replace("; running instances are left running", "")
        };
        assert_eq!(detail(&now), detail(&wanted));
        let deployment = cluster.api.get(ChildKind::Deployment).filter(|_| spec.paused);
        assert!(deployment.is_none_or(|deployment| deployment["spec"]["replicas"] == 0), "paused");
        assert!(spec.exposed || cluster.api.get(ChildKind::HttpRoute).is_none(), "not exposed");
        return;
    }
    assert_eq!(plain(cluster), plain(&fresh));
    assert_eq!(told(now), told(wanted));
}

/// The children, apart from what others may add and from generations, which say when and not what.
fn plain(cluster: &Cluster) -> Vec<Value> {
    let mut state = cluster.api.state();
    state.remove(&ChildKind::Database);
    let mut bodies: Vec<_> = state.into_values().collect();
    for body in &mut bodies {
        for path in ["/metadata", "/spec/template/metadata"] {
            for field in ["labels", "annotations"] {
                let strings = body.pointer_mut(&format!("{path}/{field}")).and_then(Value::as_object_mut);
                if let Some(strings) = strings {
                    strings.retain(|key, _| {
                        !key.starts_with(meddling::THEIRS) && key != meddling::RESTARTED && key != labels::GENERATION
                    });
                    if strings.is_empty() {
                        body.pointer_mut(path).and_then(Value::as_object_mut).expect("metadata").remove(field);
                    }
                }
            }
        }
    }
    bodies
}

/// A status apart from times. Instances of before, and the digest of their image, are there until there are new ones.
fn told(mut status: AnkkaServiceStatus) -> Value {
    for condition in &mut status.conditions {
        condition.last_transition_time = String::new();
    }
    if status.lifecycle.as_deref() != Some("Ready") {
        (status.image_digest, status.ready_instances) = (None, 0);
    }
    json!(status)
}

/// A service that a hand has scaled to what the next descriptor asks for: the record says for ever that the number is
/// somebody else's.
#[test]
fn a_number_of_instances_that_somebody_else_set_first_is_taken_as_it_is() {
    let apply = |instances| Step::Apply(Descriptor::simple(instances));
    let pass = Step::Pass(Pass { service: 0, others: 0, fault: None });
    let database = vec![Step::Turn(Controller::Database); 5];
    let steps = [vec![apply(1), pass.clone()], database, vec![pass, Step::Meddle(Meddling::Scale(3)), apply(3)]];
    run(&steps.concat());
}

/// An image that is missing is applied during a pause: Kubernetes takes the Deployment without instances for rolled out, and
/// sets no deadline to those that the resume asks for.
#[test]
fn what_a_resume_starts_for_the_first_time_is_unavailable_and_not_failed() {
    let apply = Step::Apply;
    let pass = Step::Pass(Pass { service: 0, others: 0, fault: None });
    run(&[
        apply(Descriptor::simple(1)),
        Step::Command(Command::Pause),
        apply(Descriptor::missing(1)),
        pass,
        Step::Command(Command::Resume),
    ]);
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/it/sequences/regressions.txt"))),
        cases: if std::env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default().cases } else { 128 },
        max_shrink_iters: 20_000,
        ..Default::default()
    })]

    #[test]
    fn wherever_a_sequence_leads_the_end_is_what_was_asked_for(steps in prop::collection::vec(step::steps(), 1..60)) {
        run(&steps);
    }
}
