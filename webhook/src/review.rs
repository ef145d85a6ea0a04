//! An `AdmissionReview` in, an `AdmissionReview` out.
//!
//! Only the fields that decide something are read. The usual object is decoded in one pass; one that does not decode is
//! read again as a tree, so that the answer is a denial that says where, not a failed webhook. Such objects come from
//! resources written while the schema was not checked.

use std::collections::BTreeMap;

use ankka_crds::{Problem, problem};
use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// What the API server asks.
#[derive(Debug)]
pub struct Request<S> {
    /// To be repeated in the answer.
    pub uid: String,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: Operation,
    /// The subresource that is written; empty for the resource itself.
    pub sub_resource: String,
    /// Who asks, as the API server knows them.
    pub user: String,
    /// The object as it would be stored.
    pub object: Option<Object<S>>,
    /// The object as it is stored.
    pub old: Option<Object<S>>,
    /// Whether both objects say the same under `spec`; absent and `null` are the same.
    pub same_spec: bool,
}

/// What is done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It is new.
    Create,
    /// It is changed.
    Update,
    /// It is deleted, or connected to; or something this process does not know. Nothing of that is judged.
    #[serde(other)]
    Other,
}

/// One version of the object.
#[derive(Debug, PartialEq)]
pub struct Object<S> {
    /// The part of the metadata that decides something.
    pub metadata: Metadata,
    /// The spec, or why it cannot be read.
    pub spec: Result<S, Problem>,
}

/// The part of an object's metadata that decides something.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The object's name.
    pub name: Option<String>,
    /// Its namespace; none for a project.
    pub namespace: Option<String>,
    /// Raised by the API server with every change of the spec.
    pub generation: Option<i64>,
    /// Set once the object is being deleted.
    pub deletion_timestamp: Option<String>,
    /// All annotations.
    pub annotations: Option<BTreeMap<String, String>>,
}

/// What the API server is told.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// Let it pass.
    Admit {
        /// Sentences for whoever asks.
        warnings: Vec<String>,
        /// A JSON patch to apply first.
        patch: Option<Value>,
    },
    /// Refuse it, for these reasons.
    Deny(Vec<Problem>),
}

impl Verdict {
    /// Let it pass as it is, without a word.
    pub fn admit() -> Self {
        Self::Admit { warnings: Vec::new(), patch: None }
    }
}

/// Why a body is no review.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the body as an AdmissionReview of admission.k8s.io/v1: {0}")]
pub struct NotAReview(String);

