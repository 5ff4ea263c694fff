//! Opening, closing and the shared insides.

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cairn_harness::{GrantedRules, Harness, Hooks, Registry, Rules};
use cairn_protocol::{
    daemon::DaemonStats,
    error::{Failure, Reason},
    id::SessionId,
    index::{IndexProgress, IndexStatus},
    tool::ToolInfo,
};
use cairn_search::Indexes;
use cairn_trace::Trace;
use cairn_workspace::{Root, Roots};
use tokio::sync::{Semaphore, broadcast};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Knowledge, Notice, SkillList,
    clone::{CloneEnds, CloneSecrets},
    index_tools,
    keyed_locks::KeyedLocks,
    model::{ModelGate, ModelLimits, Models},
    plugin::Plugins,
    root_settings::RootSettingsMap,
    runs::Agent,
    session::{RunPermits, Sessions},
    state_file::StateFile,
    turns::{TurnAgent, TurnSettings},
};

/// Commands at work at once, over all sessions.
const MAX_COMMANDS: usize = 64;
/// Notices kept for a slow listener; older ones are lost to it (they are live only).
const NOTICES: usize = 1024;
/// How long closing waits for runs to write their last record.
const CLOSE_WAIT: Duration = Duration::from_millis(1200);
/// How long closing waits for the threads of indexes.
const INDEX_CLOSE_WAIT: Duration = Duration::from_secs(2);
/// How often a drain looks for runs that wait for people.
const LOOK: Duration = Duration::from_millis(50);

/// What a host decides.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Where clones go.
    pub workspaces: PathBuf,
    /// Where declared roots and remotes are remembered.
    pub state_file: PathBuf,
    /// Rules of the gate.
    pub rules: Rules,
    /// Folders that are always roots.
    pub roots: Vec<PathBuf>,
    /// Runs at work at once, over all sessions.
    pub max_runs: u32,
    /// How long [`Engine::close`] lets running work go on before it interrupts it.
    pub drain: Duration,
    /// Where rules that are granted for good are kept; in memory alone when `None`.
    pub granted_file: Option<PathBuf>,
    /// How long an approval waits.
    pub approval_timeout: Duration,
    /// How turns are taken.
    pub turns: TurnSettings,
    /// Bounds on asking models.
    pub models: ModelLimits,
    /// Notices that wait for a slow listener, which misses older ones.
    pub notices: usize,
}

impl Default for EngineOptions {
    /// In the current folder, with the rules and limits of a fresh installation; granted rules in memory alone.
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
            notices: NOTICES,
        }
    }
}

/// What of the options can change while the engine works.
#[derive(Debug, Clone)]
pub struct RuntimeSettings {
    /// Rules of the gate.
    pub rules: Rules,
    /// Runs at work at once.
    pub max_runs: u32,
    /// How long new approvals wait.
    pub approval_timeout: Duration,
    /// How turns are taken.
    pub turns: TurnSettings,
    /// Bounds on asking models.
    pub models: ModelLimits,
}

/// The rooms an engine is made of; the host opens them.
pub struct EngineDeps {
    /// The log.
    pub trace: Trace,
    /// The declared roots.
    pub roots: Arc<Roots>,
    /// The indexes.
    pub indexes: Arc<Indexes>,
    /// Their progress.
    pub progress: crossbeam_channel::Receiver<IndexProgress>,
    /// The tools, less the engine's own.
    pub registry: Registry,
    /// Where processes run.
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
    /// Held while a starting method looks up its retry key and stores its receipt.
    pub(crate) retries: KeyedLocks,
    pub(crate) commands: Arc<Semaphore>,
    pub(crate) tasks: TaskTracker,
    pub(crate) shutdown: CancellationToken,
    pub(crate) notices: broadcast::Sender<Notice>,
    pub(crate) state: StateFile,
    pub(crate) workspaces: PathBuf,
    pub(crate) clone_secrets: Arc<CloneSecrets>,
    pub(crate) clone_ends: CloneEnds,
    pub(crate) stop: CancellationToken,
    /// Nothing new starts, while what runs may end.
    draining: AtomicBool,
    drain: Duration,
    pub(crate) turn_agent: OnceLock<Arc<dyn TurnAgent>>,
    turn_settings: RwLock<Arc<TurnSettings>>,
    pub(crate) root_settings: RootSettingsMap,
    pub(crate) models: ModelGate,
    model_source: RwLock<Option<Arc<dyn Models>>>,
    pub(crate) knowledge: OnceLock<Arc<Knowledge>>,
    pub(crate) skills: OnceLock<Arc<SkillList>>,
    pub(crate) plugins: Arc<Plugins>,
}

