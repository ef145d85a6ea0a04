//! What of each kind of object is kept, and which passes a change of it asks for.

use ankka_crds::{AnkkaDatabase, AnkkaProject, AnkkaService, labels, names};
use ankka_desired::{
    ChildKind, HttpRoute, PodState, RouteState, Seen, WorkloadState,
    project::{ADMINISTRATORS, NamespaceSeen, POLICY},
    revisions::RevisionSeen,
};
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, Deployment},
    core::v1::{ConfigMap, Namespace, Pod, Service, ServiceAccount},
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Resource, ResourceExt,
    core::{DeserializeGuard, PartialObjectMeta},
};

use super::{Observer, Projection};
use crate::cache::{
    Key, Progress, ServiceId, Source, StoredService, Stream, database_progress, version_of, why_unreadable,
};

pub(super) type AnkkaServiceGuard = DeserializeGuard<AnkkaService>;
pub(super) type AnkkaProjectGuard = DeserializeGuard<AnkkaProject>;
pub(super) type AnkkaDatabaseGuard = DeserializeGuard<AnkkaDatabase>;

impl Projection for AnkkaServiceGuard {
    fn resource() -> &'static str {
        "ankkaservices"
    }

    fn stream() -> Stream {
        Stream::Services
    }

    fn labelled() -> bool {
        false
    }

    fn put(self, observer: &Observer, source: Source) {
        let id = service_id(self.meta().namespace.as_deref(), &self.name_any());
        let version = version_of(self.meta());
        let stored = match self.0 {
            Ok(service) => StoredService::new(service),
            Err(invalid) => {
                observer.metrics.found_unreadable();
                let error = why_unreadable(&invalid.error);
                tracing::error!(namespace = %id.namespace, service = %id.name, error, "stored service cannot be read");
                StoredService::invalid(&invalid)
            }
        };
        if observer.cache.put_service(&id, version, stored, source) {
            observer.ask(observer.cache.rivals(&id));
            observer.queue.add(Key::Service(id));
        }
    }

    fn remove(self, observer: &Observer) {
        let id = service_id(self.meta().namespace.as_deref(), &self.name_any());
        if observer.cache.remove_service(&id, version_of(self.meta())) {
            observer.ask(observer.cache.rivals(&id));
            observer.queue.add(Key::Service(id));
        }
    }
}

impl Projection for AnkkaProjectGuard {
    fn resource() -> &'static str {
        "ankkaprojects"
    }

    fn stream() -> Stream {
        Stream::Projects
    }

    fn labelled() -> bool {
        false
    }

    fn put(self, observer: &Observer, source: Source) {
        let version = version_of(self.meta());
        let mut project = match self.0 {
            Ok(project) => project,
            Err(invalid) => {
                observer.metrics.found_unreadable();
                let error = why_unreadable(&invalid.error);
                tracing::error!(project = invalid.metadata.name, error, "stored project cannot be read");
                return;
            }
        };
        project.metadata.managed_fields = None;
        let name = project.name_any();
        if observer.cache.put_project(version, project, source) {
            observer.ask(observer.cache.keys_of_project(&name));
        }
    }

    fn remove(self, observer: &Observer) {
        let name = self.name_any();
        if observer.cache.remove_project(&name, version_of(self.meta())) {
            observer.ask(observer.cache.keys_of_project(&name));
        }
    }
}

impl Projection for PartialObjectMeta<Namespace> {
    fn resource() -> &'static str {
        "namespaces"
    }

    fn stream() -> Stream {
        Stream::Namespaces
    }

    fn put(self, observer: &Observer, source: Source) {
        let (name, version) = (self.name_any(), version_of(&self.metadata));
        if observer.cache.put_namespace(&name, version, NamespaceSeen::of(&self.metadata), source) {
            observer.ask(observer.cache.keys_in(&name));
        }
    }

    fn remove(self, observer: &Observer) {
        let name = self.name_any();
        let keys = observer.cache.keys_in(&name);
        if observer.cache.remove_namespace(&name, version_of(&self.metadata)) {
            observer.ask(keys);
        }
    }
}

impl Projection for PartialObjectMeta<NetworkPolicy> {
    fn resource() -> &'static str {
        "networkpolicies"
    }

    fn stream() -> Stream {
        Stream::Policies
    }

    fn put(self, observer: &Observer, source: Source) {
        let Some(namespace) = named(&self, POLICY) else { return };
        let (version, seen) = (version_of(&self.metadata), Seen::of(&self.metadata));
        if observer.cache.put_policy(namespace, version, seen, source) {
            observer.ask(projects_in(observer, namespace));
        }
    }

    fn remove(self, observer: &Observer) {
        let Some(namespace) = named(&self, POLICY) else { return };
        let keys = projects_in(observer, namespace);
        if observer.cache.remove_policy(namespace, version_of(&self.metadata)) {
            observer.ask(keys);
        }
    }
}

/// The namespace of an object, when it has this name.
fn named<'a>(object: &'a impl Resource, name: &str) -> Option<&'a str> {
    let meta = object.meta();
    meta.namespace.as_deref().filter(|_| meta.name.as_deref() == Some(name))
}

fn projects_in(observer: &Observer, namespace: &str) -> Vec<Key> {
    let mut keys = observer.cache.keys_in(namespace);
    keys.retain(|key| matches!(key, Key::Project(_)));
    keys
}

