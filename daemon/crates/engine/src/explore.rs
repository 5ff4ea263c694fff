//! Explore runs: start, drive, end, resume.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use cairn_harness::Grants;
use cairn_protocol::{
    error::{Failure, Reason},
    event::AgentEvt,
    explore::{ExploreStartParams, ExploreStatus, ExploreSummary, PlannerKind, RunReceipt, RunState},
    id::{RunId, SessionId},
};
use cairn_trace::{Append, NewSession};
use cairn_workspace::{
    Root,
    git::{Remote, RemoteLocation},
};
use tracing::Instrument as _;

use crate::{
    Engine, RunContext, clone,
    context::{Inside, cancelled, error_event},
    recorded::Recorded,
    retry::Retry,
    runs::RunHandle,
};

/// The run's own operation: its first and last records carry it.
pub const OP: &str = "explore";
/// Scope of the retry keys of explores that make their session.
const START: &str = "orchestrate.explore.start";
/// Name of the saved summary.
const SUMMARY: &str = "explore-summary.json";

impl Engine {
    /// Starts an explore: validates, declares the root, makes the `started` record durable, and goes on in the
    /// background.
    ///
    /// # Errors
    /// Those of declaring a root; `network_denied` for a clone without leave; `session_busy`; `request_conflict`;
    /// `overloaded` when as many runs are at work as may be.
    pub async fn start_explore(
        &self,
        mut params: ExploreStartParams,
        client: Option<String>,
    ) -> Result<RunReceipt, Failure> {
        self.need_open()?;
        let credentials = Self::withhold_credentials(&mut params)?;
        let _one_at_a_time = self.inner.starting.lock().await;
        let scope = params.session_id.as_ref().map_or(START, SessionId::as_str);
        let retry = Retry::new(scope, params.request_id.as_ref(), &params);
        if let Some(receipt) = self.answered(&retry).await? {
            return Ok(receipt);
        }
        self.need_room()?;
        let root = self.preflight(&params).await?;
        let session = match &params.session_id {
            Some(id) => self.inner.trace.session(id).await?.session_id,
            None => {
                let root = root.as_ref().map(|r| r.path.to_string_lossy().into_owned());
                let title = title(&params);
                self.inner.trace.create_session(NewSession { title, root, request: None }).await?.session_id
            }
        };
        let run = RunId::new();
        let receipt = serde_json::json!({"sessionId": session, "runId": run});
        let cx = self.run_context(&session, &run, root, &params, client, None);
        let details = params.remote_url.clone().or_else(|| params.root.clone());
        let started = cx.record(None, None, AgentEvt::Started { op: OP.into(), details });
        let ended =
            [RunState::Idle, RunState::Completed, RunState::Stopped, RunState::Failed, RunState::Interrupted];
        let stored = serde_json::to_string(&params).unwrap_or_default();
        let mut append = Append::new(&session, vec![started])
            .state(RunState::Running)
            .only_if(&ended)
            .run(&run, OP, stored);
        if let Some((scope, key, digest)) = retry.stored() {
            append = append.receipt(&scope, &key, digest, receipt);
        }
        let seq = self.inner.trace.append(append).await?.first;
        self.put_credentials(&session, params.remote_url.as_deref().unwrap_or_default(), credentials);
        self.spawn_explore(cx, params);
        Ok(RunReceipt { session_id: session, run_id: run, seq })
    }

    /// Goes on with an interrupted explore. What the log holds is not done again.
    pub(crate) async fn resume_explore(&self, session: &SessionId) -> Result<RunReceipt, Failure> {
        let _one_at_a_time = self.inner.starting.lock().await;
        let lost =
            || Failure::new(Reason::NotResumable, format!("session {session} has no run that is known here"));
        let latest = self.inner.trace.latest_run(session).await?.ok_or_else(lost)?;
        let run = latest.run;
        let params: ExploreStartParams = serde_json::from_str(&latest.params).map_err(|_| lost())?;
        self.need_room()?;
        let root = self.preflight(&params).await?;
        let recorded = Recorded::read(&self.inner.trace, session, 0).await?;
        let cx = self.run_context(session, &run, root, &params, None, Some(recorded));
        let resumed = cx.record(None, None, AgentEvt::Resumed { op: OP.into() });
        let append =
            Append::new(session, vec![resumed]).state(RunState::Running).only_if(&[RunState::Interrupted]);
        let seq = self.inner.trace.append(append).await?.first;
        self.spawn_explore(cx, params);
        Ok(RunReceipt { session_id: session.clone(), run_id: run, seq })
    }

