//! The interface of exploring agents.

use std::sync::{Arc, atomic::AtomicU64};

use cairn_protocol::{error::Failure, explore::ExploreSummary, id::RunId};

use crate::RunContext;

/// An agent that explores. It acts by [`RunContext::call`] alone and observes
/// [`RunContext::cancel`].
#[async_trait::async_trait]
pub trait Agent: Send + Sync {
    /// Explores the context's root.
    ///
    /// # Errors
    /// The cause that prevented convergence; failed operations alone do not.
    async fn explore(&self, cx: &RunContext, goals: &[String]) -> Result<ExploreSummary, Failure>;
}

/// An active explore, as clients see it.
#[derive(Debug, Clone)]
pub(crate) struct RunHandle {
    pub run: RunId,
    /// Number of finished operations.
    pub done: Arc<AtomicU64>,
    /// Number of pending operations.
    pub pending: Arc<AtomicU64>,
}

impl RunHandle {
    /// Creates a handle; `None` for a single command, which is no run.
    pub fn of(cx: &RunContext) -> Option<Self> {
        let (done, pending) = (Arc::clone(&cx.inner.done), Arc::clone(&cx.inner.pending));
        Some(Self { run: cx.core().run.clone()?, done, pending })
    }
}
