//! A crash before an action, after it, or after it with the reply lost: whatever happens, deciding again ends where the
//! undisturbed run ends.

use std::collections::BTreeMap;

use ankka_desired::{ChildKind, WorkloadState};
use serde_json::{Value, json};

use crate::support::model::{Api, Refused};
use crate::support::{World, told};

/// Where one run is disturbed, once.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Nothing of the action is sent.
    Before(usize),
    /// The action is done, and the rest is not.
    After(usize),
    /// The action is done, and sent again as if it had not been.
    ReplyLost(usize),
}

/// Observes and decides.
fn decide(world: &mut World, api: &Api) -> Vec<ankka_desired::Action> {
    world.children = api.seen();
    world.database = api.database();
    world.workload = api.get(ChildKind::Deployment).map(|deployment| WorkloadState {
        desired: i32::try_from(deployment["spec"]["replicas"].as_i64().unwrap_or_default()).unwrap_or_default(),
        ..Default::default()
    });
    world.decide().actions
}

/// Passes until nothing is left to do; returns how many actions there were.
fn run(world: &mut World, api: &mut Api, mut fault: Option<Fault>) -> usize {
    let mut count = 0;
    for _ in 0..20 {
        let actions = decide(world, api);
        if actions.is_empty() {
            if api.fulfil() {
                continue;
            }
            return count;
        }
        for action in actions {
            let here = count;
            count += 1;
            match fault {
                Some(Fault::Before(at)) if at == here => {
                    fault = None;
                    break;
                }
                Some(Fault::After(at)) if at == here => {
                    fault = None;
                    api.act(&action).expect("an action on what was just observed");
                    break;
                }
                Some(Fault::ReplyLost(at)) if at == here => {
                    fault = None;
                    api.act(&action).expect("an action on what was just observed");
                    let again = api.act(&action);
                    assert!(matches!(again, Ok(()) | Err(Refused::AlreadyExists | Refused::NotFound)), "{again:?}");
                    break;
                }
                _ => api.act(&action).expect("an action on what was just observed"),
            }
        }
    }
    panic!("the passes do not end: {:?}", told(&decide(world, api)));
}

/// Runs the change undisturbed and with each fault at each action, from the same beginning.
fn all_faults(mut before: World, change: impl Fn(&mut World, &mut Api)) {
    let mut beginning = Api::default();
    run(&mut before, &mut beginning, None);
    let start = |world: &mut World| {
        let mut api = beginning.clone();
        change(world, &mut api);
        api
    };

    let mut api = start(&mut before);
    let undisturbed = run(&mut before, &mut api, None);
    assert!(undisturbed > 0, "the change does nothing");
    let wanted = api.state();
    let writes = api.writes;
    run(&mut before, &mut api, None);
    assert_eq!(api.writes, writes, "a settled service was written");

    for at in 0..undisturbed {
        for fault in [Fault::Before(at), Fault::After(at), Fault::ReplyLost(at)] {
            let mut api = start(&mut before);
            run(&mut before, &mut api, Some(fault));
            assert_eq!(api.state(), wanted, "{fault:?}");
        }
    }
}

fn three() -> World {
    World::cart(json!({ "labels": { "team": "a" }, "resources": { "autoscaling": { "minInstances": 3 } } }))
}

#[test]
fn a_first_apply() {
    let mut nothing = three();
    nothing.project = None;
    all_faults(nothing, |world, _| world.project = three().project);
}

#[test]
fn an_update() {
    all_faults(three(), |world, _| {
        let service = &mut world.service.spec.service;
        service.image = Some("registry.example.com/acme/cart:2".to_owned());
        service.port = Some(8080);
        service.labels = Some([("tier".to_owned(), "1".to_owned())].into());
        service.resources = None;
    });
}

#[test]
fn a_pause_and_a_resume() {
    all_faults(three(), |world, _| world.service.spec.paused = true);
    let mut paused = three();
    paused.service.spec.paused = true;
    all_faults(paused, |world, _| world.service.spec.paused = false);
}

#[test]
fn http_off_and_on() {
    all_faults(three(), |world, _| world.service.spec.service.http = Some(false));
    let mut without = three();
    without.service.spec.service.http = Some(false);
    all_faults(without, |world, _| world.service.spec.service.http = None);
}

#[test]
fn an_exposure_and_its_end() {
    all_faults(three(), |world, _| world.service.spec.exposed = true);
    let mut exposed = three();
    exposed.service.spec.exposed = true;
    all_faults(exposed, |world, _| world.service.spec.exposed = false);
    let mut exposed = three();
    exposed.service.spec.exposed = true;
    all_faults(exposed, |world, _| world.service.spec.service.port = Some(8080));
}

#[test]
fn a_delete_and_an_apply_under_a_new_uid() {
    all_faults(three(), |world, api| {
        let uid = "0a1b2c3d-0000-4444-8888-0000000000ff";
        world.service.metadata.uid = Some(uid.to_owned());
        // While the garbage collector has not been there, nothing is written over.
        let before = api.state();
        assert_eq!(told(&decide(world, api)), [] as [&str; 0]);
        assert_eq!(api.state(), before);
        api.collect_garbage(uid);
    });
}

#[test]
fn a_new_login_a_database_of_its_own_and_ours_again() {
    all_faults(three(), |world, _| {
        world.service.spec.database = Some(ankka_crds::resources::DatabaseCommands { credential_generation: 1 });
    });
    let supplied = json!([{ "name": "ANKKA_DB_HOST", "value": "db" }]);
    let supplied: Vec<ankka_crds::resources::EnvEntry> = serde_json::from_value(supplied).expect("a variable");
    all_faults(three(), |world, _| world.service.spec.service.env = Some(supplied.clone()));
    let mut own = three();
    own.service.spec.service.env = Some(supplied);
    all_faults(own, |world, _| world.service.spec.service.env = None);
}

