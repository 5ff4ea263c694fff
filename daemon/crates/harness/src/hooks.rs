//! Hooks that are notified of tool calls, and may refuse them.

use cairn_protocol::plugin::HookEvent;
use serde_json::Value;

/// The answers of all hooks to one event.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookVerdict {
    /// Reason for refusing the operation.
    pub refuse: Option<String>,
    /// Reason for requesting an approval.
    pub ask: Option<String>,
    /// True if a hook of the user allows a call that is asked about by default.
    pub allow: bool,
    /// Arguments in place of those of the call, which the rules have not judged.
    pub arguments: Option<Value>,
    /// Texts for the model.
    pub context: Vec<String>,
    /// Texts for the user.
    pub notices: Vec<String>,
    /// Reason for ending the turn.
    pub stop: Option<String>,
}

/// Receives an event before and after each call that the rules do not deny. An implementation
/// handles its own failures: it bounds its time and catches its panics.
#[async_trait::async_trait]
pub trait Hooks: Send + Sync {
    /// Returns true if a hook is registered; otherwise no event is created.
    fn listens(&self) -> bool;

    /// Delivers an event; returns the answers, which have an effect where the event allows it.
    async fn dispatch(&self, event: HookEvent) -> HookVerdict;
}
