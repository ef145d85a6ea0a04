//! What every image that runs on the platform has to do, once for the examples: find its peers, say when it is ready, and
//! keep answering while it is being stopped. `docs/how-to/image-contract.md` is the same in words.

mod cluster;
mod drain;
mod settings;

pub use cluster::{Cluster, State};
pub use drain::{Activity, Limits};
pub use settings::{optional, port};

use std::{
    future::pending,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
};

use anyhow::Context;
use axum::{Router, serve::ListenerExt};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

/// The port on which an instance says that it is ready.
pub const MANAGEMENT_PORT: u16 = 7626;

/// Logs to standard output, one JSON object a line.
pub fn log() {
    tracing_subscriber::fmt().json().init();
}

/// Listens on `port` on every address of the instance.
pub async fn listen(port: u16) -> anyhow::Result<TcpListener> {
    // The second address is for hosts without IPv6; the first one serves both.
    let addresses: [SocketAddr; 2] = [(Ipv6Addr::UNSPECIFIED, port).into(), (Ipv4Addr::UNSPECIFIED, port).into()];
    TcpListener::bind(&addresses[..]).await.with_context(|| format!("failed to listen on port {port}"))
}

/// Serves `app` on `listener` until the instance was told to stop and nobody has asked it anything for a while.
///
/// `management`, which is served on its own listener for as long, does not count as being asked. `cluster` is looked
/// after meanwhile.
///
/// # Errors
/// Whatever ends one of the servers early, and a signal handler that cannot be installed.
pub async fn run(
    listener: TcpListener,
    app: Router,
    management: Option<(TcpListener, Router)>,
    cluster: &Cluster,
    limits: Limits,
) -> anyhow::Result<()> {
    let stop = stop_signal()?;
    let activity = Activity::default();
    let accepted = activity.clone();
    let listener = listener.tap_io(move |_| accepted.touch());
    let management = async {
        match management {
            Some((listener, router)) => axum::serve(listener, router).await,
            None => pending().await,
        }
    };
    let drained = async {
        stop.await;
        tracing::info!("told to stop: answering until idle");
        activity.drain(limits).await
    };
    tokio::select! {
        ended = axum::serve(listener, activity.watch(app)) => ended.context("the server ended"),
        ended = management => ended.context("the management server ended"),
        () = cluster.keep_looking() => Ok(()),
        idle = drained => {
            tracing::info!(idle, "stopping");
            Ok(())
        }
    }
}

/// Resolves at SIGTERM, which is how a container is told to stop, or SIGINT, which is how a terminal says it.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
