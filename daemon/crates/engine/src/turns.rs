//! Turns: taking, queueing, driving, ending.

mod act;
mod ask;
pub(crate) mod changes;
mod compact;
mod context;
mod drive;
mod feed;
mod history;
mod shown;
mod start;
mod streamed;

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use cairn_protocol::{
    error::Failure,
    id::{RunId, SessionId},
    turn::RunStartParams,
};
use tokio_util::sync::CancellationToken;

pub use ask::{Answer, Ask};
pub use compact::Compaction;
pub use context::{TurnContext, TurnSettings};
pub(crate) use feed::{Feed, Parts as FeedParts};
pub use history::Conversation;

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

/// A turn that was taken.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    pub run: RunId,
    pub params: RunStartParams,
    pub client: Option<String>,
    pub resumed: bool,
}

/// A turn at work.
#[derive(Debug, Clone)]
pub(crate) struct TurnHandle {
    pub run: RunId,
    pub turn_id: String,
    pub cancel: CancellationToken,
    pub aborted: Arc<AtomicBool>,
    /// What clients said meanwhile, with the number of its record.
    pub steering: Arc<Mutex<Vec<(u64, String)>>>,
}

/// Turns of one session. It is there as long as one is at work, or about to be.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub current: Option<TurnHandle>,
    pub waiting: VecDeque<Taken>,
}

/// Turns by session.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    lines: Mutex<HashMap<SessionId, Line>>,
    at_work: AtomicU64,
}

impl Turns {
    pub fn lines(&self) -> MutexGuard<'_, HashMap<SessionId, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Turns at work.
    pub fn count(&self) -> u64 {
        self.at_work.load(Ordering::SeqCst)
    }

    /// Notes that a turn is at work.
    pub fn begin(&self, session: &SessionId, handle: TurnHandle) {
        self.at_work.fetch_add(1, Ordering::SeqCst);
        self.lines().entry(session.clone()).or_default().current = Some(handle);
    }

    /// The turn at work can no longer be stopped or told anything; the next one has not begun.
    pub fn close(&self, session: &SessionId) {
        if let Some(line) = self.lines().get_mut(session) {
            line.current = None;
        }
    }

    /// Notes its end; the answer is the turn that waits next, which the caller begins.
    pub fn end(&self, session: &SessionId) -> Option<Taken> {
        self.at_work.fetch_sub(1, Ordering::SeqCst);
        let mut lines = self.lines();
        let line = lines.get_mut(session)?;
        line.current = None;
        let next = line.waiting.pop_front();
        if next.is_none() {
            lines.remove(session);
        }
        next
    }

    /// The turn at work in a session.
    pub fn current(&self, session: &SessionId) -> Option<TurnHandle> {
        self.lines().get(session)?.current.clone()
    }

    /// Turns that wait in a session.
    pub fn waiting(&self, session: &SessionId) -> u64 {
        self.lines().get(session).map_or(0, |line| line.waiting.len() as u64)
    }
}
