//! Requests about turns: start, resume, status, cancel, steer.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU64},
};

use base64::Engine as _;
use cairn_harness::{Grants, check_run_paths};
use cairn_protocol::{
    envelope::{Body, Origin},
    error::{Failure, Reason},
    event::AgentEvt,
    explore::{RunReceipt, RunState},
    id::SessionId,
    model::Part,
    time::Timestamp,
    turn::{
        ExecutionMode, ExecutionPolicy, ModelChoice, RunStartParams, RunStatus, SandboxUse,
        SteerParams, TurnRef,
    },
};
use cairn_trace::{Append, NewRecord};
use tracing::Instrument as _;
use uuid::Uuid;

use super::{DomainAccess, OP, QueuedTurn, TurnContext, TurnHandle, context};
use crate::{Engine, run_core::RunCore, session::Request, span};

/// Most bytes of a turn's input and context.
const MAX_INPUT: usize = 8 * 1024 * 1024;
/// Most bytes of a steering text.
const MAX_STEER: usize = 16 * 1024;

/// Text that the model of a planning turn receives before the input.
const PLAN_NOTE: &str = "This turn is in plan mode: nothing can be changed, and only tools that \
read are offered. Investigate, and end with a concrete plan of the changes that you propose. The \
user decides whether it is carried out.";

impl Engine {
    /// Accepts a turn. It starts at once, or after those that were accepted before it in the
    /// session. A turn that cannot be accepted leaves nothing behind.
    ///
    /// # Errors
    /// `session_not_found`, `invalid_params`, `request_conflict` (the turn's id was used for
    /// another), `root_not_found`, `path_outside_roots` for `policy.paths` that lead out of the
    /// root, `session_busy` while an explore is active in the session, `overloaded`.
    pub async fn start_run(
        &self,
        params: RunStartParams,
        client: Option<String>,
    ) -> Result<RunReceipt, Failure> {
        self.require_open()?;
        check(&params)?;
        let session = params.session_id.clone();
        let request = Request::Start { params: Box::new(params), client };
        self.request(&session, request).await?.receipt()
    }

    /// Returns the model that the first record of a turn names.
    pub(crate) async fn first_model(&self, cx: &TurnContext) -> Result<ModelChoice, Failure> {
        match cx.provider() {
            Ok(provider) => Ok(super::drive::choice(&*provider)),
            Err(_) => self.model_choice(cx.session()).await,
        }
    }

    /// Builds all that a turn needs to start: its session, its root, its rights, its model, whose
    /// context is known if possible.
    pub(crate) async fn turn_context(
        &self,
        session: &SessionId,
        turn: &QueuedTurn,
    ) -> Result<TurnContext, Failure> {
        Ok(self.unprepared_context(session, turn).await?.with_known_window().await)
    }

    async fn unprepared_context(
        &self,
        session: &SessionId,
        turn: &QueuedTurn,
    ) -> Result<TurnContext, Failure> {
        let row = self.inner.trace.session(session).await?;
        let root = self.root_of(row.root.as_deref())?;
        let policy = turn.params.policy.clone().unwrap_or_default();
        if root.is_some() {
            check_run_paths(root.as_ref(), policy.paths.as_deref())?;
        }
        let grants = Grants {
            network: policy.network,
            domains: self.turn_settings(root.as_ref()).domains != DomainAccess::Off,
            ops: policy.ops.clone(),
            paths: policy.paths.clone(),
            unconfined: policy.sandbox == Some(SandboxUse::Off),
            mode: policy.mode.unwrap_or_default(),
        };
        let mut settings = self.turn_settings(root.as_ref());
        if let Some(own) = &policy.settings {
            settings = Arc::new(settings.with(own));
        }
        let choice = self.model_choice(session).await?;
        let cancel = self.inner.shutdown.child_token();
        let handle = TurnHandle {
            run: turn.run.clone(),
            turn_id: turn.params.turn_id.clone(),
            cancel: cancel.clone(),
            aborted: Arc::new(AtomicBool::new(false)),
            steering: Arc::new(Mutex::default()),
            clock: Arc::default(),
        };
        let core = RunCore {
            engine: self.clone(),
            session: session.clone(),
            run: Some(turn.run.clone()),
            root,
            grants,
            cancel,
            client: turn.client.clone(),
        };
        let inner = context::Inner {
            core,
            handle,
            created_at: row.created_at,
            began: Timestamp::now(),
            policy,
            settings,
            provider: self.model_source().and_then(|models| models.provider(&choice)),
            resumed: turn.resumed,
            timed_out: AtomicBool::new(false),
            received_seq: AtomicU64::new(0),
            usage: Mutex::default(),
            tools: Mutex::default(),
            ids: Mutex::default(),
            lookups: Mutex::default(),
            closing: Mutex::default(),
            feed: None,
        };
        Ok(TurnContext { inner: Arc::new(inner) })
    }

