//! Permits to run: as many as `resources.maxRuns`. A run owns its permit, so that none is lost or
//! counted twice.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A semaphore whose size may change while permits are in use. Unlike `tokio::sync::Semaphore` it
/// can shrink below that number; then nothing starts until enough permits are returned.
#[derive(Debug, Clone)]
pub(crate) struct RunPermits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    counts: Mutex<Counts>,
    returned: Notify,
}

#[derive(Debug)]
struct Counts {
    limit: u32,
    used: u32,
}

/// The permission to run, until it is dropped.
#[derive(Debug)]
pub(crate) struct RunPermit(Arc<Shared>);

impl Shared {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        self.0.counts().used -= 1;
        self.0.returned.notify_waiters();
    }
}

impl RunPermits {
    pub fn new(limit: u32) -> Self {
        Self(Arc::new(Shared {
            counts: Mutex::new(Counts { limit, used: 0 }),
            returned: Notify::new(),
        }))
    }

    pub fn try_acquire(&self) -> Option<RunPermit> {
        let mut counts = self.0.counts();
        if counts.used >= counts.limit {
            return None;
        }
        counts.used += 1;
        Some(RunPermit(Arc::clone(&self.0)))
    }

    pub fn resize(&self, limit: u32) {
        self.0.counts().limit = limit;
    }

    pub fn limit(&self) -> u32 {
        self.0.counts().limit
    }

    pub fn used(&self) -> u32 {
        self.0.counts().used
    }

    /// Waits until every permit is returned.
    pub async fn all_returned(&self) {
        loop {
            let returned = self.0.returned.notified();
            tokio::pin!(returned);
            // Registered before the count is read, so that a permit returned in between is noticed.
            returned.as_mut().enable();
            if self.used() == 0 {
                return;
            }
            returned.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn permits_are_bounded_and_released() {
        let permits = RunPermits::new(2);
        let first = permits.try_acquire().unwrap();
        let second = permits.try_acquire().unwrap();
        assert!(permits.try_acquire().is_none());
        permits.resize(1);
        drop(first);
        assert!(permits.try_acquire().is_none(), "one is still in use, and one is allowed");
        drop(second);
        permits.all_returned().await;
        assert!(permits.try_acquire().is_some());
        assert_eq!((permits.used(), permits.limit()), (0, 1));
    }
}
