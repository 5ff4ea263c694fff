//! Extensions that a host adds to the engine besides agents, models and tools: a knowledge store,
//! skills, plugins.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use cairn_harness::{HookProcess, HookVerdict, Hooks as _, Rule, sandbox::ProcessOutput};
use cairn_protocol::{
    envelope::Body,
    error::{Failure, Reason},
    event::AgentEvt,
    id::SessionId,
    memory::MemoryOp,
    plugin::{HookEvent, PluginInfo},
    session::{
        Session, SessionMcpServer, SessionMcpServers, SessionMcpStatus, SetMcpServersParams,
    },
    skill::SkillInfo,
    trust::{FolderTrust, TrustGetParams, TrustRemoveParams, TrustRemoved, TrustSetParams},
};
use cairn_trace::{Append, NewRecord};
use cairn_workspace::NamedPrograms;

use crate::{Engine, plugin::Plugin, roots::blocking};

/// Handler of the knowledge store. It may block.
/// It receives the folder of the project, or `None` for the general entries.
pub type Knowledge =
    dyn Fn(Option<&Path>, MemoryOp) -> Result<serde_json::Value, Failure> + Send + Sync;
/// Source of the available skills: those of the user, and those of a project in a trusted folder.
pub type SkillList = dyn Fn(Option<&Path>) -> Vec<SkillInfo> + Send + Sync;
/// The user's trust in folders and in what they bring. Its methods may read files.
pub trait Trust: Send + Sync {
    /// Returns true if a folder, by its absolute path, may instruct agents.
    fn covers(&self, folder: &Path) -> bool;

    /// Compares what a folder brings with what was trusted.
    ///
    /// # Errors
    /// `invalid_params`, `path_not_found`, `not_a_directory`, `storage_failed`.
    fn state(&self, folder: &Path, with_diff: bool) -> Result<FolderTrust, Failure>;

    /// Stores decisions about items that still have the named content.
    ///
    /// # Errors
    /// As [`Trust::state`]; `file_changed`.
    fn set(&self, params: &TrustSetParams) -> Result<FolderTrust, Failure>;

    /// Removes the trust in a folder; returns true if there was any.
    ///
    /// # Errors
    /// `storage_failed`.
    fn remove(&self, folder: &Path) -> Result<bool, Failure>;
}

/// A host that judges folders by their paths alone: contents are not compared, and nothing of a
/// folder runs by itself.
impl<F: Fn(&Path) -> bool + Send + Sync> Trust for F {
    fn covers(&self, folder: &Path) -> bool {
        self(folder)
    }

    fn state(&self, _: &Path, _: bool) -> Result<FolderTrust, Failure> {
        Err(by_path())
    }

    fn set(&self, _: &TrustSetParams) -> Result<FolderTrust, Failure> {
        Err(by_path())
    }

    fn remove(&self, _: &Path) -> Result<bool, Failure> {
        Err(by_path())
    }
}

fn by_path() -> Failure {
    Failure::new(Reason::NotSupported, "this host judges folders by their paths")
}

/// Source of agent plugins: those of the user, and those of a project in a trusted folder.
pub type PluginList = dyn Fn(Option<&Path>) -> Vec<PluginInfo> + Send + Sync;

/// Runs the MCP servers of single sessions.
#[async_trait::async_trait]
pub trait SessionServers: Send + Sync {
    /// Replaces the servers of a session, and waits a limited time for them to start.
    ///
    /// # Errors
    /// `invalid_params` for an invalid server.
    async fn set(
        &self,
        session: &Session,
        servers: Vec<SessionMcpServer>,
    ) -> Result<Vec<SessionMcpStatus>, Failure>;

    /// Ends the servers of a session.
    async fn end(&self, session: &SessionId);
}

impl Engine {
    /// Sets the handler of the knowledge store. Later calls have no effect.
    pub fn set_knowledge(&self, knowledge: Arc<Knowledge>) {
        if self.inner.knowledge.set(knowledge).is_err() {
            tracing::warn!("a knowledge store is already registered");
        }
    }

