//! The connection to one server: requests, answers, and the state that its notifications report.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use cairn_harness::ServiceStop;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::{
    io::AsyncWriteExt as _,
    net::unix::pipe,
    sync::{mpsc, oneshot, watch},
};
use url::Url;

use super::{
    diagnostic::{Published, stored},
    documents::Documents,
    framing::{Decoder, FrameError, Incoming, RpcError, encode},
};

/// Most messages that wait for a server to read its input.
const MAX_OUTBOX: usize = 64;
/// Most requests without an answer.
const MAX_PENDING: usize = 64;
/// Most running tasks that a server reports.
const MAX_TASKS: usize = 256;
/// Most items of a request for the configuration.
const MAX_ITEMS: usize = 256;

/// Error of the protocol for a method that the client does not have.
const METHOD_NOT_FOUND: i64 = -32601;

/// State that a server reports.
#[derive(Default)]
pub struct State {
    /// Reason why the connection has ended, and when.
    pub failure: Option<(String, Instant)>,
    pub documents: Documents,
    /// Tokens of running tasks.
    tasks: HashSet<String>,
    /// Status of a server that reports whether it has loaded the project.
    pub is_quiescent: Option<bool>,
    /// Time of the last report.
    last_event: Option<Instant>,
    pending: HashMap<i64, oneshot::Sender<Result<Box<RawValue>, RpcError>>>,
    next_id: i64,
}

impl State {
    /// Returns true if the server reports that it works.
    pub fn is_busy(&self) -> bool {
        !self.tasks.is_empty() || self.is_quiescent == Some(false)
    }

    /// Returns the time since the last report.
    pub fn quiet_for(&self) -> Duration {
        self.last_event.map_or(Duration::MAX, |last| last.elapsed())
    }
}

/// Reason why a request has no result.
pub enum RequestError {
    /// The server answered with an error.
    Refused(RpcError),
    /// The connection has ended.
    Closed,
}

/// The connection. The thread that reads the output of the server calls [`Connection::read`].
pub struct Connection {
    state: Mutex<State>,
    changed: watch::Sender<()>,
    outbox: mpsc::Sender<Vec<u8>>,
    stop: OnceLock<ServiceStop>,
    /// Folder that is opened, for servers that request it.
    folder: String,
}

impl Connection {
    /// Creates a connection, and the queue of the messages for the server.
    pub fn new(folder: String) -> (Arc<Self>, mpsc::Receiver<Vec<u8>>) {
        let (outbox, queue) = mpsc::channel(MAX_OUTBOX);
        let (state, changed) = (Mutex::default(), watch::channel(()).0);
        (Arc::new(Self { state, changed, outbox, stop: OnceLock::new(), folder }), queue)
    }

