//! Explore runs: start, drive, finish, resume.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use cairn_harness::{Grants, check_run_paths};
use cairn_protocol::{
    error::{Failure, Reason},
    event::AgentEvt,
    explore::{
        ExploreStartParams, ExploreStatus, ExploreSummary, PlannerKind, RunReceipt, RunState,
    },
    id::{RunId, SessionId},
    turn::ExecutionMode,
};
use cairn_trace::NewSession;
use cairn_workspace::{
    Root,
    git::{Remote, RemoteLocation, check_revision},
};
use tracing::Instrument as _;

use crate::{
    Engine, RunContext, clone,
    context::{Inner, cancelled, error_event},
    recorded::Recorded,
    retry::Retry,
    run_core::RunCore,
    session::{ExploreStart, Request, RunEnd},
};

/// Operation name of the run itself, in its first and last records.
pub const OP: &str = "explore";
/// Scope of the retry keys of explores that create their session.
const START: &str = "orchestrate.explore.start";
/// Artifact name of the saved summary.
const SUMMARY: &str = "explore-summary.json";

/// Folders that an explore may work in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Any folder, which becomes a root.
    AnyFolder,
    /// Declared roots, by the handle that was declared: a folder that has replaced one is not used.
    DeclaredRoots,
}

impl Engine {
    /// Starts an explore: validates, declares the root, makes the `started` record durable, and
    /// continues in the background.
    ///
    /// # Errors
    /// Errors of declaring a root; `network_denied` for a clone without permission; `session_busy`;
    /// `request_conflict`; `overloaded` at the limit of active runs.
    pub async fn start_explore(
        &self,
        params: ExploreStartParams,
        client: Option<String>,
    ) -> Result<RunReceipt, Failure> {
        self.begin_explore(params, client, Reach::AnyFolder).await
    }

    /// Starts an explore for a caller that may not declare roots.
    ///
    /// # Errors
    /// As [`Engine::start_explore`]; `root_not_found` for a folder that is no declared root.
    pub async fn explore_declared_root(
        &self,
        params: ExploreStartParams,
        client: Option<String>,
    ) -> Result<RunReceipt, Failure> {
        self.begin_explore(params, client, Reach::DeclaredRoots).await
    }

    async fn begin_explore(
        &self,
        mut params: ExploreStartParams,
        client: Option<String>,
        reach: Reach,
    ) -> Result<RunReceipt, Failure> {
        self.require_open()?;
        let credentials = Self::withhold_credentials(&mut params)?;
        let scope = params.session_id.as_ref().map_or(START, SessionId::as_str);
        let retry = Retry::new(scope, params.request_id.as_ref(), &params);
        let _retries = self.lock_retries(&retry).await;
        if let Some(receipt) = self.answered(&retry).await? {
            return Ok(receipt);
        }
        let root = self.preflight(&params, reach).await?;
        let session = match &params.session_id {
            Some(id) => self.inner.trace.session(id).await?.session_id,
            None => {
                self.check_capacity()?;
                let root = root.as_ref().map(|r| r.path.to_string_lossy().into_owned());
                let title = title(&params);
                self.inner
                    .trace
                    .create_session(NewSession { title, root, request: None })
                    .await?
                    .session_id
            }
        };
        let cx = self.run_context(&session, &RunId::new(), root, &params, client, None);
        self.put_credentials(
            &session,
            params.remote_url.as_deref().unwrap_or_default(),
            credentials,
        );
        let start = ExploreStart { cx, params, retry: retry.stored() };
        self.request(&session, Request::StartExplore(Box::new(start))).await?.receipt()
    }

    /// Resumes an interrupted explore. Calls whose result is in the log are not repeated. A root
    /// that was removed meanwhile stays removed.
    pub(crate) async fn resume_explore(&self, session: &SessionId) -> Result<RunReceipt, Failure> {
        let lost =
            || Failure::new(Reason::NotResumable, format!("session {session} has no known run"));
        let latest = self.inner.trace.latest_run(session).await?.ok_or_else(lost)?;
        let params: ExploreStartParams =
            serde_json::from_str(&latest.params).map_err(|_| lost())?;
        let root = self.preflight(&params, Reach::DeclaredRoots).await?;
        let recorded = Recorded::read(&self.inner.trace, session, &latest.run).await?;
        let cx = self.run_context(session, &latest.run, root, &params, None, Some(recorded));
        let start = ExploreStart { cx, params, retry: None };
        self.request(session, Request::Resume(Some(Box::new(start)))).await?.receipt()
    }

