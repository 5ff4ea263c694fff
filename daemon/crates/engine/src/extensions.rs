//! What a host adds to the engine besides agents, models and tools: a knowledge store, skills, plugins.

use std::{collections::BTreeMap, sync::Arc};

use cairn_harness::{Hooks as _, Rule};
use cairn_protocol::{
    error::{Failure, Reason},
    memory::MemoryOp,
    plugin::HookEvent,
    session::Session,
    skill::SkillInfo,
};

use crate::{Engine, plugin::Plugin};

/// What answers for the knowledge store. It may block.
pub type Knowledge = dyn Fn(MemoryOp) -> Result<serde_json::Value, Failure> + Send + Sync;
/// The skills there are.
pub type SkillList = dyn Fn() -> Vec<SkillInfo> + Send + Sync;

impl Engine {
    /// Sets what answers for the knowledge store. Later calls change nothing.
    pub fn set_knowledge(&self, knowledge: Arc<Knowledge>) {
        if self.inner.knowledge.set(knowledge).is_err() {
            tracing::warn!("a knowledge store is registered already");
        }
    }

    /// Asks the knowledge store, or changes it: for people and programs. Models use its tools, which pass the gate.
    ///
    /// # Errors
    /// `invalid_params` when there is no store; the store's own.
    pub async fn knowledge(&self, op: MemoryOp) -> Result<serde_json::Value, Failure> {
        let none = || Failure::new(Reason::InvalidParams, "this host keeps no knowledge store");
        let store = Arc::clone(self.inner.knowledge.get().ok_or_else(none)?);
        tokio::task::spawn_blocking(move || store(op)).await.unwrap_or_else(|e| {
            Err(Failure::new(Reason::Internal, format!("the knowledge store failed: {e}")))
        })
    }

    /// Sets what tells the skills there are. Later calls change nothing.
    pub fn set_skills(&self, skills: Arc<SkillList>) {
        if self.inner.skills.set(skills).is_err() {
            tracing::warn!("skills are registered already");
        }
    }

    /// The skills there are; none in a host that has none.
    pub fn skills(&self) -> Vec<SkillInfo> {
        self.inner.skills.get().map(|skills| skills()).unwrap_or_default()
    }

    /// Takes the rules of skills, which only tighten, and the user's switches for tools, in the place of those before.
    pub fn set_access(&self, deny: Vec<Rule>, confirm: Vec<Rule>, switches: BTreeMap<String, bool>) {
        self.inner.harness.tighten(deny, confirm);
        self.inner.harness.registry().switch(switches);
    }

    /// Sets the plugins, in their order.
    pub fn set_plugins(&self, plugins: Vec<Arc<dyn Plugin>>) {
        self.inner.plugins.set(plugins);
    }

    /// Tells plugins of an event; the answer is why it is refused.
    pub(crate) async fn tell(&self, event: impl FnOnce() -> HookEvent) -> Option<String> {
        let plugins = &self.inner.plugins;
        if plugins.listens() { plugins.tell(event()).await } else { None }
    }

    /// Tells plugins that a session begins or goes on.
    pub(crate) async fn tell_start(&self, session: &Session) {
        let (session_id, root) = (session.session_id.clone(), session.root.clone());
        self.tell(|| HookEvent::SessionStart { session_id, root }).await;
    }
}
