//! A way to the server on which messages get lost.
//!
//! What the controller sends arrives in pieces, one for each call: the messages of a login, and each statement. They are
//! counted, and the piece of one number goes wrong.

use std::sync::{Arc, Mutex, MutexGuard};

use ankka_testing::api::Api;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

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
}

pub(crate) const FAULTS: [Fault; 4] =
    [Fault::CrashBefore, Fault::CrashAfter, Fault::CrashWithoutReply, Fault::ReplyLost];

/// The way from the controller to the server.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    calls: usize,
    fault: Option<(usize, Fault)>,
    api: Option<Api>,
}

impl Proxy {
    pub(crate) async fn to(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::<Mutex<State>>::default();
        let shared = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, server, shared.clone()));
            }
        });
        Self { port, state, task }
    }

    /// From now on, the call of this number (from 0) goes wrong for the controller of `api`.
    pub(crate) fn fail(&self, number: usize, fault: Fault, api: &Api) {
        *lock(&self.state) = State { calls: 0, fault: Some((number, fault)), api: Some(api.clone()) };
    }

    /// The calls since this was asked last.
    pub(crate) fn calls(&self) -> usize {
        std::mem::take(&mut lock(&self.state).calls)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no test panics while it holds this")
}

fn die(state: &Mutex<State>) {
    if let Some(api) = &lock(state).api {
        api.kill();
    }
}

/// Carries one connection until it breaks.
async fn carry(mut client: TcpStream, server: u16, state: Arc<Mutex<State>>) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut from_client, mut from_server) = (vec![0; 65536], vec![0; 65536]);
    let mut pending = None;
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let Ok(length @ 1..) = read else { return };
                let fault = {
                    let mut state = lock(&state);
                    let number = state.calls;
                    state.calls += 1;
                    state.fault.take_if(|(at, _)| *at == number).map(|(_, fault)| fault)
                };
                if fault == Some(Fault::CrashBefore) {
                    return die(&state);
                }
                pending = fault;
                if server.write_all(&from_client[..length]).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut from_server) => {
                let Ok(length @ 1..) = read else { return };
                match pending.take() {
                    Some(Fault::CrashWithoutReply) => return die(&state),
                    Some(Fault::ReplyLost) => return,
                    fault => {
                        if client.write_all(&from_server[..length]).await.is_err() {
                            return;
                        }
                        if fault == Some(Fault::CrashAfter) {
                            return die(&state);
                        }
                    }
                }
            }
        }
    }
}
