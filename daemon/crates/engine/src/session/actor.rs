//! The actor of a session: takes one message at a time, applies the rules, executes their effects
//! in order.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use cairn_protocol::{
    error::{Failure, Reason},
    explore::{RunReceipt, RunState},
    id::{RunId, SessionId},
    turn::ModelChoice,
};
use cairn_trace::NewRecord;
use tokio::sync::mpsc;
use tracing::Instrument as _;

use super::{
    ExploreStart, Request, Response, RunPermit, SessionView, load,
    requests::Reply,
    step::{Active, Effect, Input, MAX_QUEUED, Refusal, State, Stop, step},
};
use crate::{
    Engine, TurnContext,
    retry::Retry,
    runs::RunHandle,
    span,
    turns::{self, QueuedTurn},
};

/// Interval in which an idle actor checks if the senders of its inbox are dropped: a run's task
/// that has just sent its end, or a caller that was dropped before it sent anything.
const IDLE: Duration = Duration::from_millis(10);

/// A message to an actor.
pub(crate) enum Message {
    /// A request, with the span of its caller, which a started run links to.
    Request(Request, tracing::Span, Reply),
    /// A run's task has finished.
    RunFinished(RunId, Box<RunEnd>),
    /// The daemon drains before it exits.
    Shutdown,
    /// The drain is over.
    Interrupt,
}

/// The result of a run's task, before it is in the log.
#[derive(Debug)]
pub(crate) struct RunEnd {
    /// True if a stop of the daemon interrupted it: its outcome is unknown.
    pub interrupted: bool,
    /// Its last records, the terminal one last.
    pub records: Vec<NewRecord>,
    /// State of the session, if nothing else is pending.
    pub state: RunState,
    /// Name and content of its artifact.
    pub artifact: Option<(&'static str, String)>,
}

/// A turn that can start: its context, and the model that its first record names.
pub(super) struct PreparedTurn {
    pub cx: TurnContext,
    pub model: ModelChoice,
}

pub(crate) struct Actor {
    pub(super) engine: Engine,
    pub(super) session: SessionId,
    pub(super) state: State<RunId>,
    messages: mpsc::Receiver<Message>,
    inbox: mpsc::WeakSender<Message>,
    view: Arc<Mutex<SessionView>>,
    /// Turns without a terminal record.
    pub(super) turns: HashMap<RunId, QueuedTurn>,
    pub(super) prepared: Option<PreparedTurn>,
    pub(super) explore: Option<ExploreStart>,
    /// Owned while a run is active, and passed on to the next queued turn.
    permit: Option<RunPermit>,
    pub(super) request: Option<Request>,
    reply: Option<Reply>,
    pub(super) retry: Option<(String, String, String)>,
    pub(super) response: Option<Response>,
    failure: Option<Failure>,
    pub(super) end: Option<Box<RunEnd>>,
}

impl Actor {
    pub fn new(
        engine: Engine,
        session: SessionId,
        messages: mpsc::Receiver<Message>,
        inbox: mpsc::WeakSender<Message>,
        view: Arc<Mutex<SessionView>>,
    ) -> Self {
        Self {
            engine,
            session,
            state: State::default(),
            messages,
            inbox,
            view,
            turns: HashMap::new(),
            prepared: None,
            explore: None,
            permit: None,
            request: None,
            reply: None,
            retry: None,
            response: None,
            failure: None,
            end: None,
        }
    }

    /// Runs until nothing is active and no request arrives.
    pub async fn run(mut self) {
        let loaded = load::state(&self.engine, &self.session).await;
        let unusable = match loaded {
            Ok((state, turns)) => {
                (self.state, self.turns) = (state, turns);
                self.publish();
                None
            }
            Err(failure) => Some(failure),
        };
        loop {
            let idle = self.state.active.is_none();
            if idle && self.engine.inner.sessions.retire(&self.session, &self.messages) {
                return;
            }
            let next = match idle {
                false => self.messages.recv().await,
                true => match tokio::time::timeout(IDLE, self.messages.recv()).await {
                    Ok(next) => next,
                    Err(_) => continue,
                },
            };
            let Some(message) = next else { return };
            match (message, &unusable) {
                (Message::Request(_, _, reply), Some(failure)) => {
                    drop(reply.send(Err(failure.clone())))
                }
                (_, Some(_)) => {}
                (message, None) => self.take(message).await,
            }
        }
    }