    /// Checks all that can be checked before the receipt. With a remote the root is known only
    /// after the clone.
    async fn preflight(
        &self,
        params: &ExploreStartParams,
        reach: Reach,
    ) -> Result<Option<Root>, Failure> {
        if self.inner.explorer.get().is_none() {
            return Err(Failure::new(Reason::NotSupported, "no explorer is registered"));
        }
        if let Some(since) = &params.since {
            check_revision(since)?;
        }
        match (&params.root, &params.remote_url) {
            (_, Some(url)) => {
                let remote = Remote::parse(url)?;
                if !params.policy.as_ref().is_some_and(|p| p.network) {
                    let text = "cloning needs the network, and policy.network is not set";
                    return Err(Failure::new(Reason::NetworkDenied, text));
                }
                // A server is checked when it is contacted, where an approval is possible.
                if matches!(remote.location(), RemoteLocation::Folder(_)) {
                    clone::judge(&self.inner.roots, remote).await?;
                }
                Ok(None)
            }
            (Some(root), None) if Path::new(root).is_absolute() => {
                let root = match reach {
                    Reach::AnyFolder => self.declare(PathBuf::from(root)).await?,
                    Reach::DeclaredRoots => self.declared(root.clone()).await?,
                };
                check_run_paths(
                    Some(&root),
                    params.policy.as_ref().and_then(|p| p.paths.as_deref()),
                )?;
                Ok(Some(root))
            }
            (Some(root), None) => {
                let text = format!("root '{}' is not absolute", root.escape_default());
                Err(Failure::new(Reason::InvalidParams, text))
            }
            (None, None) => {
                Err(Failure::new(Reason::InvalidParams, "root or remoteURL is required"))
            }
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
        let model =
            (params.planner == Some(PlannerKind::Model)).then_some(policy.allow_external_llms);
        let grants = Grants {
            network: policy.network,
            domains: false,
            ops: policy.ops,
            paths: policy.paths,
            unconfined: false,
            // An explore calls tools that read, and none that its client did not name.
            mode: ExecutionMode::Ask,
        };
        let core = RunCore {
            engine: self.clone(),
            session: session.clone(),
            run: Some(run.clone()),
            root,
            grants,
            cancel: self.inner.shutdown.child_token(),
            client,
        };
        let inner = Inner {
            core,
            aborted: Arc::new(AtomicBool::new(false)),
            recorded: Arc::new(recorded.unwrap_or_default()),
            done: Arc::new(AtomicU64::new(0)),
            failed: AtomicU64::new(0),
            pending: Arc::new(AtomicU64::new(0)),
            model,
            since: params.since.clone(),
            span: crate::span::run(OP, session, run, resumed),
        };
        RunContext { inner: Arc::new(inner) }
    }

    /// Drives an explore to its end.
    pub(crate) async fn drive_explore(&self, cx: RunContext, params: ExploreStartParams) -> RunEnd {
        // A panic in an agent fails its run, not the daemon.
        let work = tokio::spawn(drive(cx.clone(), params).instrument(cx.inner.span.clone()));
        let outcome = match work.await {
            Ok(outcome) => outcome,
            Err(error) => {
                Err(Failure::new(Reason::Internal, format!("the explorer failed: {error}")))
            }
        };
        let aborted = cx.inner.aborted.load(Ordering::SeqCst);
        let mut artifact = None;
        let interrupted = outcome.is_err() && !aborted && cx.core().is_cut_off();
        crate::span::record_outcome(&cx.inner.span, &outcome);
        let (evt, state) = match outcome {
            Ok(summary) => {
                artifact = serde_json::to_string(&summary).ok().map(|text| (SUMMARY, text));
                (AgentEvt::Completed { summary: Box::new(summary) }, RunState::Completed)
            }
            Err(_) if interrupted => {
                (AgentEvt::Interrupted { op: OP.into() }, RunState::Interrupted)
            }
            Err(_) if aborted => {
                let reason = "aborted by a client".to_owned();
                (AgentEvt::Stopped { op: OP.into(), reason }, RunState::Stopped)
            }
            Err(failure) => (error_event(OP, &failure), RunState::Failed),
        };
        cx.inner.span.record("cairn.run.outcome", state.as_str());
        RunEnd { interrupted, records: vec![cx.record(None, None, evt)], state, artifact }
    }

    /// Returns the status of the latest explore of a session.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn explore_status(&self, id: &SessionId) -> Result<ExploreStatus, Failure> {
        let session = self.inner.trace.session(id).await?;
        let running = self.inner.sessions.view(id).explore;
        let (ops_done, ops_pending) = running.as_ref().map_or((0, 0), |run| {
            (run.done.load(Ordering::Relaxed), run.pending.load(Ordering::Relaxed))
        });
        let run_id = match running {
            Some(handle) => Some(handle.run),
            None => self.inner.trace.latest_run(id).await?.map(|latest| latest.run),
        };
        let saved = self.inner.trace.artifact(id, SUMMARY).await?;
        let summary = saved
            .filter(|_| session.state == RunState::Completed)
            .and_then(|s| serde_json::from_str(&s).ok());
        let (session_id, state, head_seq) = (session.session_id, session.state, session.head_seq);
        Ok(ExploreStatus { session_id, run_id, state, head_seq, ops_done, ops_pending, summary })
    }