    /// Runs a turn against recorded answers, as if at its original time. Its session is a new one,
    /// which is reserved meanwhile, so that no actor is needed.
    pub(crate) async fn take_recorded(
        &self,
        session: &SessionId,
        turn: &QueuedTurn,
        provider: Arc<dyn cairn_llm::Provider>,
        feed: Arc<super::ReplaySource>,
        (shown_chars, began): (u64, Timestamp),
    ) -> Result<(), Failure> {
        let _reserved = self.inner.sessions.reserve(session);
        let cx = self.unprepared_context(session, turn).await?;
        let Some(mut inner) = Arc::into_inner(cx.inner) else {
            return Err(Failure::new(Reason::Internal, "a replayed turn is shared"));
        };
        inner.settings =
            Arc::new(context::TurnSettings { shown_chars, ..(*inner.settings).clone() });
        (inner.provider, inner.feed, inner.began) = (Ok(provider), Some(feed), began);
        // Nothing leaves this machine: the answers are recorded ones.
        inner.policy.allow_external_llms = true;
        let cx = TurnContext { inner: Arc::new(inner) };
        let started = AgentEvt::RunStarted {
            run_id: turn.run.clone(),
            turn_id: turn.params.turn_id.clone(),
            model: self.first_model(&cx).await?,
            shown_chars,
        };
        let params = serde_json::to_string(&turn.params).unwrap_or_default();
        let append = Append::new(session, vec![turn.accepted(), cx.record(None, None, started)])
            .state(RunState::Running)
            .run(&turn.run, OP, params);
        self.inner.trace.append(append).await?;
        let span = span::run(OP, session, &turn.run, false);
        let end = self.drive_turn(&cx, turn).instrument(span).await;
        self.inner.trace.append(Append::new(session, end.records).state(end.state)).await?;
        Ok(())
    }

