use ankka_crds::labels;
use ankka_desired::Owner;

use super::*;

fn id() -> ServiceId {
    ServiceId::new("ankka-shop", "cart")
}

fn seen(uid: &str) -> Seen {
    let owner = Some(Owner { kind: "AnkkaService".into(), name: "cart".into(), uid: "s".into() });
    Seen { uid: uid.into(), owner, rendered: Some("00".into()), ..Seen::default() }
}

fn stored(image: &str) -> StoredService {
    let mut service = ankka_crds::AnkkaService::new("cart", ankka_crds::AnkkaServiceSpec::default());
    service.spec.service.image = Some(image.to_owned());
    StoredService::new(service)
}

fn with_service() -> Cache {
    let cache = Cache::new("ankka");
    cache.put_service(&id(), 1, stored("a"), Source::Listed);
    cache
}

fn child(cache: &Cache) -> Option<Seen> {
    cache.service(&id())?.children.remove(&ChildKind::Role)
}

#[test]
fn an_older_event_does_not_undo_the_answer_to_our_own_write() {
    let cache = with_service();
    assert!(cache.put_child(&id(), ChildKind::Role, 10, seen("u"), Progress::None, Source::Answered));
    let older = Seen { rendered: None, ..seen("u") };
    assert!(!cache.put_child(&id(), ChildKind::Role, 9, older.clone(), Progress::None, Source::Watched));
    assert_eq!(child(&cache), Some(seen("u")));
    assert!(
        !cache.put_child(&id(), ChildKind::Role, 10, seen("u"), Progress::None, Source::Watched),
        "its own event is no news"
    );
    assert!(cache.put_child(&id(), ChildKind::Role, 11, older.clone(), Progress::None, Source::Watched));
    assert_eq!(child(&cache), Some(older));
}

#[test]
fn the_deletion_of_an_earlier_object_does_not_remove_its_successor() {
    let cache = with_service();
    cache.put_child(&id(), ChildKind::Role, 20, seen("second"), Progress::None, Source::Answered);
    assert!(!cache.remove_child(&id(), ChildKind::Role, 15));
    assert_eq!(child(&cache), Some(seen("second")));
    assert!(cache.remove_child(&id(), ChildKind::Role, 21));
    assert_eq!(child(&cache), None);
}

#[test]
fn the_services_of_a_project_that_vanished_during_a_relist_are_told() {
    let cache = with_service();
    cache.begin(Stream::Projects);
    cache.put_project(1, AnkkaProject::new("shop", ankka_crds::resources::AnkkaProjectSpec::default()), Source::Listed);
    assert!(cache.end(Stream::Projects).is_empty());
    cache.begin(Stream::Projects);
    assert_eq!(cache.end(Stream::Projects), [Key::Project("shop".into()), Key::Service(id())]);
}

#[test]
fn what_vanished_during_a_relist_is_dropped() {
    let cache = Cache::new("ankka");
    let stream = Stream::Child(ChildKind::Role);
    cache.begin(Stream::Services);
    cache.put_service(&id(), 1, stored("a"), Source::Listed);
    assert!(cache.end(Stream::Services).is_empty());
    cache.begin(stream);
    cache.put_child(&id(), ChildKind::Role, 5, seen("u"), Progress::None, Source::Listed);
    assert!(cache.end(stream).is_empty());
    cache.begin(stream);
    assert_eq!(cache.end(stream), [Key::Service(id())]);
    assert_eq!(child(&cache), None);
    cache.begin(Stream::Services);
    assert_eq!(cache.end(Stream::Services), [Key::Service(id())]);
    assert!(cache.service(&id()).is_none());
    assert!(cache.keys().is_empty());
    assert_eq!(cache.services(), 0, "nothing of it is kept");
}

#[test]
fn a_listing_is_believed_even_when_its_versions_are_lower() {
    let cache = with_service();
    cache.put_child(&id(), ChildKind::Role, 500, seen("before"), Progress::None, Source::Watched);
    cache.begin(Stream::Child(ChildKind::Role));
    assert!(cache.put_child(&id(), ChildKind::Role, 7, seen("restored"), Progress::None, Source::Listed));
    cache.end(Stream::Child(ChildKind::Role));
    assert_eq!(child(&cache), Some(seen("restored")));
}

