//! Taking a turn: checked, made durable, begun or put in line.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use cairn_harness::Grants;
use cairn_protocol::{
    envelope::{Body, Origin},
    error::{Failure, Reason},
    event::AgentEvt,
    explore::{RunReceipt, RunState},
    id::{RunId, SessionId},
    model::Part,
    time::Timestamp,
    turn::{Outcome, RunResult, RunStartParams, RunStatus, SandboxUse, SteerParams, TurnRef},
};
use cairn_trace::{Append, NewRecord};
use uuid::Uuid;

use super::{OP, Taken, TurnContext, TurnHandle, context};
use crate::{Engine, retry::Retry};

/// Turns that may wait in a session.
const MAX_WAITING: usize = 32;
/// Bytes of a turn's input and context.
const MAX_INPUT: usize = 8 * 1024 * 1024;
/// Bytes of a steering text.
const MAX_STEER: usize = 16 * 1024;

impl Engine {
    /// Takes a turn. It begins at once, or after those that were taken before it in the session.
    ///
    /// # Errors
    /// `session_not_found`, `invalid_params`, `request_conflict` (the turn's id was used for another), `session_busy` while an
    /// explore works in the session, `overloaded`.
    pub async fn start_run(
        &self,
        params: RunStartParams,
        client: Option<String>,
    ) -> Result<RunReceipt, Failure> {
        self.need_open()?;
        check(&params)?;
        let _one_at_a_time = self.inner.starting.lock().await;
        let scope = format!("turn:{}", params.session_id);
        let retry = Retry::new(&scope, Some(&params.turn_id), &params);
        if let Some(receipt) = self.answered(&retry).await? {
            return Ok(receipt);
        }
        let session = self.inner.trace.session(&params.session_id).await?.session_id;
        if self.inner.runs.get(&session).is_some() {
            let text = format!("an explore is at work in session {session}");
            return Err(Failure::new(Reason::SessionBusy, text));
        }
        let busy = self.inner.turns.lines().contains_key(&session);
        if busy && self.inner.turns.waiting(&session) as usize >= MAX_WAITING {
            let text = format!("{MAX_WAITING} turns wait in session {session}");
            return Err(Failure::new(Reason::Overloaded, text));
        }
        if !busy {
            self.need_room()?;
        }
        let run = RunId::new();
        let taken = Taken { run: run.clone(), params, client, resumed: false };
        let receipt = serde_json::json!({"sessionId": session, "runId": run});
        let (scope, key, digest) = retry.stored().unwrap_or_default();
        let append = Append::new(&session, vec![accepted(&taken)]).receipt(&scope, &key, digest, receipt);
        let seq = self.inner.trace.append(append).await?.first;
        // Between the commit and here nobody else starts: the lock is held. A turn that ended meanwhile has looked into
        // the line already, so whether one is at work is asked again.
        let queued = {
            let mut lines = self.inner.turns.lines();
            match lines.get_mut(&session) {
                Some(line) => {
                    line.waiting.push_back(taken.clone());
                    true
                }
                None => false,
            }
        };
        if !queued {
            let cx = self.begin_turn(&session, &taken).await?;
            self.spawn_turn(cx, taken);
        }
        Ok(RunReceipt { session_id: session, run_id: run, seq })
    }

    /// Makes the beginning of a turn durable.
    pub(super) async fn begin_turn(
        &self,
        session: &SessionId,
        taken: &Taken,
    ) -> Result<TurnContext, Failure> {
        let cx = self.turn_context(session, taken).await?;
        self.announce(session, taken, cx).await
    }

    async fn announce(
        &self,
        session: &SessionId,
        taken: &Taken,
        cx: TurnContext,
    ) -> Result<TurnContext, Failure> {
        let model = match cx.provider() {
            Ok(p) => super::drive::choice(&*p),
            Err(_) => self.model_choice(session).await?,
        };
        let evt = if taken.resumed {
            AgentEvt::Resumed { op: OP.into() }
        } else {
            AgentEvt::RunStarted {
                run_id: taken.run.clone(),
                turn_id: taken.params.turn_id.clone(),
                model,
                shown_chars: cx.settings().shown_chars,
            }
        };
        let stored = serde_json::to_string(&taken.params).unwrap_or_default();
        let append = Append::new(session, vec![cx.record(None, None, evt)])
            .state(RunState::Running)
            .run(&taken.run, OP, stored);
        self.inner.turns.begin(session, cx.inside.handle.clone());
        if let Err(failure) = self.inner.trace.append(append).await {
            self.inner.turns.end(session);
            return Err(failure);
        }
        Ok(cx)
    }