    /// Sets the handle that stops the program when the connection fails.
    pub fn set_stop(&self, stop: ServiceStop) {
        if self.state().failure.is_some() {
            stop.stop();
        }
        // It is set once, by the start.
        let _second = self.stop.set(stop);
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a receiver that is notified of each change of the state.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Reads output of the server.
    pub fn read(&self, decoder: &mut Decoder, bytes: &[u8]) {
        if self.state().failure.is_some() {
            return;
        }
        let read = decoder.push(bytes, |message| self.receive(message));
        if let Err(error) = read {
            self.fail(&invalid(&error));
        }
    }

    /// Ends the connection with its first reason.
    pub fn fail(&self, reason: &str) {
        {
            let mut state = self.state();
            state.failure.get_or_insert_with(|| (reason.to_owned(), Instant::now()));
            state.pending.clear();
        }
        if let Some(stop) = self.stop.get() {
            stop.stop();
        }
        self.changed.send_replace(());
    }

    /// Sends a message. A server that does not read its input is stopped.
    pub fn send(&self, message: &Value) {
        match self.outbox.try_send(encode(message)) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(_)) => self.fail("it does not read its input"),
        }
    }

    pub fn notify(&self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and waits for its answer; the caller limits the time.
    ///
    /// # Errors
    /// The error of the server, or the end of the connection.
    pub async fn request(
        &self,
        method: &str,
        params: Value,
    ) -> Result<Box<RawValue>, RequestError> {
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut state = self.state();
            state.pending.retain(|_, waiter| !waiter.is_closed());
            if state.failure.is_some() || state.pending.len() >= MAX_PENDING {
                return Err(RequestError::Closed);
            }
            state.next_id += 1;
            let id = state.next_id;
            state.pending.insert(id, sender);
            id
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        match receiver.await {
            Ok(answer) => answer.map_err(RequestError::Refused),
            Err(_) => Err(RequestError::Closed),
        }
    }

    fn receive(&self, message: Incoming) {
        match (message.method, message.id) {
            (Some(method), Some(id)) => self.answer(&method, id, message.params.as_deref()),
            (Some(method), None) => self.take_notification(&method, message.params.as_deref()),
            (None, Some(id)) => {
                let waiter = id.as_i64().and_then(|id| self.state().pending.remove(&id));
                let answer = match (message.error, message.result) {
                    (Some(error), _) => Err(error),
                    (None, Some(result)) => Ok(result),
                    (None, None) => Ok(RawValue::NULL.to_owned()),
                };
                if let Some(waiter) = waiter {
                    // The caller may have given up.
                    let _caller_gone = waiter.send(answer);
                }
            }
            (None, None) => {}
        }
    }

    /// Answers a request of the server.
    fn answer(&self, method: &str, id: Value, params: Option<&RawValue>) {
        let result = match method {
            "workspace/configuration" => {
                let items = parsed::<Configuration>(params).map_or(0, |params| params.items.len());
                vec![Value::Null; items.min(MAX_ITEMS)].into()
            }
            "workspace/workspaceFolders" => json!([{"uri": self.folder, "name": "workspace"}]),
            "workspace/applyEdit" => json!({"applied": false}),
            "window/workDoneProgress/create"
            | "client/registerCapability"
            | "client/unregisterCapability"
            | "workspace/diagnostic/refresh"
            | "workspace/semanticTokens/refresh"
            | "workspace/inlayHint/refresh"
            | "workspace/codeLens/refresh"
            | "window/showMessageRequest" => Value::Null,
            _ => {
                let error = json!({"code": METHOD_NOT_FOUND, "message": "not supported"});
                return self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn take_notification(&self, method: &str, params: Option<&RawValue>) {
        let mut state = self.state();
        match method {
            "textDocument/publishDiagnostics" => {
                let Some(published) = parsed::<Published>(params) else { return };
                let Some(path) = path_of(&published.uri) else { return };
                state.documents.publish(path, published.version, stored(published.diagnostics));
            }
            "$/progress" => {
                let Some(progress) = parsed::<Progress>(params) else { return };
                let token = progress.token.to_string();
                match progress.value.kind.as_str() {
                    "begin" if state.tasks.len() < MAX_TASKS => {
                        state.tasks.insert(token);
                    }
                    "end" => {
                        state.tasks.remove(&token);
                    }
                    _ => return,
                }
            }
            "experimental/serverStatus" => {
                let Some(status) = parsed::<ServerStatus>(params) else { return };
                state.is_quiescent = Some(status.quiescent);
            }
            _ => return,
        }
        state.last_event = Some(Instant::now());
        drop(state);
        self.changed.send_replace(());
    }
}

/// Writes the messages of the queue until one of both ends.
pub async fn write(mut input: pipe::Sender, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(message) = queue.recv().await {
        // The end of the program is reported by its exit.
        if input.write_all(&message).await.is_err() {
            return;
        }
    }
}

#[derive(Deserialize)]
struct Configuration {
    items: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Progress {
    token: Value,
    value: ProgressValue,
}

#[derive(Deserialize)]
struct ProgressValue {
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
struct ServerStatus {
    #[serde(default)]
    quiescent: bool,
}

/// Returns parameters of the expected form; others are ignored.
fn parsed<T: serde::de::DeserializeOwned>(params: Option<&RawValue>) -> Option<T> {
    serde_json::from_str(params?.get()).ok()
}

fn invalid(error: &FrameError) -> String {
    format!("it sent an invalid message: {error}")
}

/// Returns the path of an address of a file. Servers encode the same path in different ways.
fn path_of(uri: &str) -> Option<PathBuf> {
    let url = Url::parse(uri).ok().filter(|url| url.scheme() == "file")?;
    url.to_file_path().ok()
}
