//! Locks that outlive a panic of their holder, the flag that cancels a query, and threads that queries share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use cairn_protocol::error::{Failure, Reason};

/// Locks `mutex`; a value left by a panicked holder is used as it is.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Cancels a query from another thread. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets it: the query ends at its next check, within some milliseconds.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails when it is set.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn check(&self) -> Result<(), Failure> {
        if self.is_cancelled() { Err(Failure::new(Reason::Cancelled, "cancelled")) } else { Ok(()) }
    }
}

/// How often a query that waits looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(10);

/// A number of threads that queries share, in the order they come.
#[derive(Debug)]
pub struct Shared {
    line: Mutex<Line>,
    freed: Condvar,
}

#[derive(Debug)]
struct Line {
    free: usize,
    /// The number of the next to come, and those that wait.
    next: u64,
    waiting: VecDeque<u64>,
}

/// Threads that one query has; given back when dropped.
#[derive(Debug)]
pub struct Taken<'a> {
    shared: &'a Shared,
    /// How many, at least one.
    pub count: usize,
}

impl Shared {
    /// So many, at least one.
    pub fn new(count: usize) -> Self {
        let line = Line { free: count.max(1), next: 0, waiting: VecDeque::new() };
        Self { line: Mutex::new(line), freed: Condvar::new() }
    }

    /// Waits until all who came earlier have theirs and one is free, then takes that and what else is, up to `most`.
    ///
    /// # Errors
    /// `cancelled`, while waiting.
    pub fn take(&self, most: usize, cancel: &CancelFlag) -> Result<Taken<'_>, Failure> {
        let mut line = lock(&self.line);
        let own = line.next;
        line.next += 1;
        line.waiting.push_back(own);
        while line.free == 0 || line.waiting.front() != Some(&own) {
            if let Err(cancelled) = cancel.check() {
                line.waiting.retain(|n| *n != own);
                drop(line);
                self.freed.notify_all();
                return Err(cancelled);
            }
            line = self.freed.wait_timeout(line, LOOK).unwrap_or_else(|e| e.into_inner()).0;
        }
        line.waiting.pop_front();
        let count = line.free.min(most.max(1));
        line.free -= count;
        drop(line);
        // Whoever is next may find one as well.
        self.freed.notify_all();
        Ok(Taken { shared: self, count })
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        lock(&self.shared.line).free += self.count;
        self.shared.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn no_more_are_taken_than_there_are() {
        let (shared, none) = (Shared::new(3), CancelFlag::new());
        let (at_once, turns) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let taken = shared.take(2, &none).unwrap();
                        let with_mine = at_once.fetch_add(taken.count, Ordering::SeqCst) + taken.count;
                        assert!((1..=2).contains(&taken.count) && with_mine <= 3);
                        turns.fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        at_once.fetch_sub(taken.count, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!((turns.into_inner(), shared.take(9, &none).unwrap().count), (400, 3));
    }

    #[test]
    fn who_is_cancelled_leaves_the_line() {
        let (shared, none, flag) = (Shared::new(1), CancelFlag::new(), CancelFlag::new());
        let held = shared.take(1, &none).unwrap();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| shared.take(1, &flag).is_err());
            while lock(&shared.line).waiting.is_empty() {
                std::thread::yield_now();
            }
            let second = scope.spawn(|| shared.take(1, &none).map(|t| t.count).unwrap());
            flag.cancel();
            assert!(first.join().unwrap());
            drop(held);
            assert_eq!(second.join().unwrap(), 1);
        });
    }
}