impl Engine {
    /// Opens an engine, declares the remembered roots and marks what a dead daemon left running. Indexing goes on
    /// in the background; nothing waits for it.
    ///
    /// # Errors
    /// When the log cannot be written or a tool cannot be registered. A remembered root that is gone is logged.
    pub async fn open(parts: EngineDeps, options: EngineOptions) -> Result<Self, Failure> {
        let EngineDeps { trace, roots, indexes, progress, registry, sandbox } = parts;
        let clone_secrets = index_tools::register(&registry, &roots, &indexes, &options.workspaces)?;
        registry.add(crate::undo::tool(&trace))?;
        trace.mark_interrupted().await?;
        let (shutdown, granted) = (CancellationToken::new(), GrantedRules::load(options.granted_file)?);
        let timeout = options.approval_timeout;
        let plugins = Arc::<Plugins>::default();
        let inner = Inner {
            harness: Harness::new(registry, options.rules, trace.clone(), granted, timeout, shutdown.clone())
                .with_roots(Arc::clone(&roots))
                .with_sandbox(sandbox)
                .with_hooks(Arc::clone(&plugins) as Arc<dyn Hooks>),
            trace,
            roots,
            indexes,
            explorer: OnceLock::new(),
            sessions: Sessions::default(),
            permits: RunPermits::new(options.max_runs),
            retries: KeyedLocks::default(),
            commands: Arc::new(Semaphore::new(MAX_COMMANDS)),
            tasks: TaskTracker::new(),
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
            plugins,
        };
        let engine = Self { inner: Arc::new(inner) };
        engine.inner.harness.registry().add(crate::llm_tool::tool(&engine.inner))?;
        engine.forward_progress(progress)?;
        engine.declare_remembered(&options.roots).await;
        Ok(engine)
    }

    /// Registers the agent that explores. Later calls change nothing.
    pub fn set_explorer(&self, agent: Arc<dyn Agent>) {
        if self.inner.explorer.set(agent).is_err() {
            tracing::warn!("an explorer is registered already");
        }
    }

    /// Registers the agent that takes turns. Later calls change nothing.
    pub fn set_turn_agent(&self, agent: Arc<dyn TurnAgent>) {
        if self.inner.turn_agent.set(agent).is_err() {
            tracing::warn!("an agent is registered already");
        }
    }

    /// Sets where models come from, for the turns that begin.
    pub fn set_models(&self, models: Arc<dyn Models>) {
        *self.inner.model_source.write().unwrap_or_else(PoisonError::into_inner) = Some(models);
    }

    /// Where models come from.
    ///
    /// # Errors
    /// `not_supported` when the host set nothing.
    pub(crate) fn model_source(&self) -> Result<Arc<dyn Models>, Failure> {
        let source = self.inner.model_source.read().unwrap_or_else(PoisonError::into_inner).clone();
        source.ok_or_else(|| Failure::new(Reason::NotSupported, "no model providers are set up"))
    }

