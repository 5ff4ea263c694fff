//! Routing of messages from the daemon: answers to calls, records to streams, progress to
//! listeners.
//!
//! This is not jsonrpsee's asynchronous client: that one ends a subscription whose queue is full. A
//! follower must block the socket instead, so that the daemon continues from its log and no record
//! is lost.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cairn_protocol::{
    error::ErrorData,
    id::SubscriptionId,
    rpc::{self, Frame},
};
use futures_util::{SinkExt, StreamExt, stream::SplitSink, stream::SplitStream};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::{
    ClientError,
    events::{Notice, Step},
    socket::Socket,
};

/// Maximum number of queued outgoing messages.
const OUTGOING: usize = 64;
/// Maximum number of records queued for a stream's reader; beyond it the socket is not read.
const QUEUE: usize = 256;
/// Maximum number of line parts queued for their reader; beyond it the socket is not read.
const PARTS: usize = 4;
/// Maximum number of progress messages queued for a listener; beyond it the oldest are lost.
const NOTICES: usize = 256;
/// The daemon pings a silent client every 45 s; a longer silence means that it is gone.
const SILENCE: Duration = Duration::from_secs(150);

/// Raw result of a call, or the error that replaces it.
pub(crate) type Answer = Result<Box<RawValue>, ClientError>;

/// Message with one part of the lines of a search.
pub(crate) type Part = Utf8Bytes;

/// Start of such a message as the daemon writes it: the rest is long and is not parsed at this
/// point.
const PARTIAL: &str = r#"{"jsonrpc":"2.0","method":"search.partial","params":"#;

/// A call that is pending until its answer arrives.
enum Pending {
    Call(oneshot::Sender<Answer>),
    /// The stream starts with the answer, before any further message is read.
    Subscribe(oneshot::Sender<Answer>, mpsc::Sender<Step>),
    /// Lines with this request id arrive before the answer.
    Lines(oneshot::Sender<Answer>, String),
}

#[derive(Default)]
struct State {
    pending: HashMap<u64, Pending>,
    streams: HashMap<SubscriptionId, mpsc::Sender<Step>>,
    lines: HashMap<String, mpsc::Sender<Part>>,
    close_reason: Option<String>,
}

/// State shared by the tasks of a connection and its users.
pub(crate) struct Shared {
    state: Mutex<State>,
    next: AtomicU64,
    out: mpsc::Sender<String>,
    notices: broadcast::Sender<Notice>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i32,
    message: String,
    #[serde(default)]
    data: Option<ErrorData>,
}

impl RpcError {
    fn into_error(self) -> ClientError {
        let unknown = || ErrorData {
            reason: String::new(),
            retryable: false,
            hint: String::new(),
            retry_after_ms: None,
            details: None,
        };
        ClientError::Rpc {
            code: self.code,
            message: self.message,
            data: Box::new(self.data.unwrap_or_else(unknown)),
        }
    }
}

