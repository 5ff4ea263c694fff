//! One client: its handshake, calls, subscriptions and what is sent to it.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use bytes::Bytes;
use cairn_engine::record::Line;
use cairn_protocol::{
    daemon::ClientInfo,
    error::{Failure, Reason},
    id::{SessionId, SubscriptionId},
    rpc,
};
use jsonrpsee_types::Id;
use serde_json::value::RawValue;
use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
};
use tracing::Instrument as _;

use crate::{
    Api, Disconnect, Method, Rights,
    lane::Turn,
    message::{self, Frame, Incoming},
    notices::Interest,
    rights::Row,
};

/// What goes to the client.
#[derive(Debug)]
pub enum Outgoing {
    /// One message.
    One(String),
    /// Several, in order, to be flushed once.
    Many(Vec<SharedText>),
}

impl Outgoing {
    /// Its messages by themselves, in order.
    pub fn into_texts(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts.iter().map(|text| text.as_str().to_owned()).collect(),
        }
    }
}

/// The text of a message that others may be sent too.
#[derive(Debug, Clone)]
pub struct SharedText(Bytes);

impl SharedText {
    /// A record as everybody gets it who asks with the same `make`: it is made once.
    pub(crate) fn of(line: &Line, make: impl FnOnce(&str) -> String) -> Self {
        Self(line.framed(make))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // It is made from text alone.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Its bytes, which are UTF-8.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

/// One client of the API. Clones share it.
#[derive(Clone)]
pub struct Connection {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) api: Arc<Api>,
    pub(crate) out: mpsc::Sender<Outgoing>,
    pub(crate) client: OnceLock<ClientInfo>,
    pub(crate) interest: Interest,
    /// Held by a client that said it answers approvals.
    pub(crate) approver: Mutex<Option<cairn_engine::Approver>>,
    rights: Rights,
    in_flight: AtomicU32,
    calls: Mutex<HashMap<String, Cancellable>>,
    pub(crate) subscriptions: Mutex<HashMap<SubscriptionId, AbortHandle>>,
    /// Sessions that were followed on this connection, up to [`FOLLOWED`] of them.
    pub(crate) followed: Mutex<HashSet<SessionId>>,
}

/// Followed sessions that a connection remembers.
pub(crate) const FOLLOWED: usize = 1024;

/// Who calls: given to every handler.
pub struct Caller {
    /// The connection.
    pub(crate) connection: Connection,
    /// Run once the answer is on its way, so that what it starts comes after it.
    pub(crate) then: Arc<Mutex<Vec<Then>>>,
    /// The call's row of the audit, while it is open.
    pub(crate) audit: crate::audit::Slot,
}

type Then = Box<dyn FnOnce() + Send>;

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the answers to a message go.
pub(crate) type Answers = mpsc::Sender<Outgoing>;

/// A call that its client may cancel.
struct Cancellable {
    /// Set by whoever answers first: the call or its cancelling.
    answered: Arc<AtomicBool>,
    stop: Stop,
    /// Whether it goes on when its client leaves.
    outlives: bool,
}

/// How a call is cancelled.
enum Stop {
    /// Its task ends, and this is where the answer goes.
    Task(AbortHandle, Answers),
    /// Its batch goes on without it and answers for it.
    Part(oneshot::Sender<()>),
}

/// Counts a call while it is at work.
struct InFlight(Connection);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.inner.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A call of a batch that was let in, with what cancels it.
type Admitted = (Id<'static>, Call, oneshot::Receiver<()>);

impl Connection {
    /// A new client that may do what `rights` say. What it is to be sent comes out of the receiver; when that is full,
    /// its calls wait.
    ///
    /// # Errors
    /// `overloaded` when the daemon has as many connections as it may.
    pub fn open(api: &Arc<Api>, rights: Rights) -> Result<(Self, mpsc::Receiver<Outgoing>), Failure> {
        let before = api.counters.connections.fetch_add(1, Ordering::SeqCst);
        if before >= u64::from(api.limits.max_connections) {
            api.counters.connections.fetch_sub(1, Ordering::SeqCst);
            return Err(Failure::new(Reason::Overloaded, "the daemon has as many connections as it may"));
        }
        let (out, receiver) = mpsc::channel(crate::OUTGOING);
        let inner = Inner {
            api: Arc::clone(api),
            out,
            client: OnceLock::new(),
            interest: Interest::default(),
            approver: Mutex::default(),
            rights,
            in_flight: AtomicU32::new(0),
            calls: Mutex::default(),
            subscriptions: Mutex::default(),
            followed: Mutex::default(),
        };
        Ok((Self { inner: Arc::new(inner) }, receiver))
    }

    /// Takes one message. Answers come later, in any order; only a full outgoing queue makes this wait.
    pub async fn message(&self, text: &str) {
        self.message_to(text, &self.inner.out.clone()).await;
    }

    /// Takes one message whose answer goes to `to` and not among what else is sent to the client. When all senders of `to`
    /// are gone there will be none. A receiver that is dropped cancels the calls of the message that a disconnect cancels.
    pub async fn message_to(&self, text: &str, to: &mpsc::Sender<Outgoing>) {
        match message::frame(text) {
            Err(failure) => answer(to, message::failure(None, &failure)).await,
            Ok(Frame::One(value)) => self.one(value, to).await,
            Ok(Frame::Batch(all)) => self.batch(all, to).await,
        }
    }

    async fn one(&self, value: &RawValue, to: &Answers) {
        let request = match Incoming::read(value) {
            Ok((request, _)) => request,
            Err((failure, id)) => return answer(to, message::failure(id.as_ref(), &failure)).await,
        };
        let Some(id) = request.id.clone() else { return self.notified(&request) };
        let begun = {
            // Held from before the call counts as at work: whoever has seen that it does can cancel it.
            let mut calls = locked(&self.inner.calls);
            match self.begin(&request, false) {
                Ok(call) if request.method.as_deref() != Some(crate::methods::INITIALIZE) => {
                    return self.spawn(&id.into_owned(), call, to.clone(), &mut calls);
                }
                begun => begun,
            }
        };
        match begun {
            Err(failure) => {
                self.count(false);
                answer(to, message::failure(Some(&id), &failure)).await;
            }
            // A client may send on without waiting for the answer: what comes next finds the connection begun.
            Ok(call) => {
                let (text, then) = self.finish(&id, call).await;
                answer(to, text).await;
                then.into_iter().for_each(|run| run());
            }
        }
    }

    /// Runs a batch; its answers are one message, in the order of its requests.
    async fn batch(&self, all: Vec<&RawValue>, to: &Answers) {
        let limit = self.inner.api.limits.max_batch as usize;
        if all.len() > limit {
            let failure = Failure::new(
                Reason::TooLarge,
                format!("a batch of {} calls, {limit} are allowed", all.len()),
            );
            return answer(to, message::failure(None, &failure)).await;
        }
        let mut slots: Vec<Result<Admitted, String>> = Vec::new();
        for value in all {
            match Incoming::read(value) {
                Err((failure, id)) => slots.push(Err(message::failure(id.as_ref(), &failure))),
                Ok((request, _)) => match request.id.clone() {
                    None => self.notified(&request),
                    Some(id) => slots.push(match self.begin(&request, true) {
                        Ok(call) => {
                            let cancelled = self.register_part(&id, &call);
                            Ok((id.into_owned(), call, cancelled))
                        }
                        Err(failure) => Err(message::failure(Some(&id), &failure)),
                    }),
                },
            }
        }
        if slots.is_empty() {
            return;
        }
        let (this, to) = (self.clone(), to.clone());
        let work = async move {
            let mut answers = Vec::with_capacity(slots.len());
            let mut then = Vec::new();
            for slot in slots {
                match slot {
                    Err(answer) => answers.push(answer),
                    Ok((id, call, cancelled)) => {
                        // Cancelled with its client, who gets no answers then.
                        let finished = this.finish_part(&id, call, &to, cancelled).await;
                        let Some((answer, after)) = finished else { continue };
                        answers.push(answer);
                        then.extend(after);
                    }
                }
            }
            answer(&to, format!("[{}]", answers.join(","))).await;
            then.into_iter().for_each(|run| run());
        };
        tokio::spawn(work);
    }

    /// Lets a cancel find a call of a batch.
    fn register_part(&self, id: &Id<'_>, call: &Call) -> oneshot::Receiver<()> {
        let (stop, cancelled) = oneshot::channel();
        if !call.outlives || call.stoppable {
            let key = serde_json::to_string(id).unwrap_or_default();
            let (answered, stop, outlives) = (Arc::default(), Stop::Part(stop), call.outlives);
            locked(&self.inner.calls).insert(key, Cancellable { answered, stop, outlives });
        }
        cancelled
    }

    /// The end of a call of a batch, which may be that it was cancelled.
    async fn finish_part(
        &self,
        id: &Id<'_>,
        call: Call,
        to: &Answers,
        cancelled: oneshot::Receiver<()>,
    ) -> Option<(String, Vec<Then>)> {
        let finished = tokio::select! {
            biased;
            Ok(()) = cancelled => {
                self.count(false);
                let failure = Failure::new(Reason::Cancelled, "the call was cancelled");
                Some((message::failure(Some(id), &failure), vec![]))
            }
            finished = self.finish_for(id, call, to) => finished,
        };
        let key = serde_json::to_string(id).unwrap_or_default();
        let mut calls = locked(&self.inner.calls);
        if calls.get(&key).is_some_and(|call| matches!(&call.stop, Stop::Part(stop) if stop.is_closed())) {
            calls.remove(&key);
        }
        finished
    }

    /// Looks a request up and starts it, within its client's rights and limits.
    fn begin(&self, request: &Incoming<'_>, in_batch: bool) -> Result<Call, Failure> {
        let name = request.method.as_deref().unwrap_or_default();
        let handshake = name == crate::methods::INITIALIZE;
        if handshake && in_batch {
            return Err(Failure::new(Reason::InvalidRequest, "initialize is sent alone, not in a batch"));
        }
        if !handshake && self.inner.client.get().is_none() {
            return Err(Failure::new(Reason::NotInitialized, format!("{name} came before initialize")));
        }
        let method = self.inner.api.find(name).ok_or_else(|| {
            let shown: String = name.chars().take(64).collect();
            Failure::new(Reason::MethodNotFound, format!("there is no method '{}'", shown.escape_default()))
        })?;
        // The handshake tells who a client is; everything else needs the right of its row.
        Row::of(method).require(self.inner.rights)?;
        let limit = self.inner.api.limits.max_in_flight;
        if self.inner.in_flight.fetch_add(1, Ordering::SeqCst) >= limit {
            self.inner.in_flight.fetch_sub(1, Ordering::SeqCst);
            return Err(Failure::new(
                Reason::Overloaded,
                format!("{limit} calls are at work on this connection"),
            ));
        }
        let in_flight = InFlight(self.clone());
        let turn = self.inner.api.lanes.enter(method.scope, request.params);
        let then = Arc::new(Mutex::new(Vec::new()));
        let audit = crate::audit::Slot::default();
        let caller = Caller { connection: self.clone(), then: Arc::clone(&then), audit };
        let span = crate::span::request(method);
        let answer = span.in_scope(|| (method.handler)(caller, request.params, method.audit));
        let outlives = method.disconnect == Disconnect::Detach;
        Ok(Call { answer, span, turn, then, outlives, stoppable: method.stoppable, _in_flight: in_flight })
    }

    /// True if the client has the right that a method needs.
    pub(crate) fn may_call(&self, method: &Method) -> bool {
        Row::of(method).require(self.inner.rights).is_ok()
    }

    /// Lets a call run, registered among `calls` under its id before it can end: a cancel finds it and an end removes it.
    fn spawn(&self, id: &Id<'static>, call: Call, to: Answers, calls: &mut HashMap<String, Cancellable>) {
        let key = serde_json::to_string(id).unwrap_or_default();
        let (this, id) = (self.clone(), id.clone());
        let (outlives, cancels) = (call.outlives, !call.outlives || call.stoppable);
        let (done, answered) = (key.clone(), Arc::new(AtomicBool::new(false)));
        let mine = Arc::clone(&answered);
        let back = to.clone();
        let task = tokio::spawn(async move {
            let finished = this.finish_for(&id, call, &to).await;
            {
                let mut calls = locked(&this.inner.calls);
                // A later call may have taken the same id.
                if calls.get(&done).is_some_and(|c| Arc::ptr_eq(&c.answered, &mine)) {
                    calls.remove(&done);
                }
            }
            let Some((text, then)) = finished else { return };
            if mine.swap(true, Ordering::SeqCst) {
                // Cancelled at the last moment, and answered so: there is one answer to a call.
                return;
            }
            answer(&to, text).await;
            then.into_iter().for_each(|run| run());
        });
        if cancels {
            calls
                .insert(key, Cancellable { answered, stop: Stop::Task(task.abort_handle(), back), outlives });
        }
    }

    /// The end of a call, unless its client has gone and that cancels it.
    async fn finish_for(&self, id: &Id<'_>, call: Call, to: &Answers) -> Option<(String, Vec<Then>)> {
        if call.outlives {
            return Some(self.finish(id, call).await);
        }
        tokio::select! {
            biased;
            finished = self.finish(id, call) => Some(finished),
            () = to.closed() => {
                self.count(false);
                None
            }
        }
    }

    async fn finish(&self, id: &Id<'_>, mut call: Call) -> (String, Vec<Then>) {
        if let Some(turn) = &mut call.turn {
            turn.come().await;
        }
        let outcome = call.answer.instrument(call.span.clone()).await;
        if let Err(failure) = &outcome {
            cairn_engine::span::failed(&call.span, failure);
        }
        drop(call.turn);
        self.count(outcome.is_ok());
        let answer = match outcome {
            Ok(result) => message::success(id, &result),
            Err(failure) => {
                if failure.reason == Reason::Internal || failure.reason == Reason::StorageFailed {
                    tracing::error!(reason = failure.reason.as_str(), %failure, "call failed");
                }
                message::failure(Some(id), &failure)
            }
        };
        (answer, std::mem::take(&mut *locked(&call.then)))
    }

    /// The one notification a client sends: cancel a call. Others are ignored, as JSON-RPC asks.
    fn notified(&self, request: &Incoming<'_>) {
        #[derive(serde::Deserialize)]
        struct Cancel<'a> {
            #[serde(borrow)]
            id: Id<'a>,
        }
        if request.method.as_deref() != Some(rpc::CANCEL) {
            return;
        }
        let Some(cancel) = request.params.and_then(|p| serde_json::from_str::<Cancel<'_>>(p.get()).ok())
        else {
            return;
        };
        let key = serde_json::to_string(&cancel.id).unwrap_or_default();
        let found = locked(&self.inner.calls).remove(&key);
        if let Some(call) = found
            && !call.answered.swap(true, Ordering::SeqCst)
        {
            let (task, to) = match call.stop {
                Stop::Task(task, to) => (task, to),
                Stop::Part(stop) => {
                    let _ended = stop.send(());
                    return;
                }
            };
            task.abort();
            self.count(false);
            let failure = Failure::new(Reason::Cancelled, "the call was cancelled");
            let text = message::failure(Some(&cancel.id), &failure);
            tokio::spawn(async move { answer(&to, text).await });
        }
    }

    fn count(&self, ok: bool) {
        let counters = &self.inner.api.counters;
        counters.calls.fetch_add(1, Ordering::Relaxed);
        if !ok {
            counters.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Queues a message; a client that has gone needs none.
    pub(crate) async fn reply(&self, text: String) {
        let _gone = self.inner.out.send(Outgoing::One(text)).await;
    }

    /// The client has gone: its searches, reads and subscriptions end, nothing else does.
    pub fn close(&self) {
        // Those that go on stay: a cancel that was sent before may come after this.
        for (_, call) in locked(&self.inner.calls).extract_if(|_, call| !call.outlives) {
            match call.stop {
                Stop::Task(task, _) => task.abort(),
                Stop::Part(stop) => drop(stop.send(())),
            }
        }
        let ended: Vec<AbortHandle> =
            locked(&self.inner.subscriptions).drain().map(|(_, task)| task).collect();
        self.inner.api.counters.subscriptions.fetch_sub(ended.len() as u64, Ordering::SeqCst);
        ended.iter().for_each(AbortHandle::abort);
        self.inner.interest.end();
        drop(locked(&self.inner.approver).take());
        self.inner.api.counters.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Queues an answer; a client that has gone needs none.
async fn answer(to: &Answers, text: String) {
    let _gone = to.send(Outgoing::One(text)).await;
}

/// A call at work.
struct Call {
    answer: crate::method::Answer,
    /// Begins when the call is taken: waiting for its turn is part of it.
    span: tracing::Span,
    /// Its place among calls that run one after the other.
    turn: Option<Turn>,
    then: Arc<Mutex<Vec<Then>>>,
    /// Whether it goes on when its client leaves.
    outlives: bool,
    /// Whether its client can cancel it all the same.
    stoppable: bool,
    _in_flight: InFlight,
}

impl Caller {
    pub(crate) fn api(&self) -> &Arc<Api> {
        &self.connection.inner.api
    }

    pub(crate) fn rights(&self) -> Rights {
        self.connection.inner.rights
    }

    pub(crate) fn client_name(&self) -> Option<String> {
        self.connection.inner.client.get().map(|c| c.name.clone())
    }

    /// Runs `what` after the answer was queued.
    pub(crate) fn after_answer(&self, what: impl FnOnce() + Send + 'static) {
        locked(&self.then).push(Box::new(what));
    }
}