    pub(crate) async fn turn_context(
        &self,
        session: &SessionId,
        taken: &Taken,
    ) -> Result<TurnContext, Failure> {
        let found = self.inner.trace.session(session).await?;
        let root = self.root_of(found.root.as_deref())?;
        let policy = taken.params.policy.clone().unwrap_or_default();
        let grants = Grants {
            network: policy.network,
            ops: policy.ops.clone(),
            paths: policy.paths.clone(),
            unconfined: policy.sandbox == Some(SandboxUse::Off),
        };
        let choice = self.model_choice(session).await?;
        let handle = TurnHandle {
            run: taken.run.clone(),
            turn_id: taken.params.turn_id.clone(),
            cancel: self.inner.shutdown.child_token(),
            aborted: Arc::new(AtomicBool::new(false)),
            steering: Arc::new(Mutex::default()),
        };
        let inside = context::Inside {
            engine: self.clone(),
            session: session.clone(),
            handle,
            root,
            created_at: found.created_at,
            began: Timestamp::now(),
            policy,
            grants,
            client: taken.client.clone(),
            settings: self.turn_settings(),
            provider: self.model_source().and_then(|models| models.provider(&choice)),
            clock: Arc::default(),
            resumed: taken.resumed,
            heard: AtomicU64::new(0),
            usage: Mutex::default(),
            tools: Mutex::default(),
            ids: Mutex::default(),
            feed: None,
        };
        Ok(TurnContext { inside: Arc::new(inside) })
    }

    /// Takes a turn against recorded answers, to its end, as if it were then.
    pub(crate) async fn take_recorded(
        &self,
        session: &SessionId,
        taken: &Taken,
        provider: Arc<dyn cairn_llm::Provider>,
        feed: Arc<super::Feed>,
        (shown_chars, began): (u64, Timestamp),
    ) -> Result<(), Failure> {
        self.inner.trace.append(Append::new(session, vec![accepted(taken)])).await?;
        let cx = self.turn_context(session, taken).await?;
        let Some(mut inside) = Arc::into_inner(cx.inside) else {
            return Err(Failure::new(Reason::Internal, "a replayed turn is shared"));
        };
        inside.settings = Arc::new(context::TurnSettings { shown_chars, ..(*inside.settings).clone() });
        (inside.provider, inside.feed, inside.began) = (Ok(provider), Some(feed), began);
        // Nothing leaves this machine: the answers are recorded ones.
        inside.policy.allow_external_llms = true;
        let cx = TurnContext { inside: Arc::new(inside) };
        let cx = self.announce(session, taken, cx).await?;
        self.drive_turn(&cx, taken).await;
        self.inner.turns.end(session);
        Ok(())
    }

    /// Goes on with a turn that the end of a daemon cut off, and with those that waited behind it.
    pub(crate) async fn resume_turn(&self, session: &SessionId) -> Result<RunReceipt, Failure> {
        let _one_at_a_time = self.inner.starting.lock().await;
        let found = self.inner.trace.session(session).await?;
        if found.state != RunState::Interrupted {
            let text = format!("session {session} is {}, not interrupted", found.state.as_str());
            return Err(Failure::new(Reason::NotResumable, text));
        }
        self.need_room()?;
        let mut pending = self.unfinished(session).await?;
        if pending.is_empty() {
            let text = format!("session {session} has no turn that is known here");
            return Err(Failure::new(Reason::NotResumable, text));
        }
        let first = pending.remove(0);
        let cx = self.begin_turn(session, &first).await?;
        let receipt =
            RunReceipt { session_id: session.clone(), run_id: first.run.clone(), seq: found.head_seq + 1 };
        if let Some(line) = self.inner.turns.lines().get_mut(session) {
            line.waiting.extend(pending);
        }
        self.spawn_turn(cx, first);
        Ok(receipt)
    }

    /// Turns of the log that were taken and have no end, the one that had begun first.
    async fn unfinished(&self, session: &SessionId) -> Result<Vec<Taken>, Failure> {
        let mut turns: Vec<Taken> = Vec::new();
        let mut at = 0;
        loop {
            let page = self.inner.trace.records(session, at, cairn_trace::PAGE).await?;
            let Some(last) = page.last() else { return Ok(turns) };
            at = last.seq;
            for record in page {
                let client = record.origin.and_then(|o| o.client);
                let Body::Evt { evt } = record.body else { continue };
                match evt {
                    AgentEvt::TurnAccepted { run_id: run, turn_id, input, policy } => {
                        let params = RunStartParams {
                            session_id: session.clone(),
                            turn_id,
                            input: cairn_protocol::turn::Input::Parts(input),
                            context: None,
                            policy,
                            metadata: Default::default(),
                        };
                        turns.push(Taken { run, params, client, resumed: false });
                    }
                    AgentEvt::RunStarted { run_id, .. } => {
                        for turn in turns.iter_mut().filter(|t| t.run == run_id) {
                            turn.resumed = true;
                        }
                    }
                    AgentEvt::RunCompleted { result } => turns.retain(|t| t.run != result.run_id),
                    _ => {}
                }
            }
        }
    }

