//! The runs at work, and what makes one.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64},
    },
};

use cairn_protocol::{
    error::Failure,
    explore::ExploreSummary,
    id::{RunId, SessionId},
};
use tokio_util::sync::CancellationToken;

use crate::RunContext;

/// An agent that explores. It acts by [`RunContext::call`] alone and looks at [`RunContext::cancel`].
#[async_trait::async_trait]
pub trait Agent: Send + Sync {
    /// Explores the context's root.
    ///
    /// # Errors
    /// What made it impossible to converge; failed operations alone do not.
    async fn explore(&self, cx: &RunContext, goals: &[String]) -> Result<ExploreSummary, Failure>;
}

/// A run at work.
#[derive(Debug, Clone)]
pub struct RunHandle {
    /// The run.
    pub run: RunId,
    /// Ends it.
    pub cancel: CancellationToken,
    /// Whether a client asked for the end.
    pub aborted: Arc<AtomicBool>,
    /// Operations that ended.
    pub done: Arc<AtomicU64>,
    /// Operations that wait.
    pub pending: Arc<AtomicU64>,
}

/// Runs by session; a session has one at most.
#[derive(Debug, Default)]
pub struct Runs(Mutex<HashMap<SessionId, RunHandle>>);

impl Runs {
    fn map(&self) -> MutexGuard<'_, HashMap<SessionId, RunHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a run.
    pub fn add(&self, session: &SessionId, handle: RunHandle) {
        self.map().insert(session.clone(), handle);
    }

    /// Forgets a run.
    pub fn remove(&self, session: &SessionId) {
        self.map().remove(session);
    }

    /// The run of a session.
    pub fn get(&self, session: &SessionId) -> Option<RunHandle> {
        self.map().get(session).cloned()
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.map().len() as u64
    }
}