    /// Checks what can be checked before the receipt. With a remote the root comes later, from the clone.
    async fn preflight(&self, params: &ExploreStartParams) -> Result<Option<Root>, Failure> {
        if self.inner.explorer.get().is_none() {
            return Err(Failure::new(Reason::NotSupported, "no explorer is registered"));
        }
        match (&params.root, &params.remote_url) {
            (_, Some(url)) => {
                let remote = Remote::parse(url)?;
                if !params.policy.as_ref().is_some_and(|p| p.network) {
                    let text = "cloning needs the network, and policy.network is not set";
                    return Err(Failure::new(Reason::NetworkDenied, text));
                }
                // A server is judged when it is reached, where somebody can be asked.
                if matches!(remote.location(), RemoteLocation::Folder(_)) {
                    clone::judge(&self.inner.roots, remote).await?;
                }
                Ok(None)
            }
            (Some(root), None) if Path::new(root).is_absolute() => {
                self.declare(PathBuf::from(root)).await.map(Some)
            }
            (Some(root), None) => {
                let text = format!("root '{}' is not absolute", root.escape_default());
                Err(Failure::new(Reason::InvalidParams, text))
            }
            (None, None) => Err(Failure::new(Reason::InvalidParams, "root or remoteURL is needed")),
        }
    }

    fn run_context(
        &self,
        session: &SessionId,
        run: &RunId,
        root: Option<Root>,
        params: &ExploreStartParams,
        client: Option<String>,
        recorded: Option<Recorded>,
    ) -> RunContext {
        let resumed = recorded.is_some();
        let policy = params.policy.clone().unwrap_or_default();
        let model = (params.planner == Some(PlannerKind::Model)).then_some(policy.allow_external_llms);
        let grants =
            Grants { network: policy.network, ops: policy.ops, paths: policy.paths, unconfined: false };
        let inner = Inside {
            engine: self.clone(),
            session: session.clone(),
            run: Some(run.clone()),
            root,
            grants,
            cancel: self.inner.shutdown.child_token(),
            client,
            recorded: Arc::new(recorded.unwrap_or_default()),
            done: Arc::new(AtomicU64::new(0)),
            failed: AtomicU64::new(0),
            pending: Arc::new(AtomicU64::new(0)),
            model,
            span: crate::span::run(OP, session, run, resumed),
        };
        RunContext { inner: Arc::new(inner) }
    }

    fn spawn_explore(&self, cx: RunContext, params: ExploreStartParams) {
        let Some(run) = cx.inner.run.clone() else { return };
        let aborted = Arc::new(AtomicBool::new(false));
        let handle = RunHandle {
            run,
            cancel: cx.cancel().clone(),
            aborted: Arc::clone(&aborted),
            done: Arc::clone(&cx.inner.done),
            pending: Arc::clone(&cx.inner.pending),
        };
        self.inner.runs.add(cx.session(), handle);
        let engine = self.clone();
        self.inner.tasks.spawn(async move {
            // A panic in an agent ends its run, not the daemon.
            let work = tokio::spawn(drive(cx.clone(), params).instrument(cx.inner.span.clone()));
            let outcome = match work.await {
                Ok(outcome) => outcome,
                Err(error) => Err(Failure::new(Reason::Internal, format!("the explorer failed: {error}"))),
            };
            engine.end_explore(&cx, outcome, aborted.load(Ordering::SeqCst)).await;
            engine.inner.runs.remove(cx.session());
        });
    }

    async fn end_explore(&self, cx: &RunContext, outcome: Result<ExploreSummary, Failure>, aborted: bool) {
        let stopping = self.inner.shutdown.is_cancelled() && !aborted;
        let mut artifact = None;
        crate::span::ended(&cx.inner.span, &outcome);
        let (evt, state) = match outcome {
            Ok(summary) => {
                artifact = serde_json::to_string(&summary).ok();
                (AgentEvt::Completed { summary: Box::new(summary) }, RunState::Completed)
            }
            Err(_) if stopping => (AgentEvt::Interrupted { op: OP.into() }, RunState::Interrupted),
            Err(_) if aborted => {
                let reason = "aborted by a client".to_owned();
                (AgentEvt::Stopped { op: OP.into(), reason }, RunState::Stopped)
            }
            Err(failure) => (error_event(OP, &failure), RunState::Failed),
        };
        cx.inner.span.record("cairn.run.outcome", state.as_str());
        let mut append = Append::new(cx.session(), vec![cx.record(None, None, evt)]).state(state);
        if let Some(content) = artifact {
            append = append.artifact(SUMMARY, content);
        }
        if let Err(cause) = self.inner.trace.append(append).await {
            // The session stays `running` in the log; the next start marks it interrupted.
            Engine::log_lost(cx.session(), &cause);
        }
    }

