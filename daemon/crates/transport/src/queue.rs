//! A client in the daemon's own process: a queue over one connection of the API, without a socket.
//!
//! What speaks another protocol to its clients (MCP, an editor's) acts through a [`Queue`], so that rights, limits,
//! the gate, the audit and the log are those of every other client.

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
    rpc,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use tokio::sync::{mpsc, oneshot};

/// Notifications that wait to be read; then the connection's events wait in the log, and its answers with them.
pub const NOTIFICATIONS: usize = 64;

/// One notification of the daemon.
#[derive(Debug, Clone, Deserialize)]
pub struct Notification {
    /// Its name, as in `initialize`'s `capabilities.notifications`.
    pub method: String,
    /// Its params.
    #[serde(default)]
    pub params: Value,
}

/// An open connection. Clones share it; with the last one it is closed, which ends its searches, reads and
/// subscriptions and nothing else.
#[derive(Clone)]
pub struct Queue {
    inner: Arc<Inner>,
}

struct Inner {
    connection: Connection,
    waiting: Waiting,
    next: AtomicU64,
    max_message_bytes: u64,
    runtime: tokio::runtime::Handle,
}

type Answered = Result<Box<RawValue>, Failure>;
/// Calls at work, by id. `None` once the connection has ended.
type Waiting = Arc<Mutex<Option<HashMap<u64, oneshot::Sender<Answered>>>>>;

impl Drop for Inner {
    fn drop(&mut self) {
        self.connection.close();
    }
}

impl Queue {
    /// Opens a connection that may do what `rights` say. Nothing but [`Queue::initialize`] is answered before that.
    ///
    /// Read the notifications in another task than the one that waits for answers, or drop their receiver: they come in
    /// one order with the answers, and when [`NOTIFICATIONS`] of them wait, so does everything after them.
    ///
    /// # Errors
    /// `overloaded` when the daemon has as many connections as it may.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open(api: &Arc<Api>, rights: Rights) -> Result<(Self, mpsc::Receiver<Notification>), Failure> {
        let (connection, outgoing) = Connection::open(api, rights)?;
        let (told, notifications) = mpsc::channel(NOTIFICATIONS);
        let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        tokio::spawn(pump(outgoing, Arc::clone(&waiting), told));
        let runtime = tokio::runtime::Handle::current();
        let max_message_bytes = api.limits().max_message_bytes;
        let inner = Inner { connection, waiting, next: AtomicU64::new(1), max_message_bytes, runtime };
        Ok((Self { inner: Arc::new(inner) }, notifications))
    }

    /// Says who the client is, and whether it answers approvals.
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
        self.ask("initialize", &params).await
    }

    /// Calls a method and waits for its answer. Dropping the future cancels the call where the method allows that.
    ///
    /// # Errors
    /// What the method fails with; `shutting_down` when the connection has ended.
    pub async fn call(&self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.ask(method, params).await
    }

    /// The same with types: `params` must be written as an object.
    ///
    /// # Errors
    /// As [`Queue::call`]; `internal` when the answer is not of the type `R`.
    pub async fn ask<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R, Failure> {
        let answer = self.raw(method, params).await?;
        serde_json::from_str(answer.get()).map_err(|e| {
            Failure::new(Reason::Internal, format!("the answer of {method} cannot be read: {e}"))
        })
    }

    async fn raw(&self, method: &str, params: &impl Serialize) -> Answered {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let bad = |e| Failure::new(Reason::InvalidParams, format!("{method}: params cannot be written: {e}"));
        let request = Request { jsonrpc: "2.0", id, method, params };
        let text = serde_json::to_string(&request).map_err(bad)?;
        let limit = self.inner.max_message_bytes;
        if text.len() as u64 > limit {
            let text = format!("{method}: a message of {} bytes, {limit} are allowed", text.len());
            return Err(Failure::new(Reason::TooLarge, text));
        }
        let (answer, answered) = oneshot::channel();
        match locked(&self.inner.waiting).as_mut() {
            Some(waiting) => waiting.insert(id, answer),
            None => return Err(ended()),
        };
        let mut cancel = CancelOnDrop { queue: Some(self), id };
        self.inner.connection.handle_message(&text).await;
        let outcome = answered.await;
        cancel.queue = None;
        outcome.unwrap_or_else(|_closed| Err(ended()))
    }
}

fn ended() -> Failure {
    Failure::new(Reason::ShuttingDown, "the connection has ended")
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a P,
}

/// Cancels a call that nobody waits for any more.
struct CancelOnDrop<'a> {
    /// `None` once it was answered.
    queue: Option<&'a Queue>,
    id: u64,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(queue) = self.queue else { return };
        if let Some(waiting) = locked(&queue.inner.waiting).as_mut() {
            waiting.remove(&self.id);
        }
        let connection = queue.inner.connection.clone();
        let text = format!(r#"{{"jsonrpc":"2.0","method":"{}","params":{{"id":{}}}}}"#, rpc::CANCEL, self.id);
        queue.inner.runtime.spawn(async move { connection.handle_message(&text).await });
    }
}

/// Ends the waiting of every call, however the pump ends.
struct EndOnDrop(Waiting);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        locked(&self.0).take();
    }
}

/// Hands answers to their calls and notifications on, until the connection is closed.
async fn pump(mut outgoing: mpsc::Receiver<Outgoing>, waiting: Waiting, told: mpsc::Sender<Notification>) {
    let waiting = EndOnDrop(waiting);
    while let Some(message) = outgoing.recv().await {
        for text in message.into_texts() {
            match read(&text) {
                Some(Message::Answer(id, outcome)) => {
                    let call = locked(&waiting.0).as_mut().and_then(|w| w.remove(&id));
                    // Nobody waits for a call that was given up.
                    let _given_up = call.map(|call| call.send(outcome));
                }
                Some(Message::Notification(notification)) => {
                    // A receiver that was dropped wants none.
                    let _unwanted = told.send(notification).await;
                }
                None => tracing::error!("the api sent what is no message"),
            }
        }
    }
}

enum Message {
    Answer(u64, Answered),
    Notification(Notification),
}

fn read(text: &str) -> Option<Message> {
    #[derive(Deserialize)]
    struct Head<'a> {
        id: Option<u64>,
        #[serde(borrow)]
        result: Option<&'a RawValue>,
        #[serde(borrow)]
        error: Option<&'a RawValue>,
    }
    let head: Head<'_> = serde_json::from_str(text).ok()?;
    let Some(id) = head.id else { return serde_json::from_str(text).ok().map(Message::Notification) };
    if let Some(result) = head.result {
        return Some(Message::Answer(id, Ok(result.to_owned())));
    }
    Some(Message::Answer(id, Err(failure(head.error?))))
}

/// The failure that an error object tells of.
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
        return Failure::new(Reason::Internal, "the api sent an error that cannot be read");
    };
    let (name, details) = error.data.map_or((String::new(), None), |d| (d.reason, d.details));
    let reason = Reason::ALL.iter().copied().find(|r| r.as_str() == name).unwrap_or(Reason::Internal);
    Failure { reason, message: error.message, details }
}
