//! Hooks that are notified of tool calls, and may refuse them.

use cairn_protocol::plugin::HookEvent;

/// Receives an event before and after each call that the rules do not deny. An implementation
/// handles its own failures: it bounds its time and catches its panics.
#[async_trait::async_trait]
pub trait Hooks: Send + Sync {
    /// Returns true if a hook is registered; otherwise no event is created.
    fn listens(&self) -> bool;

    /// Delivers an event; returns the reason for a refusal, for events that can be refused.
    async fn dispatch(&self, event: HookEvent) -> Option<String>;
}