    /// Where the latest explore of a session stands.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn explore_status(&self, id: &SessionId) -> Result<ExploreStatus, Failure> {
        let session = self.inner.trace.session(id).await?;
        let running = self.inner.runs.get(id);
        let run_id = match &running {
            Some(handle) => Some(handle.run.clone()),
            None => self.inner.trace.latest_run(id).await?.map(|latest| latest.run),
        };
        let count = |pick: fn(&RunHandle) -> &Arc<AtomicU64>| {
            running.as_ref().map_or(0, |h| pick(h).load(Ordering::Relaxed))
        };
        let (ops_done, ops_pending) = (count(|h| &h.done), count(|h| &h.pending));
        let saved = self.inner.trace.artifact(id, SUMMARY).await?;
        let summary = saved
            .filter(|_| session.state == RunState::Completed)
            .and_then(|s| serde_json::from_str(&s).ok());
        let (session_id, state, head_seq) = (session.session_id, session.state, session.head_seq);
        Ok(ExploreStatus { session_id, run_id, state, head_seq, ops_done, ops_pending, summary })
    }

    /// Aborts the explore of a session; `stopped` is its last record. Aborting what has ended changes nothing.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn abort_explore(&self, id: &SessionId) -> Result<ExploreStatus, Failure> {
        if let Some(handle) = self.inner.runs.get(id) {
            handle.aborted.store(true, Ordering::SeqCst);
            handle.cancel.cancel();
        }
        self.explore_status(id).await
    }
}

/// Clones if need be, then hands over to the agent.
async fn drive(cx: RunContext, params: ExploreStartParams) -> Result<ExploreSummary, Failure> {
    let engine = cx.inner.engine.clone();
    let agent = engine.inner.explorer.get().cloned();
    let agent = agent.ok_or_else(|| Failure::new(Reason::NotSupported, "no explorer is registered"))?;
    let cx = match &params.remote_url {
        None => cx,
        Some(url) => {
            let mut arguments = serde_json::json!({"remoteURL": url});
            if let Some(branch) = &params.branch {
                arguments["branch"] = branch.as_str().into();
            }
            let clone = cx.call("git_clone", arguments).await?;
            if let Some(why) = clone.get("stale").and_then(|s| s.as_str()) {
                let message = format!("the clone that is here already is used as it was: {why}");
                cx.emit(AgentEvt::Warning { op: "git_clone".into(), message }).await?;
            }
            let path = clone.get("path").and_then(|p| p.as_str()).unwrap_or_default().to_owned();
            cx.call("index_add_root", serde_json::json!({"path": path})).await?;
            engine.inner.trace.set_root(cx.session(), &path).await?;
            cx.with_root(engine.inner.roots.find(&path)?)
        }
    };
    tokio::select! {
        outcome = agent.explore(&cx, &params.goals) => outcome,
        () = cx.cancel().cancelled() => Err(cancelled(OP)),
    }
}

impl RunContext {
    /// The same run in a root that was not known when it began.
    fn with_root(&self, root: Root) -> RunContext {
        let old = &self.inner;
        let inner = Inside {
            engine: old.engine.clone(),
            session: old.session.clone(),
            run: old.run.clone(),
            root: Some(root),
            grants: old.grants.clone(),
            cancel: old.cancel.clone(),
            client: old.client.clone(),
            recorded: Arc::clone(&old.recorded),
            done: Arc::clone(&old.done),
            failed: AtomicU64::new(old.failed.load(Ordering::Relaxed)),
            pending: Arc::clone(&old.pending),
            model: old.model,
            span: old.span.clone(),
        };
        RunContext { inner: Arc::new(inner) }
    }
}

fn title(params: &ExploreStartParams) -> String {
    let name = match &params.remote_url {
        Some(url) => cairn_workspace::git::folder_name(url, None).unwrap_or_default(),
        None => {
            let path = Path::new(params.root.as_deref().unwrap_or_default());
            path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
        }
    };
    format!("explore {name}").chars().take(200).collect()
}
