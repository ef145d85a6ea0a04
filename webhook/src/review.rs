//! An `AdmissionReview` in, an `AdmissionReview` out.
//!
//! Only the fields that decide something are read. The usual object is decoded in one pass; one that does not decode is
//! read again as a tree, so that the answer is a denial that says where, not a failed webhook. Such objects come from
//! resources written while the schema was not checked. What the verdict rarely rests on, the stored spec and annotations, is
//! kept as text until somebody asks.

use std::collections::BTreeMap;

use ankka_crds::{Problem, problem};
use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

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
    pub old: Option<Old>,
    same_trees: bool,
}

impl<S: DeserializeOwned + Default + PartialEq> Request<S> {
    /// Whether both objects say the same under `spec`; absent and `null` are the same.
    pub fn same_spec(&self) -> bool {
        let new = self.object.as_ref().and_then(|object| object.spec.as_ref().ok());
        let same = |new: &S| self.old.as_ref().and_then(Old::spec).is_some_and(|old: S| *new == old);
        self.same_trees || new.is_some_and(same)
    }
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

/// The object as it would be stored.
#[derive(Debug)]
pub struct Object<S> {
    /// The part of the metadata that decides something.
    pub metadata: Metadata,
    /// The spec, or why it cannot be read.
    pub spec: Result<S, Problem>,
}

/// The object as it is stored.
#[derive(Debug)]
pub struct Old {
    /// The part of the metadata that decides something.
    pub metadata: Metadata,
    spec: Option<Box<RawValue>>,
}

impl Old {
    /// The spec, or those fields of it that `S` has; none when they cannot be read.
    pub fn spec<S: DeserializeOwned + Default>(&self) -> Option<S> {
        let Some(text) = self.spec.as_deref().map(RawValue::get) else {
            return Some(S::default());
        };
        serde_json::from_str(text).ok().or_else(|| {
            let mut tree = serde_json::from_str(text).ok()?;
            drop_nulls(&mut tree);
            serde_json::from_value(tree).ok()
        })
    }
}

/// The part of an object's metadata that decides something.
#[derive(Clone, Debug, Default, Deserialize)]
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
    annotations: Option<Box<RawValue>>,
}

impl Metadata {
    /// All annotations; those that are no text are left out.
    pub fn annotations(&self) -> Option<BTreeMap<String, String>> {
        let text = self.annotations.as_deref()?.get();
        serde_json::from_str(text).ok().or_else(|| {
            let all: serde_json::Map<String, Value> = serde_json::from_str(text).ok()?;
            Some(all.into_iter().filter_map(|(key, value)| Some((key, value.as_str()?.to_owned()))).collect())
        })
    }
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
struct Envelope<O, P> {
    request: Option<RawRequest<O, P>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRequest<O, P> {
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
    old_object: Option<P>,
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
pub fn read<S: DeserializeOwned + Default>(body: &[u8]) -> Result<Request<S>, NotAReview> {
    if let Ok(review) = serde_json::from_slice::<Envelope<Decoded<S>, Decoded<Option<Box<RawValue>>>>>(body) {
        let object = |decoded: Decoded<S>| Object { metadata: decoded.metadata, spec: Ok(decoded.spec) };
        let old = |decoded: Decoded<_>| Old { metadata: decoded.metadata, spec: decoded.spec };
        return request(review, object, old, |_, _| false);
    }
    let mut review: Envelope<Value, Value> = serde_json::from_slice(body)?;
    if let Some(request) = &mut review.request {
        request.object.iter_mut().chain(&mut request.old_object).for_each(drop_nulls);
    }
    let old = |tree: Value| Old { metadata: metadata_of_tree(&tree), spec: tree.get("spec").and_then(text) };
    request(review, |tree| object_of_tree(&tree), old, |one, other| one.get("spec") == other.get("spec"))
}

fn request<O, P, S>(
    review: Envelope<O, P>,
    object: impl Fn(O) -> Object<S>,
    old: impl Fn(P) -> Old,
    same_trees: impl Fn(&O, &P) -> bool,
) -> Result<Request<S>, NotAReview> {
    let request = review.request.ok_or_else(|| NotAReview("it has no `request`".to_owned()))?;
    let both = request.object.as_ref().zip(request.old_object.as_ref());
    Ok(Request {
        same_trees: both.is_some_and(|(object, old)| same_trees(object, old)),
        uid: request.uid,
        operation: request.operation,
        sub_resource: request.sub_resource.unwrap_or_default(),
        user: request.user_info.and_then(|user| user.username).unwrap_or_default(),
        object: request.object.map(object),
        old: request.old_object.map(old),
    })
}

/// Reads what can be read; a spec of the wrong type is a problem with its path.
fn object_of_tree<S: DeserializeOwned + Default>(tree: &Value) -> Object<S> {
    let spec = tree.get("spec").map_or_else(
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
    Object { metadata: metadata_of_tree(tree), spec }
}

/// Reads what can be read: a field of the wrong type is absent.
fn metadata_of_tree(tree: &Value) -> Metadata {
    let field = |name: &str| tree.get("metadata")?.get(name);
    let word = |name: &str| field(name).and_then(Value::as_str).map(str::to_owned);
    Metadata {
        name: word("name"),
        namespace: word("namespace"),
        generation: field("generation").and_then(Value::as_i64),
        deletion_timestamp: word("deletionTimestamp"),
        annotations: field("annotations").and_then(text),
    }
}

fn text(tree: &Value) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(tree).ok()
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
