//! The spans of a pass.

use std::sync::{Arc, Mutex};

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

/// Notes each span as `parent/name`.
#[derive(Clone, Default)]
struct Noted(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Noted {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if attributes.metadata().target() == SPANS {
            let parent = context.span(id).and_then(|span| Some(span.parent()?.name())).unwrap_or_default();
            self.0.lock().expect("nobody panicked").push(format!("{parent}/{}", attributes.metadata().name()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pass_is_a_span_with_its_phases_and_requests_below() {
    let noted = Noted::default();
    let _here = tracing::subscriber::set_default(tracing_subscriber::registry().with(noted.clone()));
    cart().await;
    let spans = noted.0.lock().expect("nobody panicked");
    for span in ["/reconcile", "reconcile/decide", "reconcile/act", "act/request", "reconcile/report", "report/request"]
    {
        assert!(spans.iter().any(|noted| noted == span), "no {span} in {spans:?}");
    }
}