macro_rules! child {
    ($object:ty, $kind:ident, $progress:expr $(, $listed:expr)?) => {
        impl Projection for $object {
            fn resource() -> &'static str {
                ChildKind::$kind.plural()
            }

            fn stream() -> Stream {
                Stream::Child(ChildKind::$kind)
            }

            fn put(self, observer: &Observer, source: Source) {
                let progress: fn(Self) -> Progress = $progress;
                let Some(id) = parent(ChildKind::$kind, &self) else { return };
                let (version, seen) = (version_of(self.meta()), Seen::of(self.meta()));
                if observer.cache.put_child(&id, ChildKind::$kind, version, seen, progress(self), source) {
                    observer.ask_rivals(&id, ChildKind::$kind);
                    observer.queue.add(Key::Service(id));
                }
            }

            fn remove(self, observer: &Observer) {
                let Some(id) = parent(ChildKind::$kind, &self) else { return };
                if observer.cache.remove_child(&id, ChildKind::$kind, version_of(self.meta())) {
                    observer.ask_rivals(&id, ChildKind::$kind);
                    observer.queue.add(Key::Service(id));
                }
            }

            $(fn listed(observer: &Observer) {
                $listed(observer);
            })?
        }
    };
}

/// A service's, or that of a project's administrators: their names differ.
impl Projection for PartialObjectMeta<RoleBinding> {
    fn resource() -> &'static str {
        ChildKind::RoleBinding.plural()
    }

    fn stream() -> Stream {
        Stream::Child(ChildKind::RoleBinding)
    }

    fn put(self, observer: &Observer, source: Source) {
        let (version, seen) = (version_of(&self.metadata), Seen::of(&self.metadata));
        if let Some(namespace) = named(&self, ADMINISTRATORS) {
            if observer.cache.put_administrators(namespace, version, seen, source) {
                observer.ask(projects_in(observer, namespace));
            }
        } else if let Some(id) = parent(ChildKind::RoleBinding, &self)
            && observer.cache.put_child(&id, ChildKind::RoleBinding, version, seen, Progress::None, source)
        {
            observer.queue.add(Key::Service(id));
        }
    }

    fn remove(self, observer: &Observer) {
        let version = version_of(&self.metadata);
        if let Some(namespace) = named(&self, ADMINISTRATORS) {
            let keys = projects_in(observer, namespace);
            if observer.cache.remove_administrators(namespace, version) {
                observer.ask(keys);
            }
        } else if let Some(id) = parent(ChildKind::RoleBinding, &self)
            && observer.cache.remove_child(&id, ChildKind::RoleBinding, version)
        {
            observer.queue.add(Key::Service(id));
        }
    }
}

child!(PartialObjectMeta<ServiceAccount>, ServiceAccount, |_| Progress::None);
child!(PartialObjectMeta<Role>, Role, |_| Progress::None);
child!(PartialObjectMeta<ConfigMap>, ConfigMap, |_| Progress::None);
child!(PartialObjectMeta<PodDisruptionBudget>, PodDisruptionBudget, |_| Progress::None);
child!(PartialObjectMeta<Service>, Service, |_| Progress::None);
child!(Deployment, Deployment, |deployment| Progress::Workload(WorkloadState::of(&deployment)));
child!(AnkkaDatabaseGuard, Database, |database| database_progress(database).1);
child!(HttpRoute, HttpRoute, |route| Progress::Route(RouteState::of(&route)), super::gateway::listed);

impl Projection for Pod {
    fn resource() -> &'static str {
        "pods"
    }

    fn stream() -> Stream {
        Stream::Pods
    }

    fn put(self, observer: &Observer, source: Source) {
        let Some(id) = instance_of(&self) else { return };
        if observer.cache.put_pod(&id, version_of(&self.metadata), PodState::of(&self), source) {
            observer.queue.add(Key::Service(id));
        }
    }

    fn remove(self, observer: &Observer) {
        let Some(id) = instance_of(&self) else { return };
        if observer.cache.remove_pod(&id, &self.name_any(), version_of(&self.metadata)) {
            observer.queue.add(Key::Service(id));
        }
    }
}

impl Projection for PartialObjectMeta<ControllerRevision> {
    fn resource() -> &'static str {
        "controllerrevisions"
    }

    fn stream() -> Stream {
        Stream::Revisions
    }

    fn put(self, observer: &Observer, source: Source) {
        let name = self.name_any();
        let Some(service) = names::service_of_revision(&name) else { return };
        let id = service_id(self.metadata.namespace.as_deref(), service);
        let (version, seen) = (version_of(&self.metadata), RevisionSeen::of(&self.metadata));
        if observer.cache.put_revision(&id, version, &seen, source) {
            observer.queue.add(Key::Service(id));
        }
    }

    fn remove(self, observer: &Observer) {
        let name = self.name_any();
        let Some(service) = names::service_of_revision(&name) else { return };
        let id = service_id(self.metadata.namespace.as_deref(), service);
        if observer.cache.remove_revision(&id, &name, version_of(&self.metadata)) {
            observer.queue.add(Key::Service(id));
        }
    }
}

/// The service whose child an object is by its kind and name, whoever owns it.
fn parent(kind: ChildKind, object: &impl Resource) -> Option<ServiceId> {
    let name = object.name_any();
    Some(service_id(object.meta().namespace.as_deref(), kind.service_of(&name)?))
}

/// The service a pod is an instance of: by its label, and because a ReplicaSet made it.
fn instance_of(pod: &Pod) -> Option<ServiceId> {
    let service = pod.labels().get(labels::SERVICE)?;
    let owned = pod.owner_references().iter().any(|owner| owner.kind == "ReplicaSet" && owner.controller == Some(true));
    owned.then(|| service_id(pod.metadata.namespace.as_deref(), service))
}

fn service_id(namespace: Option<&str>, name: &str) -> ServiceId {
    ServiceId::new(namespace.unwrap_or_default(), name)
}