    /// Aborts the explore of a session; `stopped` is its last record. Has no effect on a finished
    /// one.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn abort_explore(&self, id: &SessionId) -> Result<ExploreStatus, Failure> {
        self.request(id, Request::Abort).await?;
        self.explore_status(id).await
    }
}

/// Clones if needed, then runs the agent.
async fn drive(cx: RunContext, params: ExploreStartParams) -> Result<ExploreSummary, Failure> {
    let engine = cx.core().engine.clone();
    let agent = engine.inner.explorer.get().cloned();
    let agent =
        agent.ok_or_else(|| Failure::new(Reason::NotSupported, "no explorer is registered"))?;
    let cx = match &params.remote_url {
        None => cx,
        Some(url) => {
            let mut arguments = serde_json::json!({"remoteURL": url});
            if let Some(branch) = &params.branch {
                arguments["branch"] = branch.as_str().into();
            }
            let clone = cx.call("git_clone", arguments).await?;
            if let Some(why) = clone.get("stale").and_then(|s| s.as_str()) {
                let message = format!("the existing clone is used without an update: {why}");
                cx.emit(AgentEvt::Warning { op: "git_clone".into(), message }).await?;
            }
            let path = clone.get("path").and_then(|p| p.as_str()).unwrap_or_default().to_owned();
            cx.call("index_add_root", serde_json::json!({"path": path})).await?;
            engine.inner.trace.set_root(cx.session(), &path).await?;
            // A resumed explore reads the call's result from its log, and this daemon does not know
            // the root yet.
            cx.with_root(engine.declare(PathBuf::from(&path)).await?)
        }
    };
    tokio::select! {
        outcome = agent.explore(&cx, &params.goals) => outcome,
        () = cx.cancel().cancelled() => Err(cancelled(OP)),
    }
}

impl RunContext {
    /// Returns the same run in a root that was not known when it started.
    fn with_root(&self, root: Root) -> RunContext {
        let old = &self.inner;
        let inner = Inner {
            core: RunCore { root: Some(root), ..old.core.clone() },
            aborted: Arc::clone(&old.aborted),
            recorded: Arc::clone(&old.recorded),
            done: Arc::clone(&old.done),
            failed: AtomicU64::new(old.failed.load(Ordering::Relaxed)),
            pending: Arc::clone(&old.pending),
            model: old.model,
            since: old.since.clone(),
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
