//! How much of what is sent is held in memory at a time.
//!
//! A review can be megabytes large, and whoever may change services in one namespace can have many sent at a time. Held all
//! at once they would not fit this process's memory, and without it nobody's services can be changed. So they take turns.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    http::{StatusCode, header::CONTENT_LENGTH},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::sync::Semaphore;

use crate::server::LARGEST_BODY;

/// Bytes of bodies that are held at a time: one of the largest, or hundreds of usual ones. What is made of a body of many
/// short labels takes ten times its size, and the chart gives this process 128 MiB.
const TOGETHER: usize = 8 * 1024 * 1024;

/// Bytes that are counted as one; even the smallest request takes so many.
const UNIT: usize = 16 * 1024;

/// How long a request may take from its turn on. The API server waits for no answer longer.
const TURN: Duration = Duration::from_secs(30);

/// The room for bodies.
#[derive(Clone, Debug)]
pub struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(TOGETHER / UNIT)))
    }
}

/// Lets a request's body in once there is room for it. One that does not say its length counts as the largest there may be.
pub async fn take_turns(State(room): State<Room>, request: Request, next: Next) -> Response {
    let said = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let units = said.unwrap_or(LARGEST_BODY).min(LARGEST_BODY).div_ceil(UNIT).max(1);
    // Nobody closes it, and a limit far below what it counts to needs no room for more.
    let _held = room.0.acquire_many(u32::try_from(units).unwrap_or(u32::MAX)).await;
    tokio::time::timeout(TURN, next.run(request))
        .await
        .unwrap_or_else(|_| (StatusCode::REQUEST_TIMEOUT, "the request was not complete in time\n").into_response())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test ends where it fails")]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::{Router, body::Bytes, middleware, routing::post};
    use tower::ServiceExt;

    use super::*;

    const MIB: usize = 1024 * 1024;

    /// Sends `count` requests at a time that say they are `length` long; how many were let in at most at a time.
    async fn together(count: usize, length: Option<usize>) -> usize {
        let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counted = (inside, most.clone());
        let handler = move |_: Bytes| {
            let (inside, most) = counted.clone();
            async move {
                most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
            }
        };
        let router =
            Router::new().route("/", post(handler)).layer(middleware::from_fn_with_state(Room::default(), take_turns));
        let requests = (0..count).map(|_| {
            let mut request = axum::http::Request::post("/");
            if let Some(length) = length {
                request = request.header(CONTENT_LENGTH, length);
            }
            router.clone().oneshot(request.body(axum::body::Body::empty()).unwrap())
        });
        for response in futures::future::join_all(requests).await {
            assert_eq!(response.unwrap().status(), StatusCode::OK);
        }
        most.load(Ordering::SeqCst)
    }

    #[tokio::test(start_paused = true)]
    async fn large_bodies_take_turns_and_small_ones_need_not_wait() {
        assert_eq!(together(20, Some(3 * MIB)).await, 2);
        assert_eq!(together(20, Some(100 * MIB)).await, 1, "what is too large is refused when it is its turn");
        assert_eq!(together(20, None).await, 1);
        assert_eq!(together(200, Some(4096)).await, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_send_what_was_promised_gives_up_the_turn() {
        let router = Router::new()
            .route("/", post(|_: Bytes| async {}))
            .layer(middleware::from_fn_with_state(Room::default(), take_turns));
        let silent = axum::body::Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
        let request = axum::http::Request::post("/").body(silent).unwrap();
        assert_eq!(router.oneshot(request).await.unwrap().status(), StatusCode::REQUEST_TIMEOUT);
    }
}
