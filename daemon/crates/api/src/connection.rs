//! One client: its handshake, calls, subscriptions and outgoing messages.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

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
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::{
    Api, Disconnect, Method, Rights,
    call_queue::QueueSlot,
    message::{self, Frame, Incoming},
    outgoing::Outgoing,
    progress::ProgressSubscriptions,
    rights::Row,
};

/// One client of the API. Clones share it.
#[derive(Clone)]
pub struct Connection {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) api: Arc<Api>,
    pub(crate) out: mpsc::Sender<Outgoing>,
    pub(crate) client: OnceLock<ClientInfo>,
    pub(crate) progress: ProgressSubscriptions,
    /// Set for a client that declared that it answers approvals.
    pub(crate) approver: Mutex<Option<crate::approver::ConnectedApprover>>,
    rights: Rights,
    in_flight: AtomicU32,
    calls: Mutex<HashMap<String, Cancellable>>,
    pub(crate) subscriptions: Mutex<HashMap<SubscriptionId, AbortHandle>>,
    /// Sessions that have been followed on this connection, at most [`MAX_FOLLOWED`] of them.
    pub(crate) followed: Mutex<HashSet<SessionId>>,
    /// Calls until their answers are queued.
    pub(crate) tasks: TaskTracker,
}

pub(crate) const MAX_FOLLOWED: usize = 1024;

/// The caller of a method, passed to every handler.
pub struct Caller {
    pub(crate) connection: Connection,
    /// Callbacks that run once the answer is queued, so that their effects come after it.
    pub(crate) then: Arc<Mutex<Vec<AfterAnswer>>>,
    /// The call's audit row while it is open.
    pub(crate) audit: crate::audit::Slot,
}

type AfterAnswer = Box<dyn FnOnce() + Send>;
type Outcome = Result<Box<RawValue>, Failure>;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The destination of a message's answers.
pub(crate) type AnswerSender = mpsc::Sender<Outgoing>;

/// A call that its client can cancel.
struct Cancellable {
    /// Set by the first to answer: the call or its cancellation.
    answered: Arc<AtomicBool>,
    stop: CancelHandle,
    /// True if the call continues after a disconnect.
    survives_disconnect: bool,
}

/// The way to cancel a call.
enum CancelHandle {
    /// Abort the task and send the answer to the destination.
    Task(AbortHandle, AnswerSender),
    /// Notify the batch, which continues without the call and answers for it.
    Batched(oneshot::Sender<()>),
}

/// Counts a call while it runs.
struct InFlight(Connection);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.inner.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Cancels a call whose future was dropped.
struct CancelOnDrop<'a> {
    connection: &'a Connection,
    /// `None` once the call was answered, and for calls that cannot be cancelled.
    task: Option<AbortHandle>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take().filter(|task| !task.is_finished()) {
            task.abort();
            self.connection.count(false);
        }
    }
}

