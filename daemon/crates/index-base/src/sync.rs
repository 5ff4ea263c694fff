//! Locking that ignores poisoning, and the cancellation flag of queries.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use cairn_protocol::error::{Failure, Reason};

/// Locks `mutex` and ignores poisoning.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Sets a flag when dropped: a blocking search whose future is gone returns early.
#[derive(Debug)]
pub struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Cancels a query from another thread. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a guard that sets the flag when it is dropped, which happens when a call is
    /// cancelled or timed out.
    #[must_use = "dropping the guard cancels"]
    pub fn cancel_on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }

    /// Sets the flag: the query ends at its next check, within some milliseconds.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails if the flag is set.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn check(&self) -> Result<(), Failure> {
        if self.is_cancelled() { Err(Failure::new(Reason::Cancelled, "cancelled")) } else { Ok(()) }
    }
}
