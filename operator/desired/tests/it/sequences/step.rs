//! What can happen to a service.

use ankka_crds::ServiceSpec;
use ankka_desired::ChildKind;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

/// One thing that happens.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Somebody applies a descriptor; one that breaks a rule must change nothing.
    Apply(Descriptor),
    /// Somebody gives a command.
    Command(Command),
    /// Two commands are made from what both have read at once.
    Race(Command, Command),
    /// A command made from what was read so many steps ago, which is not tried again when it is refused.
    Stale(Command, usize),
    /// The so many-th other descriptor of the history is brought back.
    Rollback(usize),
    /// The service is deleted; the next apply makes it anew.
    Delete,
    /// The operator makes a pass.
    Pass(Pass),
    /// Others do one step of their work.
    Turn(Controller),
    /// Somebody meddles with the service's objects.
    Meddle(Meddling),
    /// What surrounds the service changes.
    Surroundings(Change),
}

/// One pass of the operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    /// How many observations ago it saw the service.
    pub(super) service: usize,
    /// How many observations ago it saw everything else.
    pub(super) others: usize,
    /// Where it is disturbed.
    pub(super) fault: Option<Fault>,
}

/// Where one pass is disturbed. The operator is started again afterwards.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// Nothing of the action is sent.
    Before(usize),
    /// The action is done, and the rest is not.
    After(usize),
    /// The action is done, and sent again as if it had not been.
    ReplyLost(usize),
}

/// A command of the command line.
#[derive(Clone, Copy, Debug)]
pub(super) enum Command {
    Pause,
    Resume,
    Restart,
    Expose,
    Unexpose,
    Reissue,
}

/// Whoever else works on the service's objects.
#[derive(Clone, Copy, Debug)]
pub(super) enum Controller {
    /// The Deployment controller and the nodes.
    Workload,
    /// It finds that a rollout makes no progress.
    Deadline,
    /// The garbage collector.
    Garbage,
    /// The database controller.
    Database,
    /// The gateway's controller.
    Gateway,
}

/// What somebody does with kubectl.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meddling {
    /// `kubectl scale`.
    Scale(i32),
    /// `kubectl set image`.
    Image,
    /// `kubectl set env`.
    Variable,
    /// `kubectl rollout restart`, which is theirs to do.
    RolloutRestart,
    /// A label of ours gets another value.
    Label(ChildKind),
    /// A label of their own, which stays.
    OwnLabel(ChildKind),
    /// The content of something but the Deployment.
    Content,
    /// The owner reference is taken away.
    Disown(ChildKind),
    /// An object is deleted.
    Delete(ChildKind),
    /// They make an object of their own under the name, where there is none.
    Occupy(ChildKind),
    /// They remove every object that is theirs.
    Vacate,
    /// The generation of the login that is asked for is set on the AnkkaDatabase.
    Login(i64),
    /// The Secret with the login is deleted.
    LoseSecret,
}

/// What of the surroundings changes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// The namespace has room for so many instances.
    Quota(Option<usize>),
    /// So many instances fail.
    Crash(usize),
    /// They are well again.
    Heal,
    /// The database server answers or does not.
    DatabaseServer(bool),
    /// The gateway accepts routes or does not.
    Gateway(bool),
    /// The cluster knows HTTPRoutes or does not.
    GatewayApi(bool),
    /// Another service claims the host name, with a route or without.
    Rival(Option<bool>),
    /// The namespace is a project's or is not.
    Project(bool),
    /// The installation gets this sidecar.
    Sidecar(u8),
}

/// A descriptor, as far as it varies.
#[derive(Clone, Debug)]
pub(super) struct Descriptor {
    image: Image,
    instances: i64,
    port: Option<u16>,
    http: Option<bool>,
    process: bool,
    supplied: bool,
    variable: Option<u8>,
    label: bool,
    runtime: Option<&'static str>,
    broken: Option<Broken>,
}

/// An image, and what becomes of its instances.
#[derive(Clone, Copy, Debug)]
enum Image {
    Good(u8),
    /// It is never ready.
    Bad,
}

/// A rule that a descriptor breaks.
#[derive(Clone, Copy, Debug)]
enum Broken {
    NoImage,
    Port,
    Instances,
    Reserved,
    Protocol,
    Label,
}

/// The tag of an image whose instances are never ready.
pub(super) const BAD: &str = ":bad";

impl Descriptor {
    /// It says nothing that it does not have to.
    pub(super) fn simple(instances: i64) -> Self {
        Self {
            image: Image::Good(1),
            instances,
            port: None,
            http: None,
            process: false,
            supplied: false,
            variable: None,
            label: false,
            runtime: None,
            broken: None,
        }
    }

    /// Its image is missing, and its database its own.
    pub(super) fn missing(instances: i64) -> Self {
        Self { image: Image::Bad, supplied: true, ..Self::simple(instances) }
    }

