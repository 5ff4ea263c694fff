//! Opening and closing the engine, and its shared state.

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cairn_harness::{
    GrantedRules, Harness, Hooks, Registry, Rules, background::BackgroundOptions,
    egress::EgressOptions,
};
use cairn_protocol::{
    daemon::DaemonStats,
    error::{Failure, Reason},
    id::SessionId,
    index::{IndexProgress, IndexStatus},
    tool::ToolInfo,
};
use cairn_search::Indexes;
use cairn_trace::{Retention, Trace};
use cairn_workspace::{Root, Roots};
use tokio::sync::{Notify, Semaphore, broadcast};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Knowledge, Notice, PluginList, SessionServers, SkillList, Trust,
    board::CostCache,
    clone::{CloneEnds, CloneSecrets},
    index_tools,
    keyed_locks::KeyedLocks,
    model::{ModelGate, ModelLimits, Models},
    plugin::Plugins,
    retention::{RetentionLimits, TextTable},
    root_settings::RootSettingsMap,
    runs::Agent,
    schedules::StartingSchedules,
    session::{RunPermits, Sessions},
    state_file::StateFile,
    subagent::AgentCounts,
    turns::{TurnAgent, TurnSettings},
    unattended::UnattendedRuns,
};

/// Most commands that run at once, over all sessions.
const MAX_COMMANDS: usize = 64;
/// Notices that are buffered for a slow subscriber; it loses older ones (they are live only).
const NOTICES: usize = 1024;
/// Time that closing waits for runs to write their last record.
const CLOSE_WAIT: Duration = Duration::from_millis(1200);
/// Time that closing waits for the threads of indexes.
const INDEX_CLOSE_WAIT: Duration = Duration::from_secs(2);
/// Interval in which a drain checks if all remaining runs wait for approvals.
const LOOK: Duration = Duration::from_millis(50);

/// Options that a host sets.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Folder in which clones are created.
    pub workspaces: PathBuf,
    /// File that stores declared roots and remotes.
    pub state_file: PathBuf,
    /// Rules of the tool gate.
    pub rules: Rules,
    /// Folders that are always roots.
    pub roots: Vec<PathBuf>,
    /// Most runs that are active at once, over all sessions.
    pub max_runs: u32,
    /// Time that [`Engine::close`] lets active runs continue before it interrupts them.
    pub drain: Duration,
    /// File for rules that are granted for good; in memory alone when `None`.
    pub granted_file: Option<PathBuf>,
    /// Time that an approval request waits.
    pub approval_timeout: Duration,
    /// Settings of every turn.
    pub turns: TurnSettings,
    /// The network by domain.
    pub egress: EgressOptions,
    /// Bounds on background commands.
    pub background: BackgroundOptions,
    /// Limits of the log.
    pub retention: Retention,
    /// Bounds on requests to models.
    pub models: ModelLimits,
    /// Notices that are buffered for a slow subscriber, which loses older ones.
    pub notices: usize,
    /// IANA time zone of schedules that name none.
    pub timezone: String,
    /// Folder of what commands wrote into files that run later and nobody accepted; a temporary one
    /// when `None`.
    pub rejected: Option<PathBuf>,
}

impl Default for EngineOptions {
    /// Uses the current folder, with the rules and limits of a fresh installation; granted rules in
    /// memory alone.
    fn default() -> Self {
        Self {
            workspaces: "workspaces".into(),
            state_file: "state.json".into(),
            rules: Rules::default(),
            roots: vec![],
            max_runs: 16,
            drain: Duration::from_secs(10),
            granted_file: None,
            approval_timeout: Duration::from_secs(600),
            turns: TurnSettings::default(),
            models: ModelLimits::default(),
            egress: EgressOptions::default(),
            background: BackgroundOptions::default(),
            retention: Retention::UNLIMITED,
            notices: NOTICES,
            timezone: "UTC".to_owned(),
            rejected: None,
        }
    }
}