/// An admitted call of a batch, with the receiver that signals its cancellation.
type AdmittedCall = (Id<'static>, Call, oneshot::Receiver<()>);

impl Connection {
    /// Opens a connection for a client with these rights. Messages for the client come out of the
    /// receiver; while that is full, calls wait.
    ///
    /// # Errors
    /// `overloaded` when the daemon's limit of connections is reached.
    pub fn open(
        api: &Arc<Api>,
        rights: Rights,
    ) -> Result<(Self, mpsc::Receiver<Outgoing>), Failure> {
        let before = api.counters.connections.fetch_add(1, Ordering::SeqCst);
        if before >= u64::from(api.limits.max_connections) {
            api.counters.connections.fetch_sub(1, Ordering::SeqCst);
            return Err(Failure::new(
                Reason::Overloaded,
                "the daemon has reached its limit of connections",
            ));
        }
        let (out, receiver) = mpsc::channel(crate::OUTGOING);
        let inner = Inner {
            api: Arc::clone(api),
            out,
            client: OnceLock::new(),
            progress: ProgressSubscriptions::default(),
            approver: Mutex::default(),
            rights,
            in_flight: AtomicU32::new(0),
            calls: Mutex::default(),
            subscriptions: Mutex::default(),
            followed: Mutex::default(),
            tasks: TaskTracker::new(),
        };
        Ok((Self { inner: Arc::new(inner) }, receiver))
    }

    /// Handles one message. Answers are sent later, in any order; this waits only while the
    /// outgoing queue is full.
    pub async fn handle_message(&self, text: &str) {
        self.handle_message_to(text, &self.inner.out.clone()).await;
    }

    /// Handles one message and sends its answer to `to` instead of the common queue. No answer will
    /// come once all senders of `to` are dropped. Dropping the receiver cancels those calls of the
    /// message that a disconnect cancels.
    pub async fn handle_message_to(&self, text: &str, to: &mpsc::Sender<Outgoing>) {
        match message::frame(text) {
            Err(failure) => answer(to, message::failure(None, &failure)).await,
            Ok(Frame::One(value)) => self.handle_one(value, to).await,
            Ok(Frame::Batch(all)) => self.handle_batch(all, to).await,
        }
    }

    /// Calls a method with values instead of a message, for clients in the daemon's own process.
    /// Dropping the future cancels the call if the method allows that.
    ///
    /// # Errors
    /// The errors of the method.
    pub async fn call(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>, Failure> {
        let call = self.prepare(method, Some(params), false).inspect_err(|_| self.count(false))?;
        let cancels = !call.survives_disconnect || call.cancellable;
        let (sender, outcome) = oneshot::channel();
        let this = self.clone();
        let task = tokio::spawn(async move {
            let (outcome, then) = this.run(call).await;
            let _caller_dropped = sender.send(outcome);
            then.into_iter().for_each(|run| run());
        });
        let mut guard =
            CancelOnDrop { connection: self, task: cancels.then(|| task.abort_handle()) };
        let outcome = outcome.await;
        guard.task = None;
        outcome.unwrap_or_else(|_panicked| {
            Err(Failure::new(Reason::Internal, "the call ended without an answer"))
        })
    }

    async fn handle_one(&self, value: &RawValue, to: &AnswerSender) {
        let request = match Incoming::read(value) {
            Ok((request, _)) => request,
            Err((failure, id)) => return answer(to, message::failure(id.as_ref(), &failure)).await,
        };
        let Some(id) = request.id.clone() else { return self.handle_notification(&request) };
        let prepared = {
            // Locked before the in-flight counter grows, so that a client which sees the call
            // counted can already cancel it.
            let mut calls = lock(&self.inner.calls);
            match self.prepare(request.method.as_deref().unwrap_or_default(), request.params, false)
            {
                Ok(call) if request.method.as_deref() != Some(crate::methods::INITIALIZE) => {
                    return self.spawn(&id.into_owned(), call, to.clone(), &mut calls);
                }
                prepared => prepared,
            }
        };
        match prepared {
            Err(failure) => {
                self.count(false);
                answer(to, message::failure(Some(&id), &failure)).await;
            }
            // `initialize` runs inline: a client may pipeline further messages, and they must find
            // the connection initialized.
            Ok(call) => {
                let (text, then) = self.finish(&id, call).await;
                answer(to, text).await;
                then.into_iter().for_each(|run| run());
            }
        }
    }

    /// Runs a batch; its answers form one message, in the order of its requests.
    async fn handle_batch(&self, all: Vec<&RawValue>, to: &AnswerSender) {
        let limit = self.inner.api.limits.max_batch as usize;
        if all.len() > limit {
            let failure = Failure::new(
                Reason::TooLarge,
                format!("the batch has {} calls; the limit is {limit}", all.len()),
            );
            return answer(to, message::failure(None, &failure)).await;
        }
        let mut slots: Vec<Result<AdmittedCall, String>> = Vec::new();
        for value in all {
            match Incoming::read(value) {
                Err((failure, id)) => slots.push(Err(message::failure(id.as_ref(), &failure))),
                Ok((request, _)) => match request.id.clone() {
                    None => self.handle_notification(&request),
                    Some(id) => slots.push(
                        match self.prepare(
                            request.method.as_deref().unwrap_or_default(),
                            request.params,
                            true,
                        ) {
                            Ok(call) => {
                                let cancelled = self.register_batched(&id, &call);
                                Ok((id.into_owned(), call, cancelled))
                            }
                            Err(failure) => Err(message::failure(Some(&id), &failure)),
                        },
                    ),
                },
            }
        }
        if slots.is_empty() {
            return;
        }
        let this = self.clone();
        let to = to.clone();
        let work = async move {
            let mut answers = Vec::with_capacity(slots.len());
            let mut then = Vec::new();
            for slot in slots {
                match slot {
                    Err(answer) => answers.push(answer),
                    Ok((id, call, cancelled)) => {
                        // `None`: the call was cancelled by a disconnect, so its answer is not
                        // needed.
                        let finished = this.finish_batched(&id, call, &to, cancelled).await;
                        let Some((answer, after)) = finished else { continue };
                        answers.push(answer);
                        then.extend(after);
                    }
                }
            }
            answer(&to, format!("[{}]", answers.join(","))).await;
            then.into_iter().for_each(|run| run());
        };
        self.inner.tasks.spawn(work);
    }

    /// Makes a call of a batch cancellable.
    fn register_batched(&self, id: &Id<'_>, call: &Call) -> oneshot::Receiver<()> {
        let (stop, cancelled) = oneshot::channel();
        if !call.survives_disconnect || call.cancellable {
            let key = serde_json::to_string(id).unwrap_or_default();
            let answered = Arc::default();
            let stop = CancelHandle::Batched(stop);
            let survives_disconnect = call.survives_disconnect;
            lock(&self.inner.calls)
                .insert(key, Cancellable { answered, stop, survives_disconnect });
        }
        cancelled
    }

    /// Finishes a call of a batch, possibly because it was cancelled.
    async fn finish_batched(
        &self,
        id: &Id<'_>,
        call: Call,
        to: &AnswerSender,
        cancelled: oneshot::Receiver<()>,
    ) -> Option<(String, Vec<AfterAnswer>)> {
        let finished = tokio::select! {
            biased;
            Ok(()) = cancelled => {
                self.count(false);
                let failure = Failure::new(Reason::Cancelled, "the call was cancelled");
                Some((message::failure(Some(id), &failure), vec![]))
            }
            finished = self.finish_unless_closed(id, call, to) => finished,
        };
        let key = serde_json::to_string(id).unwrap_or_default();
        let mut calls = lock(&self.inner.calls);
        if calls.get(&key).is_some_and(
            |call| matches!(&call.stop, CancelHandle::Batched(stop) if stop.is_closed()),
        ) {
            calls.remove(&key);
        }
        finished
    }

    /// Looks up the method and prepares the call, within the client's rights and limits.
    fn prepare(
        &self,
        name: &str,
        params: Option<&RawValue>,
        in_batch: bool,
    ) -> Result<Call, Failure> {
        let handshake = name == crate::methods::INITIALIZE;
        if handshake && in_batch {
            return Err(Failure::new(
                Reason::InvalidRequest,
                "initialize must not be sent in a batch",
            ));
        }
        if !handshake && self.inner.client.get().is_none() {
            return Err(Failure::new(
                Reason::NotInitialized,
                format!("{name} was sent before initialize"),
            ));
        }
        let method = self.inner.api.find(name).ok_or_else(|| {
            let excerpt: String = name.chars().take(64).collect();
            Failure::new(
                Reason::MethodNotFound,
                format!("there is no method '{}'", excerpt.escape_default()),
            )
        })?;
        // Every method except the handshake needs the right of its row.
        Row::of(method).require(self.inner.rights)?;
        let limit = self.inner.api.limits.max_in_flight;
        if self.inner.in_flight.fetch_add(1, Ordering::SeqCst) >= limit {
            self.inner.in_flight.fetch_sub(1, Ordering::SeqCst);
            return Err(Failure::new(
                Reason::Overloaded,
                format!("{limit} calls are already running on this connection"),
            ));
        }
        let in_flight = InFlight(self.clone());
        let slot = self.inner.api.queue.enter(method.scope, params);
        let then = Arc::new(Mutex::new(Vec::new()));
        let audit = crate::audit::Slot::default();
        let caller = Caller { connection: self.clone(), then: Arc::clone(&then), audit };
        let span = crate::span::request(method);
        let answer = span.in_scope(|| (method.handler)(caller, params, method.audit));
        let survives_disconnect = method.disconnect == Disconnect::Detach;
        Ok(Call {
            answer,
            span,
            slot,
            then,
            survives_disconnect,
            cancellable: method.cancellable,
            _in_flight: in_flight,
        })
    }

    /// Returns true if the client has the right that a method needs.
    pub(crate) fn may_call(&self, method: &Method) -> bool {
        Row::of(method).require(self.inner.rights).is_ok()
    }

    /// Spawns a call. It is registered in `calls` before it can finish, so that a cancellation
    /// finds it and its end removes it.
    fn spawn(
        &self,
        id: &Id<'static>,
        call: Call,
        to: AnswerSender,
        calls: &mut HashMap<String, Cancellable>,
    ) {
        let key = serde_json::to_string(id).unwrap_or_default();
        let this = self.clone();
        let id = id.clone();
        let (survives_disconnect, cancels) =
            (call.survives_disconnect, !call.survives_disconnect || call.cancellable);
        let finished_key = key.clone();
        let answered = Arc::new(AtomicBool::new(false));
        let answered_by_task = Arc::clone(&answered);
        let reply_to = to.clone();
        let task = self.inner.tasks.spawn(async move {
            let finished = this.finish_unless_closed(&id, call, &to).await;
            {
                let mut calls = lock(&this.inner.calls);
                // A later call may have reused the id.
                if calls
                    .get(&finished_key)
                    .is_some_and(|c| Arc::ptr_eq(&c.answered, &answered_by_task))
                {
                    calls.remove(&finished_key);
                }
            }
            let Some((text, then)) = finished else { return };
            if answered_by_task.swap(true, Ordering::SeqCst) {
                // Cancelled at the last moment and already answered: a call has exactly one answer.
                return;
            }
            answer(&to, text).await;
            then.into_iter().for_each(|run| run());
        });
        if cancels {
            calls.insert(
                key,
                Cancellable {
                    answered,
                    stop: CancelHandle::Task(task.abort_handle(), reply_to),
                    survives_disconnect,
                },
            );
        }
    }

    /// Finishes a call, unless a disconnect cancels it.
    async fn finish_unless_closed(
        &self,
        id: &Id<'_>,
        call: Call,
        to: &AnswerSender,
    ) -> Option<(String, Vec<AfterAnswer>)> {
        if call.survives_disconnect {
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

    async fn finish(&self, id: &Id<'_>, call: Call) -> (String, Vec<AfterAnswer>) {
        let (outcome, then) = self.run(call).await;
        let answer = match outcome {
            Ok(result) => message::success(id, &result),
            Err(failure) => message::failure(Some(id), &failure),
        };
        (answer, then)
    }

    /// Runs a call in its turn and returns its outcome, with the callbacks to run once the answer
    /// is on its way.
    async fn run(&self, mut call: Call) -> (Outcome, Vec<AfterAnswer>) {
        if let Some(slot) = &mut call.slot {
            slot.ready().await;
        }
        let outcome = call.answer.instrument(call.span.clone()).await;
        if let Err(failure) = &outcome {
            cairn_engine::span::failed(&call.span, failure);
            if failure.reason == Reason::Internal || failure.reason == Reason::StorageFailed {
                tracing::error!(reason = failure.reason.as_str(), %failure, "call failed");
            }
        }
        drop(call.slot);
        self.count(outcome.is_ok());
        (outcome, std::mem::take(&mut *lock(&call.then)))
    }

    /// Handles the only notification that clients send, a cancellation. Others are ignored, as
    /// JSON-RPC requires.
    fn handle_notification(&self, request: &Incoming<'_>) {
        #[derive(serde::Deserialize)]
        struct Cancel<'a> {
            #[serde(borrow)]
            id: Id<'a>,
        }
        if request.method.as_deref() != Some(rpc::CANCEL) {
            return;
        }
        let Some(cancel) =
            request.params.and_then(|p| serde_json::from_str::<Cancel<'_>>(p.get()).ok())
        else {
            return;
        };
        let key = serde_json::to_string(&cancel.id).unwrap_or_default();
        let removed = lock(&self.inner.calls).remove(&key);
        if let Some(call) = removed
            && !call.answered.swap(true, Ordering::SeqCst)
        {
            let (task, to) = match call.stop {
                CancelHandle::Task(task, to) => (task, to),
                CancelHandle::Batched(stop) => {
                    let _call_finished = stop.send(());
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

    /// Queues a message; a send error means that the client has disconnected.
    pub(crate) async fn reply(&self, text: String) {
        let _disconnected = self.inner.out.send(Outgoing::One(text)).await;
    }

    /// Handles a disconnect: searches, reads and subscriptions end, everything else continues.
    pub fn close(&self) {
        // Detached calls stay registered: a cancellation sent before the disconnect may arrive
        // after it.
        for (_, call) in lock(&self.inner.calls).extract_if(|_, call| !call.survives_disconnect) {
            match call.stop {
                CancelHandle::Task(task, _) => task.abort(),
                CancelHandle::Batched(stop) => drop(stop.send(())),
            }
        }
        let subscriptions: Vec<AbortHandle> =
            lock(&self.inner.subscriptions).drain().map(|(_, task)| task).collect();
        self.inner
            .api
            .counters
            .subscriptions
            .fetch_sub(subscriptions.len() as u64, Ordering::SeqCst);
        subscriptions.iter().for_each(AbortHandle::abort);
        self.inner.progress.end();
        drop(lock(&self.inner.approver).take());
        self.inner.api.counters.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Queues a message; a send error means that the client has disconnected.
async fn answer(to: &AnswerSender, text: String) {
    let _disconnected = to.send(Outgoing::One(text)).await;
}

struct Call {
    answer: crate::method::Answer,
    /// Starts when the call is accepted, so that it includes the wait in the queue.
    span: tracing::Span,
    /// The call's slot among those that run one after the other.
    slot: Option<QueueSlot>,
    then: Arc<Mutex<Vec<AfterAnswer>>>,
    /// True if the call continues after a disconnect.
    survives_disconnect: bool,
    /// True if its client can cancel the call although it outlives a disconnect.
    cancellable: bool,
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

    /// Runs `action` once the answer is queued.
    pub(crate) fn after_answer(&self, what: impl FnOnce() + Send + 'static) {
        lock(&self.then).push(Box::new(what));
    }
}
