//! A client in the daemon's own process, over one connection of the API without a socket.
//!
//! Servers of other protocols (MCP, the Agent Client Protocol) act through an [`InProcessClient`],
//! so that rights, limits, the gate, the audit and the log apply as they do to any client.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use cairn_api::{Api, Connection, Outgoing, Rights};
use cairn_protocol::{
    PROTOCOL_VERSIONS,
    daemon::{ClientCapabilities, ClientInfo, InitializeParams, InitializeResult},
    error::{Failure, Reason},
    rpc::{self, Frame},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use tokio::sync::{mpsc, oneshot};

/// Capacity of the notification queue. When it is full, the connection's events wait in the log,
/// and its answers wait too.
pub const NOTIFICATION_CAPACITY: usize = 64;

/// A notification of the daemon.
#[derive(Debug, Clone)]
pub struct Notification {
    /// Its name, as in the `capabilities.notifications` of `initialize`.
    pub method: String,
    pub params: Value,
}

/// An open connection. Clones share it. Dropping the last one closes it, which ends its searches,
/// reads and subscriptions and nothing else.
#[derive(Clone)]
pub struct InProcessClient {
    inner: Arc<Inner>,
}

struct Inner {
    connection: Connection,
    pending: PendingCalls,
    next: AtomicU64,
    max_message_bytes: u64,
    runtime: tokio::runtime::Handle,
}

type CallOutcome = Result<Box<RawValue>, Failure>;
/// Pending calls by id. `None` once the connection has ended.
type PendingCalls = Arc<Mutex<Option<HashMap<u64, oneshot::Sender<CallOutcome>>>>>;

impl Drop for Inner {
    fn drop(&mut self) {
        self.connection.close();
    }
}

impl InProcessClient {
    /// Opens a connection with these rights. Only [`InProcessClient::initialize`] is answered at
    /// first.
    ///
    /// Read the notifications in another task than the one that awaits answers, or drop their
    /// receiver: both share one queue, and when [`NOTIFICATION_CAPACITY`] are unread, later answers wait as
    /// well.
    ///
    /// # Errors
    /// `overloaded` when the daemon's limit of connections is reached.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open(api: &Arc<Api>, rights: Rights) -> Result<(Self, mpsc::Receiver<Notification>), Failure> {
        let (connection, outgoing) = Connection::open(api, rights)?;
        let (notifications_out, notifications) = mpsc::channel(NOTIFICATION_CAPACITY);
        let pending: PendingCalls = Arc::new(Mutex::new(Some(HashMap::new())));
        tokio::spawn(pump(outgoing, Arc::clone(&pending), notifications_out));
        let runtime = tokio::runtime::Handle::current();
        let max_message_bytes = api.limits().max_message_bytes;
        let inner = Inner { connection, pending, next: AtomicU64::new(1), max_message_bytes, runtime };
        Ok((Self { inner: Arc::new(inner) }, notifications))
    }

    /// Identifies the client and declares whether it answers approvals.
    ///
    /// # Errors
    /// `already_initialized`, or `invalid_params` for a name that is empty or over 64 characters.
    pub async fn initialize(
        &self,
        name: &str,
        version: &str,
        approvals: bool,
    ) -> Result<InitializeResult, Failure> {
        let params = InitializeParams {
            protocol_versions: PROTOCOL_VERSIONS.iter().map(|v| (*v).to_owned()).collect(),
            client: ClientInfo { name: name.into(), version: version.into() },
            capabilities: ClientCapabilities { approvals },
        };
        self.request("initialize", &params).await
    }

    /// Calls a method and waits for its answer. Dropping the future cancels the call if the method
    /// allows that.
    ///
    /// # Errors
    /// The errors of the method; `shutting_down` when the connection has ended.
    pub async fn call(&self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.request(method, params).await
    }

    /// Calls a method with typed params, which must serialise as an object, and a typed result.
    ///
    /// # Errors
    /// As [`InProcessClient::call`]; `internal` when the answer is not an `R`.
    pub async fn request<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R, Failure> {
        let answer = self.call_raw(method, params).await?;
        serde_json::from_str(answer.get()).map_err(|e| {
            Failure::new(Reason::Internal, format!("the answer to {method} cannot be parsed: {e}"))
        })
    }

    async fn call_raw(&self, method: &str, params: &impl Serialize) -> CallOutcome {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let bad =
            |e| Failure::new(Reason::InvalidParams, format!("{method}: params cannot be serialized: {e}"));
        let request = Request { jsonrpc: "2.0", id, method, params };
        let text = serde_json::to_string(&request).map_err(bad)?;
        let limit = self.inner.max_message_bytes;
        if text.len() as u64 > limit {
            let text = format!("{method}: the message has {} bytes; the limit is {limit}", text.len());
            return Err(Failure::new(Reason::TooLarge, text));
        }
        let (answer, answered) = oneshot::channel();
        match lock(&self.inner.pending).as_mut() {
            Some(pending) => pending.insert(id, answer),
            None => return Err(shutting_down()),
        };
        let mut cancel = CancelOnDrop { client: Some(self), id };
        self.inner.connection.handle_message(&text).await;
        let outcome = answered.await;
        cancel.client = None;
        outcome.unwrap_or_else(|_closed| Err(shutting_down()))
    }
}

