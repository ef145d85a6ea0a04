//! Who else derives a service's host name.
//!
//! `<service>-<project>` can be split in several ways: `a-b` in `c` and `a` in `b-c` have one name. Every way is looked up;
//! there are at most as many as hyphens.

use ankka_crds::names;
use ankka_desired::{ChildKind, Claim};

use super::{Cache, Key, ServiceId, State, entry::Entry};

impl Cache {
    /// Notes whether the cluster knows routes. True when that is news.
    pub fn serve_routes(&self, served: bool) -> bool {
        std::mem::replace(&mut self.lock().routes_served, served) != served
    }

    /// The other services with the host name of this one, exposed or not: what happens to its route may matter to them.
    pub fn rivals(&self, id: &ServiceId) -> Vec<Key> {
        let state = self.lock();
        let rivals = state.rivals(id, &self.prefix);
        rivals.into_iter().map(|(id, _)| Key::Service(id)).collect()
    }
}

impl State {
    /// What the other services claim that have this one's host name.
    pub(super) fn claims_beside(&self, id: &ServiceId, prefix: &str) -> Vec<Claim> {
        let rivals = self.rivals(id, prefix).into_iter();
        rivals.filter_map(|(rival, entry)| self.claim(&rival, entry, prefix)).collect()
    }

    fn claim(&self, rival: &ServiceId, entry: &Entry, prefix: &str) -> Option<Claim> {
        let service = entry.service.value()?.decode().ok()?;
        let (mut children, _) = entry.children(&rival.name);
        let seen = children.remove(&ChildKind::HttpRoute);
        let route = seen.filter(|seen| seen.is_owned_by(&service)).and_then(|_| entry.route());
        // Where there is no project, no route is made; one that is there counts.
        let can_have_one = route.is_some() || self.project_facts(&rival.namespace, prefix).is_some();
        can_have_one.then(|| Claim::of(&service, route.as_ref())).flatten()
    }

    fn rivals(&self, id: &ServiceId, prefix: &str) -> Vec<(ServiceId, &Entry)> {
        let Some(project) = names::project_of(prefix, &id.namespace) else { return Vec::new() };
        let label = names::host_label(project, &id.name);
        let splits = label.match_indices('-').map(|(at, _)| (&label[..at], &label[at + 1..]));
        let rivals = splits.filter(|(service, _)| **service != *id.name).filter_map(|(service, project)| {
            let (namespace, content) = self.namespaces.get_key_value(names::namespace(prefix, project).as_str())?;
            let (name, entry) = content.services.get_key_value(service)?;
            Some((ServiceId { namespace: namespace.clone(), name: name.clone() }, &**entry))
        });
        rivals.collect()
    }
}

#[cfg(test)]
mod tests {
    use ankka_crds::{AnkkaProject, AnkkaService, AnkkaServiceSpec, resources::AnkkaProjectSpec};
    use ankka_desired::project::NamespaceSeen;

    use super::*;
    use crate::cache::{Source, StoredService};

    /// A cache with exposed services, each `service` in `project`.
    fn exposed(services: &[(&str, &str)]) -> Cache {
        let cache = Cache::new("ankka");
        for (name, project) in services {
            let namespace = names::namespace("ankka", project);
            let mut service =
                AnkkaService::new(name, AnkkaServiceSpec { exposed: true, ..AnkkaServiceSpec::default() });
            service.metadata.uid = Some(format!("uid-{name}"));
            cache.put_project(1, AnkkaProject::new(project, AnkkaProjectSpec::default()), Source::Listed);
            let labels = ankka_crds::labels::identity(project, "");
            let seen = NamespaceSeen { labels, ..NamespaceSeen::default() };
            cache.put_namespace(&namespace, 1, seen, Source::Listed);
            cache.put_service(&ServiceId::new(&namespace, name), 1, StoredService::new(service), Source::Listed);
        }
        cache
    }

    #[test]
    fn services_whose_name_and_project_make_one_host_name_are_rivals() {
        let cache = exposed(&[("a-b", "c"), ("a", "b-c"), ("a", "c"), ("b", "c")]);
        let id = ServiceId::new("ankka-c", "a-b");
        assert_eq!(cache.rivals(&id), [Key::Service(ServiceId::new("ankka-b-c", "a"))]);
        assert_eq!(cache.rivals(&ServiceId::new("ankka-b-c", "a")), [Key::Service(id.clone())]);
        assert_eq!(cache.rivals(&ServiceId::new("ankka-c", "a")), []);
        assert_eq!(cache.rivals(&ServiceId::new("elsewhere", "a-b")), [], "no project's namespace has host names");
        assert_eq!(cache.service(&id).expect("known").rivals.len(), 1);
    }

    #[test]
    fn a_service_that_is_in_no_project_and_has_no_route_claims_nothing() {
        let cache = exposed(&[("a-b", "c"), ("a", "b-c")]);
        cache.remove_project("b-c", 9);
        assert_eq!(cache.service(&ServiceId::new("ankka-c", "a-b")).expect("known").rivals, []);
    }

    #[test]
    fn it_is_news_only_once_that_the_cluster_knows_routes() {
        let cache = Cache::new("ankka");
        assert_eq!([true, true, false].map(|served| cache.serve_routes(served)), [true, false, true]);
    }
}