/// Options that can change while the engine runs.
#[derive(Debug, Clone)]
pub struct RuntimeSettings {
    /// Rules of the tool gate.
    pub rules: Rules,
    /// Most runs that are active at once.
    pub max_runs: u32,
    /// Time that new approval requests wait.
    pub approval_timeout: Duration,
    /// Settings of every turn.
    pub turns: TurnSettings,
    /// Bounds on requests to models.
    pub models: ModelLimits,
    /// The network by domain.
    pub egress: EgressOptions,
    /// Bounds on background commands.
    pub background: BackgroundOptions,
    /// Limits of the log.
    pub retention: Retention,
}

/// Components of an engine; the host opens them.
pub struct EngineDeps {
    /// Log of all sessions.
    pub trace: Trace,
    /// Registry of declared roots.
    pub roots: Arc<Roots>,
    /// Indexes of the declared roots.
    pub indexes: Arc<Indexes>,
    /// Receiver of the indexes' progress.
    pub progress: crossbeam_channel::Receiver<IndexProgress>,
    /// Registry of tools, without the engine's own.
    pub registry: Registry,
    /// Sandbox that runs processes.
    pub sandbox: Arc<cairn_harness::Sandbox>,
}

/// The engine. Clones share it.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) trace: Trace,
    pub(crate) roots: Arc<Roots>,
    pub(crate) indexes: Arc<Indexes>,
    pub(crate) harness: Harness,
    pub(crate) explorer: OnceLock<Arc<dyn Agent>>,
    pub(crate) sessions: Sessions,
    pub(crate) permits: RunPermits,
    /// Locked while a starting method looks up its retry key and stores its receipt.
    pub(crate) retries: KeyedLocks,
    pub(crate) commands: Arc<Semaphore>,
    pub(crate) tasks: TaskTracker,
    pub(crate) agent_counts: AgentCounts,
    pub(crate) shutdown: CancellationToken,
    pub(crate) notices: broadcast::Sender<Notice>,
    pub(crate) state: StateFile,
    pub(crate) workspaces: PathBuf,
    pub(crate) clone_secrets: Arc<CloneSecrets>,
    pub(crate) clone_ends: CloneEnds,
    pub(crate) stop: CancellationToken,
    /// True if nothing new may start, while active runs may finish.
    draining: AtomicBool,
    drain: Duration,
    pub(crate) turn_agent: OnceLock<Arc<dyn TurnAgent>>,
    turn_settings: RwLock<Arc<TurnSettings>>,
    pub(crate) root_settings: RootSettingsMap,
    pub(crate) models: ModelGate,
    model_source: RwLock<Option<Arc<dyn Models>>>,
    pub(crate) knowledge: OnceLock<Arc<Knowledge>>,
    pub(crate) skills: OnceLock<Arc<SkillList>>,
    pub(crate) trust: OnceLock<Arc<dyn Trust>>,
    pub(crate) plugins: Arc<Plugins>,
    pub(crate) plugin_list: OnceLock<Arc<PluginList>>,
    pub(crate) session_servers: OnceLock<Arc<dyn SessionServers>>,
    pub(crate) retention: RetentionLimits,
    pub(crate) unattended: UnattendedRuns,
    pub(crate) schedule_changes: Notify,
    pub(crate) starting_schedules: StartingSchedules,
    pub(crate) timezone: String,
    pub(crate) costs: CostCache,
}

/// Creates the gate of an engine, without roots, sandbox and hooks.
fn gate(
    registry: Registry,
    trace: &Trace,
    granted: GrantedRules,
    options: &EngineOptions,
    shutdown: &CancellationToken,
) -> Harness {
    let (rules, timeout) = (options.rules.clone(), options.approval_timeout);
    let gate = Harness::new(registry, rules, trace.clone(), granted, timeout, shutdown.clone());
    match &options.rejected {
        Some(folder) => gate.with_rejected(folder.clone()),
        None => gate,
    }
}

