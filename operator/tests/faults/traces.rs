//! The spans of a pass.

use std::{
    sync::{Arc, Mutex},
    thread::{self, ThreadId},
};

use ankka_telemetry::SPANS;
use tracing::{
    Subscriber,
    span::{Attributes, Id},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt},
    registry::LookupSpan,
};

use crate::operator::cart;

/// Notes each span of one thread as `parent/name`.
///
/// It subscribes for the whole process: while other tests run beside this one, a subscriber of one thread only may find a
/// span's place in the code already marked as of no interest to anybody.
#[derive(Clone)]
struct Noted {
    spans: Arc<Mutex<Vec<String>>>,
    thread: ThreadId,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Noted {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if attributes.metadata().target() == SPANS && thread::current().id() == self.thread {
            let parent = context.span(id).and_then(|span| Some(span.parent()?.name())).unwrap_or_default();
            self.spans.lock().expect("nobody panicked").push(format!("{parent}/{}", attributes.metadata().name()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pass_is_a_span_with_its_phases_and_requests_below() {
    let noted = Noted { spans: Arc::default(), thread: thread::current().id() };
    let everywhere = tracing_subscriber::registry().with(noted.clone());
    tracing::subscriber::set_global_default(everywhere).expect("the only subscriber of these tests");
    cart().await;
    let spans = noted.spans.lock().expect("nobody panicked");
    for span in ["/reconcile", "reconcile/decide", "reconcile/act", "act/request", "reconcile/report", "report/request"]
    {
        assert!(spans.iter().any(|noted| noted == span), "no {span} in {spans:?}");
    }
}
