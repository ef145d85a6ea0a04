//! How many services there are of each lifecycle, for those who watch over the installation.

use std::{collections::BTreeMap, sync::Arc};

use ankka_desired::LIFECYCLES;
use jiff::Timestamp;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{family::Family, gauge::Gauge},
    registry::Unit,
};
use serde::Deserialize;

use super::{Cache, StoredService};

/// What services without a lifecycle in their status are counted as, or with a word that this version does not know.
const UNKNOWN: &str = "unknown";

/// The services of one lifecycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Population {
    /// How many there are.
    pub services: i64,
    /// How many seconds the one that has been there longest has.
    pub longest: i64,
}

/// Tells how many services there are of each lifecycle.
#[derive(Debug)]
pub struct Lifecycles(pub Arc<Cache>);

impl Collector for Lifecycles {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let known = self.0.population(Timestamp::now());
        let (services, longest) = (Family::<[(&str, &str); 1], Gauge>::default(), Family::<_, Gauge>::default());
        for lifecycle in LIFECYCLES.into_iter().chain([UNKNOWN]) {
            let population = known.get(lifecycle).copied().unwrap_or_default();
            services.get_or_create(&[("lifecycle", lifecycle)]).set(population.services);
            longest.get_or_create(&[("lifecycle", lifecycle)]).set(population.longest);
        }
        let help = "Services by the lifecycle in their status";
        services.encode(encoder.encode_descriptor("lifecycle_services", help, None, services.metric_type())?)?;
        let help = "How long the service that has been in a lifecycle longest has been in it";
        let seconds = Some(&Unit::Seconds);
        longest.encode(encoder.encode_descriptor("lifecycle_longest", help, seconds, longest.metric_type())?)
    }
}

/// What is read of a stored service; the rest of its JSON is skipped.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Service {
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    lifecycle: Option<String>,
    conditions: Vec<Condition>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Condition {
    r#type: String,
    last_transition_time: String,
}

impl Cache {
    /// The services at `now`, by the lifecycle in their status. How long one has been there counts from when its `Ready`
    /// condition last changed.
    pub fn population(&self, now: Timestamp) -> BTreeMap<&'static str, Population> {
        let mut all = BTreeMap::<_, Population>::new();
        // They are read after the lock is given back: passes go on meanwhile.
        for service in self.stored() {
            let (lifecycle, since) = lifecycle_of(&service);
            let lasted = since.map_or(0, |since| (now.as_second() - since.as_second()).max(0));
            let population = all.entry(lifecycle).or_default();
            population.services += 1;
            population.longest = population.longest.max(lasted);
        }
        all
    }

    fn stored(&self) -> Vec<StoredService> {
        let state = self.lock();
        let entries = state.namespaces.values().flat_map(|content| content.services.values());
        entries.filter_map(|entry| entry.service.value().cloned()).collect()
    }
}

fn lifecycle_of(service: &StoredService) -> (&'static str, Option<Timestamp>) {
    let StoredService::Readable(json) = service else { return (UNKNOWN, None) };
    let status = serde_json::from_slice::<Service>(json).unwrap_or_default().status;
    let ready = status.conditions.iter().find(|condition| condition.r#type == "Ready");
    let since = ready.and_then(|condition| condition.last_transition_time.parse().ok());
    let known = LIFECYCLES.into_iter().find(|word| status.lifecycle.as_deref() == Some(word));
    (known.unwrap_or(UNKNOWN), since)
}

#[cfg(test)]
mod tests {
    use ankka_crds::{AnkkaService, AnkkaServiceSpec, AnkkaServiceStatus, resources::Condition};

    use super::*;
    use crate::cache::{ServiceId, Source};

    fn put(cache: &Cache, name: &str, status: Option<(&str, &str)>) {
        let mut service = AnkkaService::new(name, AnkkaServiceSpec::default());
        service.status = status.map(|(lifecycle, since)| AnkkaServiceStatus {
            lifecycle: Some(lifecycle.to_owned()),
            conditions: vec![Condition {
                type_: "Ready".to_owned(),
                status: "False".to_owned(),
                reason: "Reason".to_owned(),
                message: String::new(),
                observed_generation: Some(1),
                last_transition_time: since.to_owned(),
            }],
            ..AnkkaServiceStatus::default()
        });
        cache.put_service(&ServiceId::new("ankka-shop", name), 1, StoredService::new(service), Source::Listed);
    }

    #[test]
    fn services_are_counted_by_lifecycle_with_the_longest_time_in_it() {
        let cache = Cache::new("ankka");
        put(&cache, "cart", Some(("Failed", "2026-01-01T00:00:00Z")));
        put(&cache, "mail", Some(("Failed", "2026-01-01T00:10:00Z")));
        put(&cache, "shop", Some(("UpdateInProgress", "2026-01-01T02:00:00Z")));
        put(&cache, "new", None);
        put(&cache, "of-a-later-version", Some(("Retired", "2026-01-01T01:00:00Z")));
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().expect("a time");
        let population = |services, longest| Population { services, longest };
        assert_eq!(
            cache.population(now),
            BTreeMap::from([
                ("unknown", population(2, 0)),
                ("Failed", population(2, 3600)),
                // Clocks differ: what is said to begin later has not lasted.
                ("UpdateInProgress", population(1, 0)),
            ])
        );
        let mut metrics = crate::run::metrics();
        metrics.look_up(Lifecycles(Arc::new(cache)));
        let text = metrics.render(0, 0);
        for line in [
            "ankka_operator_lifecycle_services{lifecycle=\"Failed\"} 2",
            "ankka_operator_lifecycle_services{lifecycle=\"Ready\"} 0",
            "ankka_operator_lifecycle_services{lifecycle=\"unknown\"} 2",
            "# UNIT ankka_operator_lifecycle_longest_seconds seconds",
        ] {
            assert!(text.contains(line), "{line} not in {text}");
        }
    }
}