impl Engine {
    /// Opens an engine, declares the stored roots and marks runs that a dead daemon left as
    /// interrupted. Indexing continues in the background; nothing waits for it.
    ///
    /// # Errors
    /// An error of the log, or a tool that cannot be registered. A stored root that no longer
    /// exists is only logged.
    pub async fn open(parts: EngineDeps, options: EngineOptions) -> Result<Self, Failure> {
        let EngineDeps { trace, roots, indexes, progress, registry, sandbox } = parts;
        let clone_secrets =
            index_tools::register(&registry, &roots, &indexes, &options.workspaces)?;
        registry.add(crate::undo::tool(&trace))?;
        trace.set_embedder(Arc::new(TextTable(Arc::clone(&indexes))));
        trace.mark_interrupted().await?;
        let shutdown = CancellationToken::new();
        let granted = GrantedRules::load(options.granted_file.clone())?;
        let plugins = Arc::<Plugins>::default();
        let harness = gate(registry, &trace, granted, &options, &shutdown)
            .with_roots(Arc::clone(&roots))
            .with_sandbox(sandbox)
            .with_hooks(Arc::clone(&plugins) as Arc<dyn Hooks>);
        let inner = Inner {
            harness,
            trace,
            roots,
            indexes,
            explorer: OnceLock::new(),
            sessions: Sessions::default(),
            permits: RunPermits::new(options.max_runs),
            retries: KeyedLocks::default(),
            commands: Arc::new(Semaphore::new(MAX_COMMANDS)),
            tasks: TaskTracker::new(),
            agent_counts: AgentCounts::default(),
            shutdown,
            notices: broadcast::channel(options.notices.max(1)).0,
            state: StateFile::load(options.state_file)?,
            workspaces: options.workspaces,
            clone_secrets,
            clone_ends: CloneEnds::default(),
            stop: CancellationToken::new(),
            draining: AtomicBool::new(false),
            drain: options.drain,
            turn_agent: OnceLock::new(),
            turn_settings: RwLock::new(Arc::new(options.turns)),
            root_settings: RootSettingsMap::default(),
            models: ModelGate::new(options.models),
            model_source: RwLock::default(),
            knowledge: OnceLock::new(),
            skills: OnceLock::new(),
            trust: OnceLock::new(),
            plugins,
            plugin_list: OnceLock::new(),
            session_servers: OnceLock::new(),
            retention: RetentionLimits::new(options.retention),
            unattended: UnattendedRuns::default(),
            schedule_changes: Notify::new(),
            starting_schedules: StartingSchedules::default(),
            timezone: options.timezone,
            costs: CostCache::default(),
        };
        let engine = Self { inner: Arc::new(inner) };
        let harness = &engine.inner.harness;
        harness.egress().configure(options.egress);
        harness.background().configure(options.background);
        crate::turns::background::listen(harness.background(), &engine.inner);
        engine.add_own_tools()?;
        engine.forward_progress(progress)?;
        engine.declare_remembered(&options.roots).await;
        engine.remove_unfinished_worktrees().await;
        Ok(engine)
    }

    /// Registers the tools that use the engine itself, and the source of the repositories whose
    /// rules apply in their work trees.
    fn add_own_tools(&self) -> Result<(), Failure> {
        self.inner.harness.approvals().set_repositories(self.repository_folders());
        let registry = self.inner.harness.registry();
        registry.add(crate::llm_tool::tool(&self.inner))?;
        registry.add(crate::skill_tool::tool(&self.inner))?;
        registry.add(crate::history_tool::tool(&self.inner))?;
        registry.add(crate::subagent::tool(&self.inner))
    }

    /// Registers the agent that explores. Later calls have no effect.
    pub fn set_explorer(&self, agent: Arc<dyn Agent>) {
        if self.inner.explorer.set(agent).is_err() {
            tracing::warn!("an explorer is already registered");
        }
    }

    /// Registers the agent that runs turns. Later calls have no effect.
    pub fn set_turn_agent(&self, agent: Arc<dyn TurnAgent>) {
        if self.inner.turn_agent.set(agent).is_err() {
            tracing::warn!("an agent is already registered");
        }
    }