#[test]
fn a_broken_service_that_is_paused_and_then_repaired_and_resumed() {
    let mut broken = three();
    let mut api = Api::default();
    run(&mut broken, &mut api, None);
    let running = api.state();
    broken.service.spec.service.port = Some(0);
    broken.service.spec.paused = true;
    run(&mut broken, &mut api, None);
    assert_eq!(api.get(ChildKind::Deployment).expect("a deployment")["spec"]["replicas"], 0);
    broken.service.spec.service.port = None;
    broken.service.spec.paused = false;
    run(&mut broken, &mut api, None);
    assert_eq!(api.state(), running);
}

/// What somebody does to an object.
type Edit = Box<dyn Fn(&mut Value)>;

#[test]
fn what_others_change_under_a_childs_content_is_undone_and_their_labels_stay() {
    let deployment = ChildKind::Deployment;
    let container = "/spec/template/spec/containers/0";
    let edits: [(&str, ChildKind, Edit); 11] = [
        ("scale", deployment, Box::new(|body| body["spec"]["replicas"] = json!(7))),
        (
            "add a variable",
            deployment,
            Box::new(move |body| {
                let env =
                    body.pointer_mut(&format!("{container}/env")).and_then(Value::as_array_mut).expect("variables");
                env.push(json!({ "name": "EXTRA", "value": "1" }));
            }),
        ),
        (
            "take a variable",
            deployment,
            Box::new(move |body| {
                body.pointer_mut(&format!("{container}/env"))
                    .and_then(Value::as_array_mut)
                    .expect("variables")
                    .remove(0);
            }),
        ),
        (
            "take the probe",
            deployment,
            Box::new(move |body| {
                body.pointer_mut(container)
                    .and_then(Value::as_object_mut)
                    .expect("a container")
                    .remove("readinessProbe");
            }),
        ),
        ("pin a node", deployment, Box::new(|body| body["spec"]["template"]["spec"]["nodeName"] = json!("n"))),
        ("change a label of ours", deployment, Box::new(|body| body["metadata"]["labels"]["team"] = json!("b"))),
        (
            "take a label of ours",
            deployment,
            Box::new(|body| {
                body["metadata"]["labels"].as_object_mut().expect("labels").remove("team");
            }),
        ),
        ("select others", ChildKind::Service, Box::new(|body| body["spec"]["selector"] = json!({ "a": "b" }))),
        (
            "take the data",
            ChildKind::ConfigMap,
            Box::new(|body| {
                body.as_object_mut().expect("an object").remove("data");
            }),
        ),
        ("more data", ChildKind::ConfigMap, Box::new(|body| body["data"]["more"] = json!("x"))),
        ("more rights", ChildKind::Role, Box::new(|body| body["rules"][0]["verbs"] = json!(["*"]))),
    ];
    let mut world = three();
    let mut settled = Api::default();
    run(&mut world, &mut settled, None);
    let wanted = settled.state();
    for (what, kind, edit) in edits {
        let mut api = settled.clone();
        api.edit("kubectl-edit", kind, edit);
        assert_ne!(api.state(), wanted, "{what}");
        assert_eq!(told(&decide(&mut world, &api)), [format!("update {}", kind.word())], "{what}");
        run(&mut world, &mut api, None);
        assert_eq!(api.state(), wanted, "{what}");
    }
}

#[test]
fn labels_and_annotations_of_others_stay_and_ours_go_when_they_are_no_longer_wanted() {
    let mut world = three();
    world.service.spec.service.annotations = Some([("example.com/owner".to_owned(), "x".to_owned())].into());
    let mut api = Api::default();
    run(&mut world, &mut api, None);
    api.edit("other-tool", ChildKind::Deployment, |body| {
        body["metadata"]["annotations"]["other.io/seen"] = json!("1");
        body["metadata"]["labels"]["other.io/team"] = json!("x");
        body["metadata"]["finalizers"] = json!(["other.io/hold"]);
        body["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] = json!("now");
    });
    assert_eq!(decide(&mut world, &api), [], "what others may do is left alone");

    world.service.spec.service.labels = None;
    world.service.spec.service.annotations = None;
    run(&mut world, &mut api, None);
    let deployment = api.get(ChildKind::Deployment).expect("a deployment");
    let metadata = &deployment["metadata"];
    assert_eq!(metadata["labels"].get("team"), None);
    assert_eq!(metadata["labels"]["other.io/team"], "x");
    assert_eq!(metadata["annotations"].get("example.com/owner"), None);
    assert_eq!(metadata["annotations"]["other.io/seen"], "1");
    assert_eq!(metadata["finalizers"], json!(["other.io/hold"]));
    let template = &deployment["spec"]["template"]["metadata"];
    assert_eq!(template["labels"].get("team"), None);
    assert_eq!(template["annotations"], json!({ "kubectl.kubernetes.io/restartedAt": "now" }));
    let service = api.get(ChildKind::Service).expect("a service");
    assert_eq!(service["spec"]["clusterIP"], "10.0.0.7");
    assert_eq!(service["metadata"]["labels"].get("team"), None);
}

#[test]
fn a_first_apply_writes_each_child_once() {
    let mut world = World::cart(json!({}));
    let mut api = Api::default();
    run(&mut world, &mut api, None);
    assert_eq!(api.writes, 7);
    let kinds: BTreeMap<_, _> = api.state();
    assert_eq!(kinds.len(), 7);
}
