//! A way to Garage's admin API on which calls go wrong, and which remembers all of them.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use ankka_testing::api::Api;
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use futures::stream;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::garage::client;

/// What goes wrong with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The controller dies before the call arrives.
    CrashBefore,
    /// The call is carried out and answered; then the controller dies.
    CrashAfter,
    /// The call is carried out; the controller dies before it has the answer.
    CrashWithoutReply,
    /// The call is carried out, the answer is lost, the controller goes on.
    ReplyLost,
    /// The call is carried out, and the answer comes too late.
    Late,
    /// No answer comes, and nothing is carried out.
    Silence,
    /// Refused with this code, in Garage's words or in those of something else.
    Refused(u16),
    /// The call is carried out, and what answers is something else.
    Garbage,
}

pub(crate) const FAULTS: [Fault; 10] = [
    Fault::CrashBefore,
    Fault::CrashAfter,
    Fault::CrashWithoutReply,
    Fault::ReplyLost,
    Fault::Late,
    Fault::Silence,
    Fault::Refused(403),
    Fault::Refused(404),
    Fault::Refused(500),
    Fault::Garbage,
];

/// Longer than the controller waits for an answer where that is four seconds.
const TOO_LONG: Duration = Duration::from_millis(4500);

/// The way from the controller to the store.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Shared {
    server: u16,
    client: Client,
    state: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    number: usize,
    fault: Option<(usize, Fault)>,
    api: Option<Api>,
    history: Vec<Call>,
    secrets: Vec<String>,
}

/// A call as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) operation: String,
    pub(crate) query: String,
    pub(crate) body: String,
}

impl Proxy {
    pub(crate) async fn to(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared { server, client: client(), state: Mutex::default() });
        let router = Router::new().fallback(carry).with_state(shared.clone());
        let task = tokio::spawn(async { drop(axum::serve(listener, router).await) });
        Self { port, shared, task }
    }

    /// From now on, the call of this number (from 0) goes wrong for the controller of `api`.
    pub(crate) fn fail(&self, number: usize, fault: Fault, api: &Api) {
        let mut state = self.lock();
        (state.number, state.fault, state.api) = (0, Some((number, fault)), Some(api.clone()));
    }

    /// How many calls there were since this was asked last.
    pub(crate) fn calls(&self) -> usize {
        std::mem::take(&mut self.lock().number)
    }

    /// Every call there was.
    pub(crate) fn history(&self) -> Vec<Call> {
        self.lock().history.clone()
    }

    /// Every secret that was answered.
    pub(crate) fn secrets(&self) -> Vec<String> {
        self.lock().secrets.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.shared.lock()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.state.lock().expect("no test panics while it holds this")
    }

    fn die(&self) {
        if let Some(api) = &self.lock().api {
            api.kill();
        }
    }
}

async fn carry(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let fault = shared.lock().arrived(&uri, &body);
    match fault {
        Some(Fault::CrashBefore) => {
            shared.die();
            return lost();
        }
        Some(Fault::Silence) => {
            tokio::time::sleep(TOO_LONG).await;
            return lost();
        }
        Some(Fault::Refused(404)) => return (StatusCode::NOT_FOUND, "<html>not here</html>").into_response(),
        Some(Fault::Refused(code)) => {
            let status = StatusCode::from_u16(code).expect("a code");
            return (status, json!({"code": "Injected", "message": "injected"}).to_string()).into_response();
        }
        _ => {}
    }
    let url = format!("http://127.0.0.1:{}{uri}", shared.server);
    let mut request = shared.client.request(method, url).body(body);
    for (name, value) in headers.iter().filter(|(name, _)| name.as_str() != "host") {
        request = request.header(name, value);
    }
    let Ok(answer) = request.send().await else { return lost() };
    let (status, body) = (answer.status(), answer.bytes().await.expect("a body"));
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    if let Some(secret) = json["secretAccessKey"].as_str() {
        shared.lock().secrets.push(secret.to_owned());
    }
    match fault {
        Some(Fault::CrashAfter) => shared.die(),
        Some(Fault::CrashWithoutReply) => {
            shared.die();
            return lost();
        }
        Some(Fault::ReplyLost) => return lost(),
        Some(Fault::Late) => tokio::time::sleep(TOO_LONG).await,
        Some(Fault::Garbage) => return "<html>welcome</html>".into_response(),
        _ => {}
    }
    (status, body).into_response()
}

/// An answer that breaks off.
fn lost() -> Response {
    Body::from_stream(stream::iter([Err::<Bytes, _>(std::io::Error::other("lost"))])).into_response()
}

impl Calls {
    /// Remembers a call, and says what goes wrong with it.
    fn arrived(&mut self, uri: &Uri, body: &Bytes) -> Option<Fault> {
        let text = String::from_utf8_lossy(body).into_owned();
        let operation = uri.path().trim_start_matches("/v2/").to_owned();
        self.history.push(Call { operation, query: uri.query().unwrap_or_default().to_owned(), body: text });
        let number = self.number;
        self.number += 1;
        self.fault.take_if(|(at, _)| *at == number).map(|(_, fault)| fault)
    }
}