    /// Sets the source of models, for turns that start later.
    pub fn set_models(&self, models: Arc<dyn Models>) {
        *self.inner.model_source.write().unwrap_or_else(PoisonError::into_inner) = Some(models);
    }

    /// Returns the source of models.
    ///
    /// # Errors
    /// `not_supported` when the host set none.
    pub(crate) fn model_source(&self) -> Result<Arc<dyn Models>, Failure> {
        let source = self.inner.model_source.read().unwrap_or_else(PoisonError::into_inner).clone();
        source.ok_or_else(|| Failure::new(Reason::NotSupported, "no model provider is configured"))
    }

    /// Returns the settings of turns that start in `root`.
    pub(crate) fn turn_settings(&self, root: Option<&Root>) -> Arc<TurnSettings> {
        if let Some(own) = self.inner.root_settings.of(root) {
            return Arc::new(own.turns.clone());
        }
        Arc::clone(&self.inner.turn_settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Shuts down gracefully. Nothing new starts; active runs may finish within the drain time,
    /// then they are interrupted, with a final record for each interrupted call. Queued turns stay
    /// in the log, for the next start. Background commands are stopped. Takes at most the
    /// drain time plus about four seconds, and five more for a command that ignores TERM.
    pub async fn close(&self) {
        self.inner.draining.store(true, Ordering::SeqCst);
        self.shut_sessions().await;
        if tokio::time::timeout(self.inner.drain, self.drained()).await.is_err() {
            tracing::info!(running = self.running(), "interrupting the remaining runs");
        }
        self.inner.shutdown.cancel();
        self.interrupt_sessions().await;
        self.inner.harness.background().end_all().await;
        self.inner.harness.services().end_all().await;
        self.inner.tasks.close();
        if tokio::time::timeout(CLOSE_WAIT, self.inner.tasks.wait()).await.is_err() {
            tracing::warn!("runs did not end in time; the next start marks them interrupted");
        }
        let indexes = Arc::clone(&self.inner.indexes);
        // A separate thread: the runtime waits for its blocking threads without a bound.
        let (done, closed) = tokio::sync::oneshot::channel();
        let close = move || {
            indexes.close();
            let _result = done.send(());
        };
        let thread = std::thread::Builder::new().name("close-indexes".into()).spawn(close);
        match (thread, tokio::time::timeout(INDEX_CLOSE_WAIT, closed).await) {
            (Ok(_), Ok(Ok(()))) => {}
            (Ok(_), Err(_)) => tracing::warn!("indexes did not close in time"),
            _ => tracing::error!("indexes failed while closing"),
        }
    }

    /// Returns when no run is active except those that wait for approvals, which no client will
    /// answer during a shutdown.
    async fn drained(&self) {
        let mut look = tokio::time::interval(LOOK);
        loop {
            let idle = self.inner.commands.available_permits() == MAX_COMMANDS;
            if idle && (self.running() == 0 || self.inner.sessions.all_wait_for_people()) {
                return;
            }
            tokio::select! {
                () = self.inner.permits.all_returned(), if self.running() > 0 => {}
                _ = look.tick() => {}
            }
        }
    }

    /// Returns true if the engine is closing.
    pub(crate) fn is_draining(&self) -> bool {
        self.inner.draining.load(Ordering::SeqCst)
    }

    /// Returns every registered tool.
    pub fn tools(&self) -> Vec<ToolInfo> {
        self.inner.harness.registry().list()
    }

    /// Returns the registry, for a host that adds and removes tools.
    pub fn registry(&self) -> &cairn_harness::Registry {
        self.inner.harness.registry()
    }

    /// Adds a tool for later calls.
    ///
    /// # Errors
    /// A name that is taken, or an invalid schema.
    pub fn add_tool(&self, tool: Arc<dyn cairn_harness::Tool>) -> Result<(), Failure> {
        self.inner.harness.registry().add(tool)
    }

    /// Returns the log of all sessions.
    pub fn trace(&self) -> &Trace {
        &self.inner.trace
    }

    /// Subscribes to live notices, which are not in the log.
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.inner.notices.subscribe()
    }

    /// Returns the state of one index or of all.
    ///
    /// # Errors
    /// `root_not_found`.
    pub fn index_status(&self, root: Option<&str>) -> Result<IndexStatus, Failure> {
        let id = root.map(|r| self.inner.roots.find(r)).transpose()?.map(|r| r.id.clone());
        Ok(IndexStatus { roots: self.inner.indexes.status(id.as_ref())? })
    }

    /// Returns the engine's figures; the host adds its own.
    ///
    /// # Errors
    /// An error of the log.
    pub async fn stats(&self) -> Result<DaemonStats, Failure> {
        let roots = self.inner.indexes.status(None)?;
        let sum = |f: fn(&cairn_protocol::index::RootStatus) -> u64| roots.iter().map(f).sum();
        Ok(DaemonStats {
            sessions: self.inner.trace.session_count().await?,
            running: self.running(),
            records_appended: self.inner.trace.appended(),
            log_queue: self.inner.trace.queued(),
            log_bytes: self.inner.trace.bytes(),
            index_files: sum(|r| r.files),
            index_chunks: sum(|r| r.chunks),
            index_pending: sum(|r| r.pending),
            ..DaemonStats::default()
        })
    }

    /// Returns true if no run and no background command is active and nothing is being indexed: a
    /// daemon started on demand may exit.
    pub fn is_idle(&self) -> bool {
        let busy = |r: &cairn_protocol::index::RootStatus| !r.complete && r.error.is_none();
        self.running() == 0
            && !self.has_unattended_runs()
            && !self.inner.harness.background().is_running()
            && !self.inner.indexes.status(None).is_ok_and(|all| all.iter().any(busy))
    }

    /// Returns the number of active runs.
    pub fn running(&self) -> u64 {
        u64::from(self.inner.permits.used())
    }

    /// Requests the host to stop: see [`Engine::stop_token`].
    pub fn ask_to_stop(&self) {
        self.inner.stop.cancel();
    }

    /// Returns a token that is cancelled when a client requests the daemon to stop. The host then
    /// calls [`Engine::close`].
    pub fn stop_token(&self) -> &CancellationToken {
        &self.inner.stop
    }

    /// Returns the root that a session works in.
    pub(crate) fn root_of(&self, root: Option<&str>) -> Result<Option<Root>, Failure> {
        Ok(root.map(|r| self.inner.roots.find(r)).transpose()?)
    }

    /// Rejects new work while closing.
    pub(crate) fn require_open(&self) -> Result<(), Failure> {
        if self.is_draining() {
            return Err(Failure::new(Reason::ShuttingDown, "the daemon is stopping"));
        }
        Ok(())
    }

    /// Rejects a run at the limit of active runs, before anything is created for it. The permit
    /// that it takes later is decisive.
    pub(crate) fn check_capacity(&self) -> Result<(), Failure> {
        let permits = &self.inner.permits;
        if permits.used() < permits.limit() {
            return Ok(());
        }
        let text = format!("{} runs are active, the limit of resources.maxRuns", permits.limit());
        Err(Failure::new(Reason::Overloaded, text))
    }

    /// Replaces rules and limits at once; active runs continue with their former ones.
    pub fn reconfigure(&self, live: RuntimeSettings) {
        self.inner.harness.set_rules(live.rules);
        self.inner.harness.approvals().set_timeout(live.approval_timeout);
        self.inner.harness.egress().configure(live.egress);
        self.inner.harness.background().configure(live.background);
        self.inner.permits.resize(live.max_runs);
        self.inner.retention.set(live.retention);
        *self.inner.turn_settings.write().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(live.turns);
        self.inner.models.set(live.models);
        self.refresh_roots();
    }

    /// Logs a failure of work that no caller waits for.
    pub(crate) fn log_lost(session: &SessionId, cause: &Failure) {
        tracing::error!(%session, %cause, "a record could not be written");
    }
}