    /// How turns that begin in `root` are taken.
    pub(crate) fn turn_settings(&self, root: Option<&Root>) -> Arc<TurnSettings> {
        if let Some(own) = self.inner.root_settings.of(root) {
            return Arc::new(own.turns.clone());
        }
        Arc::clone(&self.inner.turn_settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends politely. Nothing new starts; running work has the drain's time to end, then it is interrupted, with an end record
    /// for what it ran. Turns that wait stay in the log, for the next start. Bounded to the drain and about four seconds.
    pub async fn close(&self) {
        self.inner.draining.store(true, Ordering::SeqCst);
        self.shut_sessions().await;
        if tokio::time::timeout(self.inner.drain, self.drained()).await.is_err() {
            tracing::info!(running = self.running(), "what still runs is interrupted");
        }
        self.inner.shutdown.cancel();
        self.interrupt_sessions().await;
        self.inner.tasks.close();
        if tokio::time::timeout(CLOSE_WAIT, self.inner.tasks.wait()).await.is_err() {
            tracing::warn!("runs did not end in time; the next start marks them interrupted");
        }
        let indexes = Arc::clone(&self.inner.indexes);
        // A thread of its own: the runtime waits for its blocking threads without a bound.
        let (done, closed) = tokio::sync::oneshot::channel();
        let close = move || {
            indexes.close();
            let _gone = done.send(());
        };
        let thread = std::thread::Builder::new().name("close-indexes".into()).spawn(close);
        match (thread, tokio::time::timeout(INDEX_CLOSE_WAIT, closed).await) {
            (Ok(_), Ok(Ok(()))) => {}
            (Ok(_), Err(_)) => tracing::warn!("indexes did not close in time"),
            _ => tracing::error!("indexes failed while closing"),
        }
    }

    /// Ends when nothing runs any more but what waits for people, who will not answer a daemon that stops.
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

    /// True if the engine is closing.
    pub(crate) fn is_draining(&self) -> bool {
        self.inner.draining.load(Ordering::SeqCst)
    }

    /// The tools there are.
    pub fn tools(&self) -> Vec<ToolInfo> {
        self.inner.harness.registry().list()
    }

    /// The tools, for a host whose own come and go.
    pub fn registry(&self) -> &cairn_harness::Registry {
        self.inner.harness.registry()
    }

    /// Adds a tool for the calls that come.
    ///
    /// # Errors
    /// When its name is taken or its schema is none.
    pub fn add_tool(&self, tool: Arc<dyn cairn_harness::Tool>) -> Result<(), Failure> {
        self.inner.harness.registry().add(tool)
    }

    /// The log.
    pub fn trace(&self) -> &Trace {
        &self.inner.trace
    }

    /// Live news that is not in the log.
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.inner.notices.subscribe()
    }

    /// State of one index or all.
    ///
    /// # Errors
    /// `root_not_found`.
    pub fn index_status(&self, root: Option<&str>) -> Result<IndexStatus, Failure> {
        let id = root.map(|r| self.inner.roots.find(r)).transpose()?.map(|r| r.id.clone());
        Ok(IndexStatus { roots: self.inner.indexes.status(id.as_ref())? })
    }

    /// Figures of the engine; the host adds its own.
    ///
    /// # Errors
    /// When the log cannot be read.
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

    /// Whether nothing runs and nothing is being indexed: a daemon on demand may leave.
    pub fn is_idle(&self) -> bool {
        let busy = |r: &cairn_protocol::index::RootStatus| !r.complete && r.error.is_none();
        self.running() == 0 && !self.inner.indexes.status(None).is_ok_and(|all| all.iter().any(busy))
    }

    /// Runs at work.
    pub fn running(&self) -> u64 {
        u64::from(self.inner.permits.used())
    }

    /// Asks the host to stop: see [`Engine::stop_asked`].
    pub fn ask_to_stop(&self) {
        self.inner.stop.cancel();
    }

    /// Cancelled when a client asked the daemon to stop. The host then calls [`Engine::close`].
    pub fn stop_asked(&self) -> &CancellationToken {
        &self.inner.stop
    }

    /// The root a session works in.
    pub(crate) fn root_of(&self, root: Option<&str>) -> Result<Option<Root>, Failure> {
        Ok(root.map(|r| self.inner.roots.find(r)).transpose()?)
    }

    /// Refuses new work while closing.
    pub(crate) fn need_open(&self) -> Result<(), Failure> {
        if self.is_draining() {
            return Err(Failure::new(Reason::ShuttingDown, "the daemon is stopping"));
        }
        Ok(())
    }

    /// Refuses a run while as many are active as may be, before something is made for it. What counts is the permit that it
    /// takes later.
    pub(crate) fn check_capacity(&self) -> Result<(), Failure> {
        let permits = &self.inner.permits;
        if permits.used() < permits.limit() {
            return Ok(());
        }
        let text = format!("{} runs are active, which is resources.maxRuns", permits.limit());
        Err(Failure::new(Reason::Overloaded, text))
    }

    /// Takes other rules and limits at once; what is at work goes on as it began.
    pub fn reconfigure(&self, live: RuntimeSettings) {
        self.inner.harness.set_rules(live.rules);
        self.inner.harness.approvals().set_timeout(live.approval_timeout);
        self.inner.permits.resize(live.max_runs);
        *self.inner.turn_settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(live.turns);
        self.inner.models.set(live.models);
        self.refresh_roots();
    }

    /// A session's record of failing work that nobody waits for.
    pub(crate) fn log_lost(session: &SessionId, cause: &Failure) {
        tracing::error!(%session, %cause, "a record could not be written");
    }
}