    /// Returns the status of the latest turn of a session.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn run_status(&self, session: &SessionId) -> Result<RunStatus, Failure> {
        let row = self.inner.trace.session(session).await?;
        let view = self.inner.sessions.view(session);
        let run_id = match view.turn {
            Some(handle) => Some(handle.run),
            None => self.inner.trace.latest_run(session).await?.map(|latest| latest.run),
        };
        Ok(RunStatus {
            session_id: session.clone(),
            run_id,
            state: row.state,
            head_seq: row.head_seq,
            queued: view.queued,
        })
    }

    /// Cancels a turn: the active one, or a pending one, also of an interrupted session. Has no
    /// effect on a finished one.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn cancel_run(&self, turn: TurnRef) -> Result<RunStatus, Failure> {
        self.request(&turn.session_id, Request::Cancel(turn.turn_id)).await?;
        self.run_status(&turn.session_id).await
    }

    /// Sends a text to an active turn: the model receives it before its next answer.
    ///
    /// # Errors
    /// `run_not_found` when no turn is active; `too_large`.
    pub async fn steer(
        &self,
        params: SteerParams,
        client: Option<String>,
    ) -> Result<RunStatus, Failure> {
        let SteerParams { session_id, text } = params;
        if text.trim().is_empty() || text.len() > MAX_STEER {
            let why = format!("text must have 1 to {MAX_STEER} bytes");
            return Err(Failure::new(Reason::InvalidParams, why));
        }
        self.request(&session_id, Request::Steer { text, client }).await?;
        self.run_status(&session_id).await
    }

    /// Returns true if the latest turn of a session runs commands outside the sandbox.
    ///
    /// # Errors
    /// An error of the log.
    pub async fn is_unconfined(&self, session: &SessionId) -> Result<bool, Failure> {
        let policy = self.latest_policy(session).await?;
        Ok(policy.sandbox == Some(SandboxUse::Off))
    }

    /// Returns true if the latest turn of a session has a mode in which calls need fewer approvals.
    ///
    /// # Errors
    /// An error of the log.
    pub async fn is_raised(&self, session: &SessionId) -> Result<bool, Failure> {
        Ok(self.latest_policy(session).await?.mode.is_some_and(ExecutionMode::is_raised))
    }

    async fn latest_policy(&self, session: &SessionId) -> Result<ExecutionPolicy, Failure> {
        let latest = self.inner.trace.latest_run(session).await?;
        let params = latest.and_then(|l| serde_json::from_str::<RunStartParams>(&l.params).ok());
        Ok(params.and_then(|params| params.policy).unwrap_or_default())
    }
}

impl QueuedTurn {
    /// Returns the record of its acceptance.
    pub(crate) fn accepted(&self) -> NewRecord {
        let params = &self.params;
        let mut input = params.input.clone().into_parts();
        if let Some(context) = &params.context {
            input.insert(0, Part::Text { text: context.text() });
        }
        if params.policy.as_ref().is_some_and(|p| p.mode == Some(ExecutionMode::Plan)) {
            input.insert(0, Part::Text { text: PLAN_NOTE.to_owned() });
        }
        let evt = AgentEvt::TurnAccepted {
            run_id: self.run.clone(),
            turn_id: params.turn_id.clone(),
            input,
            policy: params.policy.clone(),
            metadata: params.metadata.clone(),
        };
        let origin = Some(Origin {
            client: self.client.clone(),
            run_id: Some(self.run.clone()),
            tool: None,
        });
        NewRecord { id: Uuid::now_v7(), parent_id: None, origin, body: Body::Evt { evt } }
    }
}

fn check(params: &RunStartParams) -> Result<(), Failure> {
    let bad = |text: String| Err(Failure::new(Reason::InvalidParams, text));
    context::check_overrides(params.policy.as_ref())?;
    if params.turn_id.is_empty() || params.turn_id.len() > 128 {
        return bad("turnId must have 1 to 128 bytes".into());
    }
    let parts = params.input.clone().into_parts();
    let size = |p: &Part| match p {
        Part::Text { text } => text.len(),
        Part::Image { data, .. } => data.len(),
    };
    let total: usize = parts.iter().map(size).sum::<usize>()
        + params.context.as_ref().map_or(0, |context| context.text().len());
    if total > MAX_INPUT {
        return Err(Failure::new(
            Reason::TooLarge,
            format!("the input has {total} bytes; the limit is {MAX_INPUT}"),
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
            return bad(format!(
                "image type '{}' is not one of {}",
                mime.escape_default(),
                kinds.join(", ")
            ));
        }
        if let Part::Image { data, .. } = part
            && let Err(cause) = base64::engine::general_purpose::STANDARD.decode(data)
        {
            return bad(format!("an image is not base64: {cause}"));
        }
    }
    if params.metadata.len() > 32 {
        return bad("metadata has more than 32 entries".into());
    }
    Ok(())
}
