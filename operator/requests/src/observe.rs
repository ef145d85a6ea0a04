//! Observing: watch streams that feed the cache and ask for passes.

use std::{fmt::Debug, future::ready, sync::Arc};

use ankka_crds::labels;
use ankka_runtime::{metrics::Metrics, queue::Queue, synced::Synced, workers::Tasks};
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt,
    core::{DeserializeGuard, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::sync::watch;

use crate::{
    Request,
    cache::{Cache, Key},
};

/// How many objects one page of a listing holds.
const PAGE: u32 = 250;

/// What observing feeds.
#[derive(Debug)]
pub struct Observer<T> {
    /// The plural of the kind that is observed, for metrics and the log.
    pub resource: &'static str,
    /// Where objects are kept.
    pub cache: Arc<Cache<T>>,
    /// Where passes are asked for.
    pub queue: Arc<Queue<Key>>,
    /// Where broken watches and unreadable objects are counted.
    pub metrics: Arc<Metrics>,
}

impl<T> Clone for Observer<T> {
    fn clone(&self) -> Self {
        let Self { resource, cache, queue, metrics } = self;
        Self { resource, cache: cache.clone(), queue: queue.clone(), metrics: metrics.clone() }
    }
}

impl<T: Request> Observer<T> {
    /// Starts both streams. Neither ever ends by itself.
    pub fn start(&self, client: &Client, tasks: &mut Tasks) -> Synced {
        let (synced, receiver) = Synced::channel();
        let (namespaces_listed, mut namespaces) = watch::channel(false);
        let ours = format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_VALUE);
        let config = watcher::Config::default().page_size(PAGE);
        let stream = watcher(Api::<PartialObjectMeta<Namespace>>::all(client.clone()), config.clone().labels(&ours));
        let observer = self.clone();
        tasks.spawn(async move {
            let take = |event| observer.namespace(event);
            follow("namespaces", stream.default_backoff(), &observer.metrics, take, || {
                namespaces_listed.send_replace(true);
            })
            .await
        });
        let stream = watcher(Api::<DeserializeGuard<T>>::all(client.clone()), config);
        let observer = self.clone();
        tasks.spawn(async move {
            // A request is judged by its namespace.
            namespaces.wait_for(|listed| *listed).await?;
            let take = |event| observer.request(event);
            follow(observer.resource, stream.default_backoff(), &observer.metrics, take, || {
                synced.send_replace(true);
            })
            .await
        });
        receiver
    }

    /// Takes in an event about a request. True when it completes a listing.
    fn request(&self, event: Event<DeserializeGuard<T>>) -> bool {
        match event {
            Event::Init => self.cache.begin(),
            Event::InitApply(object) | Event::Apply(object) => match object.0 {
                Ok(request) => {
                    let key = Key::of(request.meta());
                    if self.cache.put(request) {
                        self.queue.add(key);
                    }
                }
                Err(invalid) => {
                    self.metrics.found_unreadable();
                    let (namespace, name) = (&invalid.metadata.namespace, &invalid.metadata.name);
                    let resource = self.resource;
                    tracing::warn!(resource, ?namespace, ?name, error = invalid.error, "an object cannot be read");
                }
            },
            Event::Delete(object) => {
                let key =
                    Key { namespace: object.namespace().unwrap_or_default().into(), name: object.name_any().into() };
                self.cache.remove(&key);
                self.queue.add(key);
            }
            Event::InitDone => {
                self.cache.end();
                return true;
            }
        }
        false
    }

    /// Takes in an event about a namespace. True when it completes a listing.
    fn namespace(&self, event: Event<PartialObjectMeta<Namespace>>) -> bool {
        match event {
            Event::Init => self.cache.begin_namespaces(),
            Event::InitApply(namespace) | Event::Apply(namespace) => {
                if self.cache.put_namespace(&namespace.metadata) {
                    self.look_again(&namespace.name_any());
                }
            }
            Event::Delete(namespace) => {
                self.cache.remove_namespace(&namespace.name_any());
                self.look_again(&namespace.name_any());
            }
            Event::InitDone => {
                for gone in self.cache.end_namespaces() {
                    self.look_again(&gone);
                }
                return true;
            }
        }
        false
    }

    fn look_again(&self, namespace: &str) {
        for key in self.cache.keys_in(namespace) {
            self.queue.add(key);
        }
    }
}

async fn follow<K: Debug>(
    resource: &'static str,
    stream: impl Stream<Item = Result<Event<K>, watcher::Error>> + Send,
    metrics: &Metrics,
    take: impl Fn(Event<K>) -> bool,
    listed: impl Fn(),
) -> anyhow::Result<()> {
    let events = stream.filter_map(|event| {
        ready(match event {
            Ok(event) => Some(event),
            Err(error) => {
                metrics.watch_broke(resource);
                tracing::warn!(resource, %error, "watch broke, taking it up again");
                None
            }
        })
    });
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        if take(event) {
            listed();
        }
    }
    anyhow::bail!("the watch of {resource} ended")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ankka_crds::AnkkaDatabase;
    use ankka_runtime::queue::Timing;
    use kube::core::ObjectMeta;

    use super::*;

    #[tokio::test]
    async fn a_namespace_that_went_while_nobody_watched_has_its_requests_looked_at() {
        let second = Duration::from_secs(1);
        let timing = Timing { resync: second, min_backoff: second, max_backoff: second };
        let observer = Observer::<AnkkaDatabase> {
            resource: "ankkadatabases",
            cache: Arc::default(),
            queue: Arc::new(Queue::new(timing)),
            metrics: Arc::new(Metrics::new("test", "databases")),
        };
        let mut database = AnkkaDatabase::default();
        database.metadata.name = Some("cart".to_owned());
        database.metadata.namespace = Some("ankka-shop".to_owned());
        observer.cache.put(database);
        let named = |name: &str| PartialObjectMeta::<Namespace> {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            ..PartialObjectMeta::default()
        };
        for name in ["ankka-shop", "ankka-other"] {
            observer.cache.put_namespace(&named(name).metadata);
        }
        observer.namespace(Event::Init);
        observer.namespace(Event::InitApply(named("ankka-other")));
        assert!(!observer.queue.is_busy());
        assert!(observer.namespace(Event::InitDone));
        assert!(observer.queue.is_busy());
        assert_eq!(&*observer.queue.next().await.namespace, "ankka-shop");
        assert!(observer.cache.namespace("ankka-other").is_some());
    }
}