    /// Queries or changes the knowledge of a project, or the general entries, for users and programs.
    /// Models use its tools, which pass the gate.
    ///
    /// # Errors
    /// `invalid_params` when there is no store or the project is not an absolute path; errors of the
    /// store.
    pub async fn knowledge(
        &self,
        project: Option<String>,
        op: MemoryOp,
    ) -> Result<serde_json::Value, Failure> {
        let none = || Failure::new(Reason::InvalidParams, "this host has no knowledge store");
        let store = Arc::clone(self.inner.knowledge.get().ok_or_else(none)?);
        let project = project.map(PathBuf::from);
        if project.as_ref().is_some_and(|folder| !folder.is_absolute()) {
            return Err(Failure::new(
                Reason::InvalidParams,
                "the project must be an absolute path",
            ));
        }
        tokio::task::spawn_blocking(move || store(project.as_deref(), op)).await.unwrap_or_else(
            |e| Err(Failure::new(Reason::Internal, format!("the knowledge store failed: {e}"))),
        )
    }

    /// Sets the source of the available skills. Later calls have no effect.
    pub fn set_skills(&self, skills: Arc<SkillList>) {
        if self.inner.skills.set(skills).is_err() {
            tracing::warn!("skills are already registered");
        }
    }

    /// Returns the available skills, with those of the project in `root` if that is a trusted
    /// folder; empty in a host without skills.
    pub fn skills(&self, root: Option<&Path>) -> Vec<SkillInfo> {
        let root = root.filter(|root| self.is_trusted(root));
        self.inner.skills.get().map(|skills| skills(root)).unwrap_or_default()
    }

    /// Sets the source of programs that the host's configuration names below roots: no tool changes
    /// them.
    pub fn set_named_programs(&self, programs: Arc<dyn NamedPrograms>) {
        self.inner.roots.set_programs(programs);
    }

    /// Sets the judge of folders. Later calls have no effect.
    pub fn set_trust(&self, trust: Arc<dyn Trust>) {
        if self.inner.trust.set(trust).is_err() {
            tracing::warn!("the trust in folders is already set");
        }
    }

    /// Returns true if the user trusts a folder: its instructions and skills are then given to
    /// models. No folder is trusted in a host that did not set a judge.
    pub fn is_trusted(&self, folder: &Path) -> bool {
        self.inner.trust.get().is_some_and(|trust| trust.covers(folder))
    }

    /// Compares what a folder brings with what the user trusted.
    ///
    /// # Errors
    /// `not_supported` in a host without trust; errors of the store.
    pub async fn folder_trust(&self, params: TrustGetParams) -> Result<FolderTrust, Failure> {
        let trust = self.required_trust()?;
        let work = move || trust.state(Path::new(&params.folder), params.diff);
        blocking(work).await
    }

    /// Stores decisions about items of a folder that still have the named contents.
    ///
    /// # Errors
    /// As [`Engine::folder_trust`]; `file_changed`.
    pub async fn set_folder_trust(&self, params: TrustSetParams) -> Result<FolderTrust, Failure> {
        let trust = self.required_trust()?;
        let engine = self.clone();
        blocking(move || {
            let state = trust.set(&params)?;
            engine.refresh_roots();
            Ok(state)
        })
        .await
    }

    /// Removes the trust in a folder.
    ///
    /// # Errors
    /// As [`Engine::folder_trust`].
    pub async fn remove_folder_trust(
        &self,
        params: TrustRemoveParams,
    ) -> Result<TrustRemoved, Failure> {
        let trust = self.required_trust()?;
        let engine = self.clone();
        blocking(move || {
            let removed = trust.remove(Path::new(&params.folder))?;
            engine.refresh_roots();
            Ok(TrustRemoved { removed })
        })
        .await
    }

    fn required_trust(&self) -> Result<Arc<dyn Trust>, Failure> {
        let none = || Failure::new(Reason::NotSupported, "this host trusts no folder");
        self.inner.trust.get().cloned().ok_or_else(none)
    }

