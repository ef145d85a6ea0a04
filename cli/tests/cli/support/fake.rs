//! An API server on loopback that answers what a test tells it to, and remembers what it was asked.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde_json::{Value, json};

/// One request, as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) content_type: String,
    pub(crate) body: Value,
}

impl Request {
    /// Method and path, for comparing.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub(crate) fn watches(&self) -> bool {
        self.query.contains("watch=true")
    }
}

/// One answer.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A document, with a status and further headers.
    Json(u16, Value, Vec<(&'static str, String)>),
    /// Plain text, as the API server answers for groups it does not know.
    Text(u16, String),
    /// Plain text, after which the connection breaks.
    Broken(String),
    /// Nothing yet: what a watch is told while nothing happens.
    Silence,
    /// A connection that both sides talk over, in Kubernetes' channels.
    Socket(Talk),
}

/// What the server does with a connection.
pub(crate) type Talk = fn(WebSocket) -> Pin<Box<dyn Future<Output = ()> + Send>>;

impl Reply {
    pub(crate) fn ok(body: Value) -> Self {
        Self::Json(200, body, Vec::new())
    }

    pub(crate) fn created(body: Value) -> Self {
        Self::Json(201, body, Vec::new())
    }

    pub(crate) fn with(self, name: &'static str, value: &str) -> Self {
        match self {
            Self::Json(status, body, mut headers) => {
                headers.push((name, value.to_owned()));
                Self::Json(status, body, headers)
            }
            other => other,
        }
    }

    /// A list of objects.
    pub(crate) fn list(items: &[Value]) -> Self {
        Self::ok(json!({ "metadata": { "resourceVersion": "10" }, "items": items }))
    }

    /// Events of a watch, which then stays silent.
    pub(crate) fn events(events: &[Value]) -> Self {
        Self::Text(200, events.iter().fold(String::new(), |text, event| text + &event.to_string() + "\n"))
    }

    /// A refusal in the API server's shape.
    pub(crate) fn status(code: u16, reason: &str, message: &str, details: &Value) -> Self {
        Self::Json(
            code,
            json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure",
                "code": code, "reason": reason, "message": message, "details": details,
            }),
            Vec::new(),
        )
    }
}

type Answer = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

#[derive(Clone)]
struct Server {
    answer: Answer,
    seen: Arc<Mutex<Vec<Request>>>,
}

/// A running fake; it ends with the test.
pub(crate) struct Fake {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
    _runtime: tokio::runtime::Runtime,
}

impl Fake {
    /// Starts a server that answers by this function.
    pub(crate) fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let server = Server { answer: Arc::new(answer), seen: seen.clone() };
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a port on loopback");
        let address = listener.local_addr().expect("an address");
        let router = Router::new().fallback(respond).with_state(server);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { address, seen, _runtime: runtime }
    }

    /// Everything it was asked so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.lock().expect("no test has panicked in it").clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.requests().iter().map(Request::line).collect()
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn kubeconfig(&self) -> String {
        kubeconfig("fake", &format!("http://{}", self.address))
    }
}

/// A kubeconfig with one context of this name.
pub(crate) fn kubeconfig(context: &str, server: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": context,
        "clusters": [{ "name": context, "cluster": { "server": server } }],
        "contexts": [{ "name": context, "context": { "cluster": context, "user": context } }],
        "users": [{ "name": context, "user": { "token": "not-a-secret" } }],
    })
    .to_string()
}

async fn respond(
    State(server): State<Server>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    body: Bytes,
) -> Response {
    let request = Request {
        method: method.to_string(),
        path: uri.path().to_owned(),
        query: uri.query().unwrap_or_default().to_owned(),
        content_type: headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    let again = {
        let mut seen = server.seen.lock().expect("no test has panicked in it");
        let again = request.watches() && seen.iter().any(|before| before.watches() && before.path == request.path);
        seen.push(request.clone());
        again
    };
    match (server.answer)(&request) {
        // A watch that was answered once has nothing more to say.
        _ if again => silence().await,
        Reply::Silence => silence().await,
        Reply::Socket(talk) => {
            let upgrade = upgrade.expect("the request asks for a connection");
            upgrade.protocols(["v5.channel.k8s.io"]).on_upgrade(talk)
        }
        Reply::Text(status, text) => (code(status), text).into_response(),
        Reply::Broken(text) => Body::from_stream(stream::unfold(Some(text), |text| async move {
            if let Some(text) = text {
                return Some((Ok(text), None));
            }
            // What was sent so far has arrived by then.
            tokio::time::sleep(Duration::from_millis(200)).await;
            Some((Err(std::io::Error::other("the node is gone")), None))
        }))
        .into_response(),
        Reply::Json(status, body, headers) => {
            let mut response = (code(status), axum::Json(body)).into_response();
            for (name, value) in headers {
                response.headers_mut().append(name, value.parse().expect("a header's value"));
            }
            response
        }
    }
}

async fn silence() -> Response {
    tokio::time::sleep(Duration::from_mins(1)).await;
    StatusCode::OK.into_response()
}

fn code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).expect("a status")
}