    async fn take_request(&mut self, request: Request) {
        match self.input_of(&request).await {
            Ok(Some(input)) => {
                self.request = Some(request);
                self.apply(input).await;
            }
            Ok(None) => self.answer(),
            Err(failure) => self.refuse(failure),
        }
    }

    async fn take(&mut self, message: Message) {
        // The broadcast may have been sent before this actor existed.
        self.state.stopping |= self.engine.is_draining();
        match message {
            Message::Request(request, caller, reply) => {
                self.reply = Some(reply);
                self.take_request(request).instrument(caller).await;
            }
            Message::RunFinished(run, end) => {
                let interrupted = end.interrupted;
                self.end = Some(end);
                self.apply(Input::RunFinished { run, interrupted }).await;
            }
            Message::Shutdown => self.apply(Input::Shutdown).await,
            Message::Interrupt => self.apply(Input::Interrupt).await,
        }
        (self.request, self.reply, self.retry, self.end) = (None, None, None, None);
        (self.response, self.failure) = (None, None);
        if self.state.active.is_none() {
            (self.permit, self.prepared, self.explore) = (None, None, None);
        }
    }

    /// Returns the input for a request; `None` when it is answered already, by its receipt.
    async fn input_of(&mut self, request: &Request) -> Result<Option<Input<RunId>>, Failure> {
        Ok(Some(match request {
            Request::Start { params, client } => {
                let retry =
                    Retry::new(&format!("turn:{}", self.session), Some(&params.turn_id), params);
                if let Some(receipt) = self.engine.answered::<RunReceipt>(&retry).await? {
                    self.response = Some(Response::Receipt(receipt));
                    return Ok(None);
                }
                self.retry = retry.stored();
                self.acquire();
                self.validate((**params).clone(), client.clone()).await?
            }
            Request::StartExplore(start) => {
                self.acquire();
                let run = start.cx.core().run.clone().unwrap_or_else(RunId::new);
                Input::StartExplore { run, permit: self.permit.is_some() }
            }
            Request::Resume(_) => {
                self.acquire();
                Input::Resume { permit: self.permit.is_some() }
            }
            Request::Cancel(turn) => {
                let named =
                    |id: &String| self.turns.values().find(|turn| turn.params.turn_id == *id);
                match turn {
                    None => Input::Cancel(None),
                    Some(id) => match named(id) {
                        Some(turn) => Input::Cancel(Some(turn.run.clone())),
                        // Cancelling a finished turn has no effect.
                        None => return Ok(None),
                    },
                }
            }
            Request::Abort => Input::Abort,
            Request::Steer { .. } => Input::Steer,
            Request::Answer { run, .. } => {
                if self.state.halted {
                    self.acquire();
                }
                Input::Answer { run: run.clone(), permit: self.permit.is_some() }
            }
            Request::Fork { .. } | Request::Clear(_) | Request::Compact { .. } => {
                Input::Edit { idle: true }
            }
            Request::Archive(_) => Input::Edit { idle: false },
            Request::Delete => Input::Delete,
        }))
    }

    fn acquire(&mut self) {
        if self.state.active.is_none() && self.permit.is_none() {
            self.permit = self.engine.inner.permits.try_acquire();
        }
    }

    /// Builds all that a turn needs before anything of it is in the log.
    async fn validate(
        &mut self,
        params: cairn_protocol::turn::RunStartParams,
        client: Option<String>,
    ) -> Result<Input<RunId>, Failure> {
        let run = RunId::new();
        let turn = QueuedTurn { run: run.clone(), params, client, resumed: false };
        let prepared = self.prepare_turn(&turn).await?;
        if self.state.active.is_none() {
            self.prepared = Some(prepared);
        }
        self.turns.insert(run.clone(), turn);
        Ok(Input::Start { run, permit: self.permit.is_some() })
    }