impl From<serde_json::Error> for NotAReview {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<O> {
    request: Option<RawRequest<O>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRequest<O> {
    uid: String,
    operation: Operation,
    #[serde(default)]
    sub_resource: Option<String>,
    #[serde(default)]
    user_info: Option<UserInfo>,
    // Without this, serde asks the object's type for a default.
    #[serde(default = "none")]
    object: Option<O>,
    #[serde(default = "none")]
    old_object: Option<O>,
}

fn none<O>() -> Option<O> {
    None
}

#[derive(Deserialize)]
struct UserInfo {
    #[serde(default)]
    username: Option<String>,
}

#[derive(Deserialize)]
struct Decoded<S> {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: S,
}

/// Reads the body of a request.
pub fn read<S>(body: &[u8]) -> Result<Request<S>, NotAReview>
where
    S: DeserializeOwned + Default + PartialEq,
{
    if let Ok(review) = serde_json::from_slice::<Envelope<Decoded<S>>>(body) {
        let object = |decoded: Decoded<S>| Object { metadata: decoded.metadata, spec: Ok(decoded.spec) };
        return request(review, object, |one, other| one.spec == other.spec);
    }
    let mut review: Envelope<Value> = serde_json::from_slice(body)?;
    if let Some(request) = &mut review.request {
        request.object.iter_mut().chain(&mut request.old_object).for_each(drop_nulls);
    }
    request(review, object_of_tree, |one, other| one.get("spec") == other.get("spec"))
}

fn request<O, S>(
    review: Envelope<O>,
    object: impl Fn(O) -> Object<S>,
    same_spec: impl Fn(&O, &O) -> bool,
) -> Result<Request<S>, NotAReview> {
    let request = review.request.ok_or_else(|| NotAReview("it has no `request`".to_owned()))?;
    let both = request.object.as_ref().zip(request.old_object.as_ref());
    Ok(Request {
        same_spec: both.is_some_and(|(object, old)| same_spec(object, old)),
        uid: request.uid,
        operation: request.operation,
        sub_resource: request.sub_resource.unwrap_or_default(),
        user: request.user_info.and_then(|user| user.username).unwrap_or_default(),
        object: request.object.map(&object),
        old: request.old_object.map(&object),
    })
}

/// Reads what can be read: metadata of the wrong type is absent, a spec of the wrong type is a problem with its path.
fn object_of_tree<S: DeserializeOwned + Default>(mut tree: Value) -> Object<S> {
    let mut take = |field: &str| tree.get_mut(field).map(Value::take);
    let metadata = take("metadata").unwrap_or_default();
    let text = |field: &str| metadata.get(field).and_then(Value::as_str).map(str::to_owned);
    let annotations = metadata
        .get("annotations")
        .and_then(Value::as_object)
        .map(|all| all.iter().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect());
    let spec = take("spec").map_or_else(
        || Ok(S::default()),
        |spec| {
            serde_path_to_error::deserialize(spec).map_err(|error| {
                let path = match error.path().to_string().as_str() {
                    "." => "spec".to_owned(),
                    path => format!("spec.{path}"),
                };
                Problem::new(path, wrong_type(&error.into_inner().to_string()))
            })
        },
    );
    Object {
        metadata: Metadata {
            name: text("name"),
            namespace: text("namespace"),
            generation: metadata.get("generation").and_then(Value::as_i64),
            deletion_timestamp: text("deletionTimestamp"),
            annotations,
        },
        spec,
    }
}

/// The decoder's message without the value it quotes, which may be a secret one.
fn wrong_type(message: &str) -> String {
    problem::expected(message).map_or_else(
        || "cannot be read: a value of another type is needed".to_owned(),
        |expected| format!("is of the wrong type, expected {expected}"),
    )
}

fn drop_nulls(tree: &mut Value) {
    match tree {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<ByteString>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [String],
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the names of the API")]
struct Status<'a> {
    status: &'static str,
    code: u16,
    reason: &'static str,
    message: String,
    details: Details<'a>,
}

#[derive(Serialize)]
struct Details<'a> {
    name: &'a str,
    group: &'static str,
    kind: &'static str,
    causes: Vec<Cause<'a>>,
}

#[derive(Serialize)]
struct Cause<'a> {
    reason: &'static str,
    field: &'a str,
    message: &'a str,
}

/// The body of the answer to the request `uid` about the `kind` called `name`.
///
/// The API server puts its own words before `message` and passes the rest on. kubectl prints the kind and name of the
/// details and a line for each cause; clients that show only `message` find every problem there, in the shape Kubernetes'
/// own refusals have.
pub fn answer(uid: &str, kind: &'static str, name: &str, verdict: &Verdict) -> Vec<u8> {
    let mut response =
        Response { uid, allowed: true, status: None, patch_type: None, patch: None, warnings: Default::default() };
    match verdict {
        Verdict::Admit { warnings, patch } => {
            response.warnings = warnings;
            if let Some(patch) = patch {
                response.patch_type = Some("JSONPatch");
                response.patch = Some(ByteString(patch.to_string().into_bytes()));
            }
        }
        Verdict::Deny(problems) => {
            response.allowed = false;
            response.status = Some(refusal(kind, name, problems));
        }
    }
    let answer = Answer { api_version: "admission.k8s.io/v1", kind: "AdmissionReview", response };
    serde_json::to_vec(&answer).expect("strings and numbers always serialise")
}

fn refusal<'a>(kind: &'static str, name: &'a str, problems: &'a [Problem]) -> Status<'a> {
    let lines: Vec<String> = problems.iter().map(|problem| format!("{}: {}", problem.path, problem.message)).collect();
    let list = match lines.as_slice() {
        [only] => only.clone(),
        _ => format!("[{}]", lines.join(", ")),
    };
    Status {
        status: "Failure",
        code: 422,
        reason: "Invalid",
        message: format!("{kind}.{} {name:?} is invalid: {list}", ankka_crds::GROUP),
        details: Details {
            name,
            group: ankka_crds::GROUP,
            kind,
            causes: problems
                .iter()
                .map(|problem| Cause { reason: "FieldValueInvalid", field: &problem.path, message: &problem.message })
                .collect(),
        },
    }
}