impl Shared {
    /// Creates the shared state, and the receiver of messages for the writer.
    pub(crate) fn new() -> (Self, mpsc::Receiver<String>) {
        let (out, outgoing) = mpsc::channel(OUTGOING);
        let (notices, _) = broadcast::channel(NOTICES);
        (Self { state: Mutex::default(), next: AtomicU64::new(1), out, notices }, outgoing)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a receiver of progress messages from now on.
    pub(crate) fn listen(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    /// Returns the reason why the connection closed.
    pub(crate) fn closed_error(&self) -> ClientError {
        ClientError::Closed(
            self.state().close_reason.clone().unwrap_or_else(|| "by this client".into()),
        )
    }

    /// Registers a call; the receiver gets the answer.
    pub(crate) fn begin(&self) -> Result<(u64, oneshot::Receiver<Answer>), ClientError> {
        let (send, receive) = oneshot::channel();
        Ok((self.expect(Pending::Call(send))?, receive))
    }

    /// Registers a subscription; the second receiver gets its records.
    pub(crate) fn begin_stream(
        &self,
    ) -> Result<(u64, oneshot::Receiver<Answer>, mpsc::Receiver<Step>), ClientError> {
        let (send, receive) = oneshot::channel();
        let (queue, records) = mpsc::channel(QUEUE);
        Ok((self.expect(Pending::Subscribe(send, queue))?, receive, records))
    }

    /// Registers a call; the second receiver gets its lines.
    pub(crate) fn begin_lines(
        &self,
        name: &str,
    ) -> Result<(u64, oneshot::Receiver<Answer>, mpsc::Receiver<Part>), ClientError> {
        let (send, receive) = oneshot::channel();
        let (queue, parts) = mpsc::channel(PARTS);
        match self.state().lines.entry(name.to_owned()) {
            Entry::Occupied(_) => {
                return Err(ClientError::Protocol(format!("requestId '{name}' is in use")));
            }
            Entry::Vacant(free) => free.insert(queue),
        };
        let id = self.expect(Pending::Lines(send, name.to_owned())).inspect_err(|_| {
            self.state().lines.remove(name);
        })?;
        Ok((id, receive, parts))
    }

    fn expect(&self, pending: Pending) -> Result<u64, ClientError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state();
        if let Some(why) = &state.close_reason {
            return Err(ClientError::Closed(why.clone()));
        }
        state.pending.insert(id, pending);
        Ok(id)
    }

    /// Sends a message; waits while the writer is busy.
    pub(crate) async fn send(&self, text: String) -> Result<(), ClientError> {
        self.out.send(text).await.map_err(|_| self.closed_error())
    }

    /// Removes a call that was dropped, and cancels it at the daemon.
    pub(crate) fn forget(&self, id: u64) {
        let forgotten = self.state().pending.remove(&id);
        if let Some(Pending::Lines(_, name)) = &forgotten {
            self.state().lines.remove(name);
        }
        if forgotten.is_some() {
            let cancel =
                serde_json::json!({"jsonrpc": "2.0", "method": rpc::CANCEL, "params": {"id": id}});
            // With a full queue no cancellation is sent, and the late answer is discarded.
            let _full = self.out.try_send(cancel.to_string());
        }
    }

    /// Removes a stream, and unsubscribes at the daemon.
    pub(crate) fn remove_stream(&self, id: &SubscriptionId) {
        if self.state().streams.remove(id).is_some() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let params = serde_json::json!({"subscriptionId": id});
            let call = serde_json::json!({"jsonrpc": "2.0", "id": number, "method": "orchestrate.unsubscribe", "params": params});
            let _full = self.out.try_send(call.to_string());
        }
    }

    /// Fails all pending calls and streams.
    pub(crate) fn end(&self, why: &str) {
        let mut state = self.state();
        state.close_reason.get_or_insert_with(|| why.to_owned());
        let pending = std::mem::take(&mut state.pending);
        state.streams.clear();
        state.lines.clear();
        drop(state);
        for (_, call) in pending {
            let (Pending::Call(answer) | Pending::Subscribe(answer, _) | Pending::Lines(answer, _)) =
                call;
            let _ignored = answer.send(Err(ClientError::Closed(why.to_owned())));
        }
    }

    /// Handles one message; waits while the reader of its stream is behind.
    async fn take(&self, text: &Utf8Bytes) {
        if let Some(queue) = text.strip_prefix(PARTIAL).and_then(|params| self.lines_of(params)) {
            return self.lines(queue, text).await;
        }
        let frame = match Frame::parse(text) {
            Ok(frame) => frame,
            Err(error) => return tracing::warn!(%error, "a message of the daemon cannot be parsed"),
        };
        let error = match frame
            .error
            .map(|error| serde_json::from_str::<RpcError>(error.get()))
            .transpose()
        {
            Ok(error) => error.map(RpcError::into_error),
            Err(error) => return tracing::warn!(%error, "a message of the daemon cannot be parsed"),
        };
        match (frame.method, frame.id) {
            (Some(method), _) => {
                if let Some(params) = frame.params {
                    self.notified(&method, params, text).await;
                }
            }
            (None, Some(id)) => match id.get().parse() {
                Ok(id) => self.answered(
                    id,
                    error
                        .map_or_else(|| Ok(frame.result.map_or_else(null, ToOwned::to_owned)), Err),
                ),
                Err(error) => tracing::warn!(%error, "a message of the daemon cannot be parsed"),
            },
            (None, None) => {
                tracing::warn!(
                    error = error.map(tracing::field::display),
                    "the daemon refused a message"
                );
            }
        }
    }

