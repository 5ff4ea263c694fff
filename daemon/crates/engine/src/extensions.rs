//! Extensions that a host adds to the engine besides agents, models and tools: a knowledge store,
//! skills, plugins.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use cairn_harness::{Hooks as _, Rule};
use cairn_protocol::{
    error::{Failure, Reason},
    memory::MemoryOp,
    plugin::HookEvent,
    session::Session,
    skill::SkillInfo,
};

use crate::{Engine, plugin::Plugin};

/// Handler of the knowledge store. It may block.
pub type Knowledge = dyn Fn(MemoryOp) -> Result<serde_json::Value, Failure> + Send + Sync;
/// Source of the available skills: those of the user, and those of a project in a trusted folder.
pub type SkillList = dyn Fn(Option<&Path>) -> Vec<SkillInfo> + Send + Sync;
/// Returns true if the user trusts the texts in a folder, given by its absolute path.
pub type Trust = dyn Fn(&Path) -> bool + Send + Sync;

impl Engine {
    /// Sets the handler of the knowledge store. Later calls have no effect.
    pub fn set_knowledge(&self, knowledge: Arc<Knowledge>) {
        if self.inner.knowledge.set(knowledge).is_err() {
            tracing::warn!("a knowledge store is already registered");
        }
    }

    /// Queries or changes the knowledge store, for users and programs. Models use its tools, which
    /// pass the gate.
    ///
    /// # Errors
    /// `invalid_params` when there is no store; errors of the store.
    pub async fn knowledge(&self, op: MemoryOp) -> Result<serde_json::Value, Failure> {
        let none = || Failure::new(Reason::InvalidParams, "this host has no knowledge store");
        let store = Arc::clone(self.inner.knowledge.get().ok_or_else(none)?);
        tokio::task::spawn_blocking(move || store(op)).await.unwrap_or_else(|e| {
            Err(Failure::new(Reason::Internal, format!("the knowledge store failed: {e}")))
        })
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

    /// Sets the judge of folders. Later calls have no effect.
    pub fn set_trust(&self, trust: Arc<Trust>) {
        if self.inner.trust.set(trust).is_err() {
            tracing::warn!("the trust in folders is already set");
        }
    }

    /// Returns true if the user trusts a folder: its instructions and skills are then given to
    /// models. No folder is trusted in a host that did not set a judge.
    pub fn is_trusted(&self, folder: &Path) -> bool {
        self.inner.trust.get().is_some_and(|trust| trust(folder))
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

    /// Notifies plugins of an event; returns the reason if one refuses it.
    pub(crate) async fn notify_plugins(&self, event: impl FnOnce() -> HookEvent) -> Option<String> {
        let plugins = &self.inner.plugins;
        if plugins.listens() { plugins.dispatch(event()).await } else { None }
    }

    /// Notifies plugins that a session starts or resumes.
    pub(crate) async fn notify_session_start(&self, session: &Session) {
        let (session_id, root) = (session.session_id.clone(), session.root.clone());
        self.notify_plugins(|| HookEvent::SessionStart { session_id, root }).await;
    }
}
