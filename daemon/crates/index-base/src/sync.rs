//! Locking that ignores poisoning, and the cancellation flag of queries.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use cairn_protocol::error::{Failure, Reason};

/// Locks `mutex` and ignores poisoning.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Cancels a query from another thread. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    pub fn new() -> Self {
        Self::default()
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