    fn answered(&self, id: u64, answer: Answer) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Subscribed {
            subscription_id: SubscriptionId,
        }
        let mut state = self.state();
        let answer_to = match state.pending.remove(&id) {
            None => return,
            Some(Pending::Call(answer_to)) => answer_to,
            Some(Pending::Lines(answer_to, name)) => {
                state.lines.remove(&name);
                answer_to
            }
            Some(Pending::Subscribe(answer_to, queue)) => {
                let subscribed = answer
                    .as_ref()
                    .ok()
                    .and_then(|r| serde_json::from_str::<Subscribed>(r.get()).ok());
                if let Some(subscribed) = subscribed {
                    state.streams.insert(subscribed.subscription_id, queue);
                }
                answer_to
            }
        };
        drop(state);
        let _ignored = answer_to.send(answer);
    }

    /// Returns the queue for lines, if a reader is registered for them.
    fn lines_of(&self, params: &str) -> Option<(String, mpsc::Sender<Part>)> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Name {
            request_id: String,
        }
        if self.state().lines.is_empty() {
            return None;
        }
        // The daemon writes this field first.
        let first = params.strip_prefix(r#"{"requestId":""#).and_then(|rest| rest.split_once('"'));
        let name = match first {
            Some((name, _)) if !name.contains('\\') => name.to_owned(),
            _ => serde_json::from_str::<Name>(params).ok()?.request_id,
        };
        let queue = self.state().lines.get(&name).cloned()?;
        Some((name, queue))
    }

    /// Forwards one part of lines; waits while the queue is full.
    async fn lines(&self, (name, queue): (String, mpsc::Sender<Part>), message: &Utf8Bytes) {
        if queue.send(message.clone()).await.is_err() {
            self.state().lines.remove(&name);
        }
    }

    async fn notified(&self, method: &str, params: &RawValue, message: &Utf8Bytes) {
        if method == rpc::SEARCH_PARTIAL
            && let Some(queue) = self.lines_of(params.get())
        {
            return self.lines(queue, message).await;
        }
        if let Some(notice) = Notice::read(method, params) {
            // There may be no listener.
            let _unheard = self.notices.send(notice);
            return;
        }
        let Some((id, step)) = Step::read(method, params) else { return };
        let Some(queue) = self.state().streams.get(&id).cloned() else { return };
        let last = matches!(step, Step::Gone(_));
        let reader_dropped = queue.send(step).await.is_err();
        if last || reader_dropped {
            self.state().streams.remove(&id);
        }
    }
}

fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

/// Reads until the connection closes, and returns the reason.
pub(crate) async fn read(shared: &Shared, mut stream: SplitStream<Socket>) -> String {
    loop {
        match tokio::time::timeout(SILENCE, stream.next()).await {
            Err(_) => return format!("the daemon sent nothing for {} s", SILENCE.as_secs()),
            Ok(None) => return "the daemon disconnected".into(),
            Ok(Some(Err(error))) => return error.to_string(),
            Ok(Some(Ok(Message::Text(text)))) => shared.take(&text).await,
            Ok(Some(Ok(Message::Close(frame)))) => {
                let reason = frame.map(|f| f.reason.to_string()).filter(|r| !r.is_empty());
                return reason.unwrap_or_else(|| "the daemon closed the connection".into());
            }
            Ok(Some(Ok(_))) => {}
        }
    }
}

/// Writes queued messages; all that are pending go out with one flush.
pub(crate) async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut outgoing: mpsc::Receiver<String>,
) -> String {
    while let Some(first) = outgoing.recv().await {
        let mut next = Some(first);
        while let Some(text) = next {
            if let Err(error) = sink.feed(Message::Text(text.into())).await {
                return error.to_string();
            }
            next = outgoing.try_recv().ok();
        }
        if let Err(error) = sink.flush().await {
            return error.to_string();
        }
    }
    let _ignored = sink.close().await;
    "by this client".into()
}