fn shutting_down() -> Failure {
    Failure::new(Reason::ShuttingDown, "the connection has ended")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a P,
}

/// Cancels a call whose future was dropped.
struct CancelOnDrop<'a> {
    /// `None` once the call was answered.
    client: Option<&'a InProcessClient>,
    id: u64,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(client) = self.client else { return };
        if let Some(pending) = lock(&client.inner.pending).as_mut() {
            pending.remove(&self.id);
        }
        let connection = client.inner.connection.clone();
        let text = format!(r#"{{"jsonrpc":"2.0","method":"{}","params":{{"id":{}}}}}"#, rpc::CANCEL, self.id);
        client.inner.runtime.spawn(async move { connection.handle_message(&text).await });
    }
}

/// Fails all pending calls, however the pump ends.
struct FailPendingOnDrop(PendingCalls);

impl Drop for FailPendingOnDrop {
    fn drop(&mut self) {
        lock(&self.0).take();
    }
}

/// Dispatches answers and notifications until the connection is closed.
async fn pump(
    mut outgoing: mpsc::Receiver<Outgoing>,
    pending: PendingCalls,
    notifications_out: mpsc::Sender<Notification>,
) {
    let pending = FailPendingOnDrop(pending);
    while let Some(message) = outgoing.recv().await {
        for text in message.into_texts() {
            match read(&text) {
                Some(Message::Answer(id, outcome)) => {
                    let call = lock(&pending.0).as_mut().and_then(|w| w.remove(&id));
                    // The receiver of a dropped call is gone.
                    let _call_dropped = call.map(|call| call.send(outcome));
                }
                Some(Message::Notification(notification)) => {
                    // The caller may have dropped the receiver.
                    let _receiver_dropped = notifications_out.send(notification).await;
                }
                None => tracing::error!("the api sent an invalid message"),
            }
        }
    }
}

enum Message {
    Answer(u64, CallOutcome),
    Notification(Notification),
}

fn read(text: &str) -> Option<Message> {
    let frame = Frame::parse(text).ok()?;
    let Some(id) = frame.id else {
        let params = frame.params_as().unwrap_or_default();
        let method = frame.method?.into_owned();
        return Some(Message::Notification(Notification { method, params }));
    };
    let id = id.get().parse().ok()?;
    if let Some(result) = frame.result {
        return Some(Message::Answer(id, Ok(result.to_owned())));
    }
    Some(Message::Answer(id, Err(failure(frame.error?))))
}

/// Converts a JSON-RPC error object.
fn failure(error: &RawValue) -> Failure {
    #[derive(Deserialize)]
    struct Error {
        message: String,
        data: Option<Data>,
    }
    #[derive(Deserialize)]
    struct Data {
        reason: String,
        details: Option<Value>,
    }
    let Ok(error) = serde_json::from_str::<Error>(error.get()) else {
        return Failure::new(Reason::Internal, "the api sent an error that cannot be parsed");
    };
    let (name, details) = error.data.map_or((String::new(), None), |d| (d.reason, d.details));
    let reason = Reason::ALL.iter().copied().find(|r| r.as_str() == name).unwrap_or(Reason::Internal);
    Failure { reason, message: error.message, details }
}