    /// As the API server gets it.
    pub(super) fn service(&self) -> ServiceSpec {
        let tag = match self.image {
            Image::Good(number) => number.to_string(),
            Image::Bad => "bad".to_owned(),
        };
        let mut service = json!({
            "image": format!("registry.example.com/acme/cart:{tag}"),
            "resources": { "autoscaling": { "minInstances": self.instances } },
        });
        let mut env = Vec::new();
        if self.supplied {
            env.push(json!({ "name": "ANKKA_DB_HOST", "value": "db.example.com" }));
        }
        if let Some(number) = self.variable {
            env.push(json!({ "name": "MODE", "value": number.to_string() }));
        }
        service["port"] = json!(self.port);
        service["http"] = json!(self.http);
        service["runtime"] = json!(self.runtime);
        if self.process {
            service["hosting"] = json!("process");
            service["protocol"] = json!("1.0");
        }
        if self.label {
            service["labels"] = json!({ "team": "a" });
            service["annotations"] = json!({ "example.com/owner": "a" });
        }
        match self.broken {
            None => {}
            Some(Broken::NoImage) => service["image"] = json!(""),
            Some(Broken::Port) => (service["http"], service["port"]) = (json!(true), json!(0)),
            Some(Broken::Instances) => service["resources"]["autoscaling"]["minInstances"] = json!(0),
            Some(Broken::Reserved) => env.push(json!({ "name": "ANKKA_HTTP_PORT", "value": "1" })),
            Some(Broken::Protocol) => service["protocol"] = json!("one"),
            Some(Broken::Label) => service["labels"] = json!({ "-": "x" }),
        }
        service["env"] = json!(env);
        serde_json::from_value(service).expect("a service object")
    }

    /// Whether it breaks a rule, by how it was made.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Whether it can be run on the platform of the tests and its instances become ready.
    pub(super) fn is_good(&self) -> bool {
        !self.is_broken() && matches!(self.image, Image::Good(_)) && self.runtime != Some(TOO_NEW)
    }
}

/// A version that the platform of the tests does not run.
const TOO_NEW: &str = "9.0.0";

pub(super) fn descriptors() -> impl Strategy<Value = Descriptor> {
    let broken = select(vec![
        Broken::NoImage,
        Broken::Port,
        Broken::Instances,
        Broken::Reserved,
        Broken::Protocol,
        Broken::Label,
    ]);
    (
        prop_oneof![4 => (1..4_u8).prop_map(Image::Good), 1 => Just(Image::Bad)],
        1..5_i64,
        select(vec![None, Some(8080)]),
        select(vec![None, None, Some(true), Some(false)]),
        prop::bool::weighted(0.25),
        prop::bool::weighted(0.25),
        select(vec![None, Some(1), Some(2)]),
        any::<bool>(),
        select(vec![None, None, None, None, Some("0.2.0"), Some(TOO_NEW)]),
        prop::option::weighted(0.15, broken),
    )
        .prop_map(|(image, instances, port, http, process, supplied, variable, label, runtime, broken)| {
            Descriptor { image, instances, port, http, process, supplied, variable, label, runtime, broken }
        })
}

fn commands() -> impl Strategy<Value = Command> {
    use Command::{Expose, Pause, Reissue, Restart, Resume, Unexpose};
    select(vec![Pause, Resume, Resume, Restart, Restart, Expose, Expose, Unexpose, Reissue])
}

fn passes() -> impl Strategy<Value = Pass> {
    let fault = (0..9_usize, 0..3).prop_map(|(at, kind)| match kind {
        0 => Fault::Before(at),
        1 => Fault::After(at),
        _ => Fault::ReplyLost(at),
    });
    let lag = || prop_oneof![3 => Just(0), 1 => 1..6_usize];
    (lag(), lag(), prop::option::weighted(0.3, fault)).prop_map(|(service, others, fault)| Pass {
        service,
        others,
        fault,
    })
}

fn controllers() -> impl Strategy<Value = Controller> {
    use Controller::{Database, Deadline, Garbage, Gateway, Workload};
    select(vec![Workload, Workload, Workload, Workload, Deadline, Garbage, Database, Database, Gateway])
}

fn meddling() -> impl Strategy<Value = Meddling> {
    let kinds = || select(ChildKind::all().to_vec());
    prop_oneof![
        (0..6).prop_map(Meddling::Scale),
        Just(Meddling::Image),
        Just(Meddling::Variable),
        Just(Meddling::RolloutRestart),
        kinds().prop_map(Meddling::Label),
        kinds().prop_map(Meddling::OwnLabel),
        Just(Meddling::Content),
        kinds().prop_map(Meddling::Disown),
        kinds().prop_map(Meddling::Delete),
        kinds().prop_map(Meddling::Occupy),
        Just(Meddling::Vacate),
        (0..4_i64).prop_map(Meddling::Login),
        Just(Meddling::LoseSecret),
    ]
}

fn changes() -> impl Strategy<Value = Change> {
    prop_oneof![
        prop::option::of(0..6_usize).prop_map(Change::Quota),
        (1..4_usize).prop_map(Change::Crash),
        Just(Change::Heal),
        any::<bool>().prop_map(Change::DatabaseServer),
        any::<bool>().prop_map(Change::Gateway),
        any::<bool>().prop_map(Change::GatewayApi),
        prop::option::of(any::<bool>()).prop_map(Change::Rival),
        prop::bool::weighted(0.8).prop_map(Change::Project),
        (0..3_u8).prop_map(Change::Sidecar),
    ]
}

pub(super) fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => descriptors().prop_map(Step::Apply),
        5 => commands().prop_map(Step::Command),
        1 => (commands(), commands()).prop_map(|(first, second)| Step::Race(first, second)),
        1 => (commands(), 1..6_usize).prop_map(|(command, age)| Step::Stale(command, age)),
        1 => (0..3_usize).prop_map(Step::Rollback),
        1 => Just(Step::Delete),
        10 => passes().prop_map(Step::Pass),
        10 => controllers().prop_map(Step::Turn),
        3 => meddling().prop_map(Step::Meddle),
        3 => changes().prop_map(Step::Surroundings),
    ]
}
