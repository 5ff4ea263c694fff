//! Turns: their requests, the loop that drives them, the conversation, the final records. The order
//! of turns is decided in `session`.

mod act;
pub(crate) mod background;
pub(crate) mod changes;
mod compact;
mod context;
mod drive;
mod history;
mod hooks;
mod model_request;
mod replay_source;
mod selection;
mod start;
mod streamed;
mod tier;
mod tool_output;
mod trust;

use std::sync::{Arc, Mutex, atomic::AtomicBool};

use cairn_harness::WaitClock;
use cairn_protocol::{error::Failure, event::AgentEvt, id::RunId, turn::RunStartParams};
use tokio_util::sync::CancellationToken;

use crate::context::error_event;
pub use compact::Compaction;
pub(crate) use context::check_overrides;
pub use context::{DomainAccess, TurnContext, TurnSettings};
pub use history::Conversation;
pub use model_request::{Answer, Ask};
pub(crate) use replay_source::{Remaining as ReplayParts, ReplaySource};
pub use tier::PromptTier;

/// The run's own operation.
pub const OP: &str = "turn";

/// An agent that runs turns. It acts by the context alone and observes [`TurnContext::cancel`].
#[async_trait::async_trait]
pub trait TurnAgent: Send + Sync {
    /// Runs a turn; returns the model's last text.
    ///
    /// # Errors
    /// The cause that ended the turn early.
    async fn turn(&self, cx: &TurnContext) -> Result<String, Failure>;

    /// Returns the system text that a turn with this context would start with.
    ///
    /// # Errors
    /// A source of the text that cannot be read.
    async fn system(&self, cx: &TurnContext) -> Result<String, Failure>;
}

/// A turn that was accepted and has no terminal record yet.
#[derive(Debug, Clone)]
pub(crate) struct QueuedTurn {
    pub run: RunId,
    pub params: RunStartParams,
    pub client: Option<String>,
    pub resumed: bool,
}

/// An active turn, as clients reach it.
#[derive(Debug, Clone)]
pub(crate) struct TurnHandle {
    pub run: RunId,
    pub turn_id: String,
    pub cancel: CancellationToken,
    pub aborted: Arc<AtomicBool>,
    /// Steering texts of clients, each with the number of its record.
    pub steering: Arc<Mutex<Vec<(u64, String)>>>,
    /// Time spent waiting for approvers.
    pub clock: Arc<WaitClock>,
}

/// Returns the event that precedes `run_completed` of a failed turn. Its `op` is not the run's own,
/// whose only final event is `run_completed`.
pub(crate) fn error(failure: &Failure) -> AgentEvt {
    error_event("agent", failure)
}