#[test]
fn a_stranger_is_to_be_probed_until_a_watch_tells_about_it() {
    let cache = with_service();
    cache.put_child(&id(), ChildKind::Service, 3, seen("x"), Progress::None, Source::Probed);
    assert_eq!(cache.service(&id()).expect("known").probed, [ChildKind::Service]);
    cache.put_child(&id(), ChildKind::Service, 4, seen("x"), Progress::None, Source::Watched);
    assert!(cache.service(&id()).expect("known").probed.is_empty());
}

#[test]
fn only_the_deployment_has_a_workload() {
    let cache = with_service();
    let workload = WorkloadState { ready: 1, ..WorkloadState::default() };
    assert!(cache.put_child(
        &id(),
        ChildKind::Deployment,
        3,
        seen("d"),
        Progress::Workload(workload.clone()),
        Source::Watched
    ));
    assert!(cache.put_child(&id(), ChildKind::Role, 4, seen("r"), Progress::None, Source::Watched));
    assert_eq!(cache.service(&id()).expect("known").workload, Some(workload));
    let more = WorkloadState { ready: 2, ..WorkloadState::default() };
    assert!(cache.put_child(&id(), ChildKind::Deployment, 5, seen("d"), Progress::Workload(more), Source::Watched));
    cache.remove_child(&id(), ChildKind::Deployment, 6);
    assert_eq!(cache.service(&id()).expect("known").workload, None);
}

#[test]
fn large_annotations_are_not_kept() {
    let mut service = ankka_crds::AnkkaService::new("cart", ankka_crds::AnkkaServiceSpec::default());
    service.metadata.annotations =
        Some([(ankka_crds::labels::CHANGES.to_owned(), "x".repeat(9000)), ("team".to_owned(), "a".to_owned())].into());
    let kept = StoredService::new(service).decode().expect("readable");
    assert_eq!(kept.metadata.annotations.expect("some").into_keys().collect::<Vec<_>>(), ["team"]);
}

#[test]
fn a_project_is_known_once_both_it_and_its_namespace_are() {
    let cache = Cache::new("ankka");
    cache.put_service(&id(), 1, stored("a"), Source::Listed);
    assert!(cache.service(&id()).expect("known").project.is_none());
    let project = AnkkaProject::new("shop", ankka_crds::AnkkaProject::default().spec);
    cache.put_project(1, project, Source::Watched);
    assert!(cache.service(&id()).expect("known").project.is_none());
    cache.put_namespace("ankka-shop", 2, NamespaceSeen::default(), Source::Probed);
    assert!(cache.service(&id()).expect("known").project.is_none(), "a stranger's namespace");
    assert_eq!(cache.project("shop").expect("known").probed, [Kind::Namespace]);
    let ours = [(labels::MANAGED_BY, labels::MANAGED_BY_VALUE), (labels::PROJECT, "shop")];
    let labels = ours.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    cache.put_namespace("ankka-shop", 3, NamespaceSeen { labels, ..NamespaceSeen::default() }, Source::Watched);
    assert!(cache.project("shop").expect("known").probed.is_empty());
    assert!(!cache.service(&id()).expect("known").project.expect("both are there").terminating);
    let mut keys = cache.keys_in("ankka-shop");
    keys.sort();
    assert_eq!(keys, [Key::Service(id()), Key::Project("shop".into())]);
}

#[test]
fn a_status_that_the_schema_filled_in_is_none() {
    let mut service = ankka_crds::AnkkaService::new("cart", ankka_crds::AnkkaServiceSpec::default());
    let status =
        |observed| ankka_crds::AnkkaServiceStatus { observed_generation: Some(observed), ..Default::default() };
    service.status = Some(status(ankka_crds::resources::NOT_OBSERVED));
    assert_eq!(StoredService::new(service.clone()).decode().expect("readable").status, None);
    service.status = Some(status(1));
    assert_eq!(StoredService::new(service).decode().expect("readable").status, Some(status(1)));
}
