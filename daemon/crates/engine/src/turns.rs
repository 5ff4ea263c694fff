//! Turns: what is asked, driving, the conversation, the end. Which turn runs when is decided in `session`.

mod act;
pub(crate) mod changes;
mod compact;
mod context;
mod drive;
mod history;
mod model_request;
mod replay_source;
mod start;
mod streamed;
mod tool_output;

use std::sync::{Arc, Mutex, atomic::AtomicBool};

use cairn_harness::WaitClock;
use cairn_protocol::{error::Failure, event::AgentEvt, id::RunId, turn::RunStartParams};
use tokio_util::sync::CancellationToken;

use crate::context::error_event;
pub use compact::Compaction;
pub use context::{TurnContext, TurnSettings};
pub use history::Conversation;
pub use model_request::{Answer, Ask};
pub(crate) use replay_source::{Remaining as ReplayParts, ReplaySource};

/// The run's own operation.
pub const OP: &str = "turn";

/// An agent that takes turns. It acts by the context alone and looks at [`TurnContext::cancel`].
#[async_trait::async_trait]
pub trait TurnAgent: Send + Sync {
    /// Takes a turn; the answer is the model's last text.
    ///
    /// # Errors
    /// What ended the turn early.
    async fn turn(&self, cx: &TurnContext) -> Result<String, Failure>;

    /// The system text that a turn with this context would begin with.
    ///
    /// # Errors
    /// When what it is made of cannot be read.
    async fn system(&self, cx: &TurnContext) -> Result<String, Failure>;
}

/// A turn that was accepted and has no end yet.
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
    /// What clients said meanwhile, with the number of its record.
    pub steering: Arc<Mutex<Vec<(u64, String)>>>,
    /// The time that people took.
    pub clock: Arc<WaitClock>,
}

/// The event that precedes `run_completed` of a turn that failed. Its `op` is not the run's own, which ends with
/// `run_completed` alone.
pub(crate) fn error(failure: &Failure) -> AgentEvt {
    error_event("agent", failure)
}