    /// Runs the program of a hook in the sandbox, with a folder that is a declared root.
    ///
    /// # Errors
    /// See [`cairn_harness::Harness::run_hook`].
    pub async fn run_hook(
        &self,
        session: &SessionId,
        folder: Option<&Path>,
        hook: HookProcess,
    ) -> Result<ProcessOutput, Failure> {
        let root = folder.and_then(|folder| self.root_of(folder.to_str()).ok().flatten());
        self.inner.harness.run_hook(session, root.as_ref(), hook).await
    }

    /// Records that a hook ran. A session that is deleted has no log any more.
    pub async fn record_hook(&self, session: &SessionId, evt: AgentEvt) {
        let record = NewRecord {
            id: uuid::Uuid::now_v7(),
            parent_id: None,
            origin: None,
            body: Body::Evt { evt },
        };
        let append = Append::new(session, vec![record]);
        if let Err(error) = self.inner.trace.append(append).await {
            tracing::debug!(%session, %error, "a hook has no record");
        }
    }

    /// Replaces the rules of skills, which only tighten, and the user's switches for tools.
    pub fn set_access(
        &self,
        deny: Vec<Rule>,
        confirm: Vec<Rule>,
        switches: BTreeMap<String, bool>,
    ) {
        self.inner.harness.tighten(deny, confirm);
        self.inner.harness.registry().switch(switches);
    }

    /// Sets the plugins, in their order.
    pub fn set_plugins(&self, plugins: Vec<Arc<dyn Plugin>>) {
        self.inner.plugins.set(plugins);
    }

    /// Notifies plugins of an event; returns their answers.
    pub(crate) async fn notify_plugins(&self, event: impl FnOnce() -> HookEvent) -> HookVerdict {
        let plugins = &self.inner.plugins;
        if plugins.listens() { plugins.dispatch(event()).await } else { HookVerdict::default() }
    }

    /// Sets the source of agent plugins. Later calls have no effect.
    pub fn set_plugin_list(&self, list: Arc<PluginList>) {
        if self.inner.plugin_list.set(list).is_err() {
            tracing::warn!("agent plugins are already registered");
        }
    }

    /// Returns the agent plugins, with those of the project in `root` if that is a trusted folder;
    /// empty in a host without plugins.
    pub fn agent_plugins(&self, root: Option<&Path>) -> Vec<PluginInfo> {
        let root = root.filter(|root| self.is_trusted(root));
        self.inner.plugin_list.get().map(|list| list(root)).unwrap_or_default()
    }

    /// Sets the host of MCP servers of single sessions. Later calls have no effect.
    pub fn set_session_servers(&self, servers: Arc<dyn SessionServers>) {
        if self.inner.session_servers.set(servers).is_err() {
            tracing::warn!("a host of mcp servers is already registered");
        }
    }

    /// Replaces the MCP servers of a session, and waits a limited time for them to start.
    ///
    /// # Errors
    /// `session_not_found`; `invalid_params` for an invalid server; `not_supported` in a host
    /// without MCP servers.
    pub async fn set_mcp_servers(
        &self,
        params: SetMcpServersParams,
    ) -> Result<SessionMcpServers, Failure> {
        let session = self.session(&params.session_id).await?;
        let none = || Failure::new(Reason::NotSupported, "this host runs no mcp servers");
        let host = self.inner.session_servers.get().ok_or_else(none)?;
        let servers = host.set(&session, params.servers).await?;
        Ok(SessionMcpServers { servers })
    }

    /// Ends what a session runs beside its turns.
    pub(crate) async fn end_session(&self, session: &SessionId) {
        self.inner.harness.background().end_session(session).await;
        if let Some(host) = self.inner.session_servers.get() {
            host.end(session).await;
        }
        self.notify_plugins(|| HookEvent::SessionStop { session_id: session.clone() }).await;
    }

    /// Notifies plugins that a session starts or resumes.
    pub(crate) async fn notify_session_start(&self, session: &Session) {
        let (session_id, root) = (session.session_id.clone(), session.root.clone());
        self.notify_plugins(|| HookEvent::SessionStart { session_id, root }).await;
    }
}