    /// Where the latest turn of a session stands.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn run_status(&self, session: &SessionId) -> Result<RunStatus, Failure> {
        let found = self.inner.trace.session(session).await?;
        let run_id = match self.inner.turns.current(session) {
            Some(handle) => Some(handle.run),
            None => self.inner.trace.latest_run(session).await?.map(|latest| latest.run),
        };
        let queued = self.inner.turns.waiting(session);
        Ok(RunStatus {
            session_id: session.clone(),
            run_id,
            state: found.state,
            head_seq: found.head_seq,
            queued,
        })
    }

    /// Stops a turn: the one at work, or one that waits. Stopping what has ended changes nothing.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn cancel_run(&self, turn: TurnRef) -> Result<RunStatus, Failure> {
        let current = self.inner.turns.current(&turn.session_id);
        match current.filter(|c| turn.turn_id.as_ref().is_none_or(|id| *id == c.turn_id)) {
            Some(handle) => {
                handle.aborted.store(true, Ordering::SeqCst);
                handle.cancel.cancel();
            }
            None => self.drop_waiting(&turn).await?,
        }
        self.run_status(&turn.session_id).await
    }

    async fn drop_waiting(&self, turn: &TurnRef) -> Result<(), Failure> {
        let Some(id) = &turn.turn_id else { return Ok(()) };
        let taken = {
            let mut lines = self.inner.turns.lines();
            let line = lines.get_mut(&turn.session_id);
            line.and_then(|l| {
                let at = l.waiting.iter().position(|t| t.params.turn_id == *id)?;
                l.waiting.remove(at)
            })
        };
        let Some(taken) = taken else { return Ok(()) };
        let result = RunResult {
            session_id: turn.session_id.clone(),
            turn_id: id.clone(),
            run_id: taken.run.clone(),
            status: Outcome::Cancelled,
            final_output: None,
            usage: Default::default(),
            tool_trace: vec![],
            error: None,
            metadata: taken.params.metadata,
        };
        let record = NewRecord {
            id: Uuid::now_v7(),
            parent_id: None,
            origin: Some(Origin { run_id: Some(taken.run), ..Origin::default() }),
            body: Body::Evt { evt: AgentEvt::RunCompleted { result: Box::new(result) } },
        };
        self.inner.trace.append(Append::new(&turn.session_id, vec![record])).await.map(drop)
    }

    /// Tells a turn at work something: the model hears it before its next answer.
    ///
    /// # Errors
    /// `run_not_found` when no turn is at work; `too_large`.
    pub async fn steer(&self, params: SteerParams, client: Option<String>) -> Result<RunStatus, Failure> {
        let SteerParams { session_id, text } = params;
        if text.trim().is_empty() || text.len() > MAX_STEER {
            let why = format!("text must have 1 to {MAX_STEER} bytes");
            return Err(Failure::new(Reason::InvalidParams, why));
        }
        let Some(handle) = self.inner.turns.current(&session_id) else {
            let why = format!("no turn is at work in session {session_id}");
            return Err(Failure::new(Reason::RunNotFound, why));
        };
        let evt = AgentEvt::Steered { run_id: handle.run.clone(), text: text.clone() };
        let origin = Some(Origin { client, run_id: Some(handle.run), tool: None });
        let record = NewRecord { id: Uuid::now_v7(), parent_id: None, origin, body: Body::Evt { evt } };
        let seq = self.inner.trace.append(Append::new(&session_id, vec![record])).await?.first;
        handle.steering.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((seq, text));
        self.run_status(&session_id).await
    }
}

fn accepted(taken: &Taken) -> NewRecord {
    let params = &taken.params;
    let mut input = params.input.clone().into_parts();
    if let Some(context) = &params.context {
        input.insert(0, Part::Text { text: context.clone() });
    }
    let evt = AgentEvt::TurnAccepted {
        run_id: taken.run.clone(),
        turn_id: params.turn_id.clone(),
        input,
        policy: params.policy.clone(),
    };
    let origin = Some(Origin { client: taken.client.clone(), run_id: Some(taken.run.clone()), tool: None });
    NewRecord { id: Uuid::now_v7(), parent_id: None, origin, body: Body::Evt { evt } }
}

fn check(params: &RunStartParams) -> Result<(), Failure> {
    let bad = |text: String| Err(Failure::new(Reason::InvalidParams, text));
    if params.turn_id.is_empty() || params.turn_id.len() > 128 {
        return bad("turnId must have 1 to 128 bytes".into());
    }
    let parts = params.input.clone().into_parts();
    let size = |p: &Part| match p {
        Part::Text { text } => text.len(),
        Part::Image { data, .. } => data.len(),
    };
    let total: usize = parts.iter().map(size).sum::<usize>() + params.context.as_ref().map_or(0, String::len);
    if total > MAX_INPUT {
        return Err(Failure::new(
            Reason::TooLarge,
            format!("the input has {total} bytes, {MAX_INPUT} are allowed"),
        ));
    }
    let blank = |p: &Part| matches!(p, Part::Text { text } if text.trim().is_empty());
    if parts.iter().all(blank) {
        return bad("input is empty".into());
    }
    let kinds = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    for part in &parts {
        if let Part::Image { mime, .. } = part
            && !kinds.contains(&mime.as_str())
        {
            return bad(format!("image type '{}' is not one of {}", mime.escape_default(), kinds.join(", ")));
        }
    }
    if params.metadata.len() > 32 {
        return bad("metadata has more than 32 entries".into());
    }
    Ok(())
}
