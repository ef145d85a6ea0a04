//! Routes, in a cluster that may have no Gateway API: it is looked for now and then, and watched while it is there.

use std::time::Duration;

use ankka_desired::HttpRoute;
use k8s_openapi::Resource;
use kube::{Client, runtime::watcher};

use super::{Arrival, Observer, Projection, follow as follow_stream};

/// How long after the last look it is looked for again.
const PAUSE: Duration = Duration::from_secs(10);

/// How long after the kind was unknown to a watch the API server is asked whether it is gone.
const DOUBT: Duration = Duration::from_secs(1);

/// Watches routes whenever the cluster knows them, and notes when it does not. Never ends by itself.
pub(super) async fn follow(observer: Observer, client: Client, mut arrival: Arrival) -> anyhow::Result<()> {
    loop {
        match are_served(&client).await {
            Ok(true) => {
                follow_stream::<HttpRoute>(&observer, &client, &mut arrival, is_unknown_kind).await?;
                // An API server that has just been started may not know the kind yet: it is asked once more.
                tokio::time::sleep(DOUBT).await;
                continue;
            }
            Ok(false) => {
                gone(&observer);
                arrival.arrive();
            }
            Err(error) => tracing::warn!(%error, "failed to ask the API server whether it knows HTTPRoutes"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Every route is known by now.
pub(super) fn listed(observer: &Observer) {
    if observer.cache.serve_routes(true) {
        tracing::info!("the cluster has the Gateway API: exposed services get routes");
        observer.ask(observer.cache.keys());
    }
}

/// No route is left: with the kind, the API server has deleted them all.
fn gone(observer: &Observer) {
    if !observer.cache.serve_routes(false) {
        return;
    }
    tracing::warn!("the cluster has no Gateway API any more: exposed services have no routes");
    observer.cache.begin(HttpRoute::stream());
    observer.cache.end(HttpRoute::stream());
    observer.ask(observer.cache.keys());
}

async fn are_served(client: &Client) -> Result<bool, kube::Error> {
    match client.list_api_group_resources(HttpRoute::API_VERSION).await {
        Ok(known) => Ok(known.resources.iter().any(|resource| resource.name == HttpRoute::URL_PATH_SEGMENT)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_unknown_kind(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code == 404,
        _ => false,
    }
}
