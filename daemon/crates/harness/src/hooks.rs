//! What is told of tool calls, and may refuse them.

use cairn_protocol::plugin::HookEvent;

/// Told before and after each call that the rules do not refuse. Whatever fails in it is its own affair: it bounds its time and
/// catches its panics.
#[async_trait::async_trait]
pub trait Hooks: Send + Sync {
    /// Whether anybody listens; when nobody does, no event is made.
    fn listens(&self) -> bool;

    /// Tells of an event; the answer is why it is refused, for those that can be.
    async fn tell(&self, event: HookEvent) -> Option<String>;
}
