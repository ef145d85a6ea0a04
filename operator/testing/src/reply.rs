//! Answers of the API server, and what is asked of it.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::stream;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use serde_json::{Value, json};
use tower::BoxError;

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

pub(crate) fn answer(code: u16, object: &Value) -> Answer {
    let line = Bytes::from(object.to_string());
    let frames = stream::once(async move { Ok::<_, BoxError>(hyper::body::Frame::data(line)) });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).expect("a code");
    response
}

pub(crate) fn status(code: u16, reason: &str) -> Answer {
    let mut status = json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason});
    if code == 422 {
        // An invalid field is what such a refusal is about.
        status["details"] = json!({"causes": [{"field": reason, "reason": "FieldValueInvalid"}]});
    }
    answer(code, &status)
}

pub(crate) fn form(query: &str) -> BTreeMap<String, String> {
    let decode = |text: &str| text.replace("%2F", "/").replace("%3D", "=");
    query.split('&').filter_map(|pair| pair.split_once('=')).map(|(key, value)| (decode(key), decode(value))).collect()
}