    async fn prepare_turn(&self, turn: &QueuedTurn) -> Result<PreparedTurn, Failure> {
        let cx = self.engine.turn_context(&self.session, turn).await?;
        let model = self.engine.first_model(&cx).await?;
        Ok(PreparedTurn { cx, model })
    }

    /// Applies one input and all inputs that follow from it.
    async fn apply(&mut self, input: Input<RunId>) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let (state, effects) = step(std::mem::take(&mut self.state), input);
            self.state = state;
            self.publish();
            for effect in effects {
                inputs.extend(self.carry_out(effect).await);
            }
        }
    }

    /// Executes an effect; its outcome is the next input.
    async fn carry_out(&mut self, effect: Effect<RunId>) -> Option<Input<RunId>> {
        match effect {
            Effect::Reply => self.answer(),
            Effect::Refuse(why) => {
                let failure = self.refusal(why);
                self.forget_start();
                self.refuse(failure);
            }
            Effect::Prepare(run) => return Some(self.prepare(run).await),
            Effect::Commit(commit) => {
                return Some(match self.write(&commit).await {
                    Ok(()) => Input::Committed,
                    Err(failure) => {
                        if self.reply.is_none() {
                            Engine::log_lost(&self.session, &failure);
                        }
                        self.failure = Some(failure);
                        Input::NotCommitted
                    }
                });
            }
            Effect::Run(run) => self.start_task(run),
            Effect::Stop(_, why) => self.stop_task(why),
            Effect::Deliver(_) => self.deliver(),
        }
        None
    }

    async fn prepare(&mut self, run: RunId) -> Input<RunId> {
        let resumed =
            matches!(&self.state.active, Some(Active::Starting { turn, .. }) if turn.started);
        let Some(turn) = self.turns.get_mut(&run) else {
            self.failure = Some(Failure::new(Reason::Internal, format!("there is no turn {run}")));
            return Input::Unprepared(run);
        };
        turn.resumed = resumed;
        let turn = turn.clone();
        match self.prepare_turn(&turn).await {
            Ok(prepared) => {
                self.prepared = Some(prepared);
                Input::Prepared(run)
            }
            Err(failure) => {
                self.failure = Some(failure);
                Input::Unprepared(run)
            }
        }
    }

    /// Returns the cause of a turn that could not start.
    pub(super) fn cause(&mut self) -> Failure {
        let unknown = || Failure::new(Reason::Internal, "the turn could not start");
        self.failure.take().unwrap_or_else(unknown)
    }

    fn refusal(&mut self, why: Refusal) -> Failure {
        let session = &self.session;
        let (reason, text) = match why {
            Refusal::Stopping => (Reason::ShuttingDown, "the daemon is stopping".to_owned()),
            Refusal::Deleted => (Reason::SessionNotFound, format!("there is no session {session}")),
            Refusal::Busy => match self.state.active {
                Some(Active::Explore { .. }) => {
                    (Reason::SessionBusy, format!("an explore is active in session {session}"))
                }
                Some(_) => (Reason::SessionBusy, format!("a turn is active in session {session}")),
                None => (Reason::SessionBusy, format!("turns are pending in session {session}")),
            },
            Refusal::QueueFull => (
                Reason::Overloaded,
                format!("{MAX_QUEUED} turns are already queued in session {session}"),
            ),
            Refusal::NoPermit => {
                let limit = self.engine.inner.permits.limit();
                (
                    Reason::Overloaded,
                    format!("{limit} runs are active, the limit of resources.maxRuns"),
                )
            }
            Refusal::NoTurn => {
                (Reason::RunNotFound, format!("no turn is active in session {session}"))
            }
            Refusal::NotResumable => (
                Reason::NotResumable,
                format!("session {session} has no interrupted run to resume"),
            ),
            Refusal::NotPrepared | Refusal::NotWritten => return self.cause(),
        };
        Failure::new(reason, text)
    }

    fn answer(&mut self) {
        if let Some(reply) = self.reply.take() {
            // The caller may have been dropped; the effects of the request remain.
            let _result = reply.send(Ok(self.response.take().unwrap_or(Response::Nothing)));
        }
    }

    fn refuse(&mut self, failure: Failure) {
        if let Some(reply) = self.reply.take() {
            let _result = reply.send(Err(failure));
        }
    }

    /// Removes all state of a turn that was refused.
    fn forget_start(&mut self) {
        if !matches!(self.request, Some(Request::Start { .. })) {
            return;
        }
        let known: Vec<RunId> = self.state.queue.iter().map(|turn| turn.run.clone()).collect();
        let active = match &self.state.active {
            Some(Active::Turn { run, .. }) => Some(run.clone()),
            Some(Active::Starting { turn, .. }) => Some(turn.run.clone()),
            _ => None,
        };
        self.turns.retain(|run, _| known.contains(run) || active.as_ref() == Some(run));
    }

    fn start_task(&mut self, run: RunId) {
        // The run sends its end to this actor, which lives until then.
        let Some(inbox) = self.inbox.upgrade() else { return };
        let engine = self.engine.clone();
        if matches!(self.state.active, Some(Active::Explore { .. })) {
            let Some(start) = &self.explore else { return };
            let (cx, params) = (start.cx.clone(), start.params.clone());
            self.engine.inner.tasks.spawn(async move {
                let end = engine.drive_explore(cx, params).await;
                let _result = inbox.send(Message::RunFinished(run, Box::new(end))).await;
            });
            return;
        }
        let (Some(prepared), Some(turn)) = (&self.prepared, self.turns.get(&run).cloned()) else {
            return;
        };
        let cx = prepared.cx.clone();
        let span = span::run(turns::OP, &self.session, &run, turn.resumed);
        self.engine.inner.tasks.spawn(async move {
            let end = engine.drive_turn(&cx, &turn).instrument(span).await;
            let _result = inbox.send(Message::RunFinished(run, Box::new(end))).await;
        });
    }

    fn stop_task(&self, why: Stop) {
        let aborted = why == Stop::Abort;
        match (&self.state.active, &self.prepared, &self.explore) {
            (Some(Active::Explore { .. }), _, Some(start)) => {
                start.cx.inner.aborted.store(aborted, Ordering::SeqCst);
                start.cx.cancel().cancel();
            }
            (Some(_), Some(prepared), _) => {
                let handle = &prepared.cx.inner.handle;
                handle.aborted.store(aborted, Ordering::SeqCst);
                handle.cancel.cancel();
            }
            _ => {}
        }
    }

    fn deliver(&mut self) {
        if let (
            Some(Request::Steer { text, .. }),
            Some(Response::Receipt(receipt)),
            Some(prepared),
        ) = (&self.request, &self.response, &self.prepared)
        {
            prepared.cx.deliver(receipt.seq, text.clone());
        }
    }

    fn publish(&self) {
        let turn = self.state.current_turn().and(self.prepared.as_ref());
        let explore = match (&self.state.active, &self.explore) {
            (Some(Active::Explore { .. }), Some(start)) => RunHandle::of(&start.cx),
            _ => None,
        };
        let view = SessionView {
            turn: turn.map(|prepared| prepared.cx.inner.handle.clone()),
            explore,
            queued: self.state.queue.len() as u64,
        };
        *self.view.lock().unwrap_or_else(PoisonError::into_inner) = view;
    }
}

impl Drop for Actor {
    /// After a panic here no run may remain that cannot be stopped.
    fn drop(&mut self) {
        if self.state.active.is_some() {
            self.stop_task(Stop::Interrupt);
        }
        if std::thread::panicking() {
            self.engine.inner.sessions.forget(&self.session);
        }
    }
}
