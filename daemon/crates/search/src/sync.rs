//! A thread budget that queries share.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use cairn_index_base::{CancelFlag, lock};
use cairn_protocol::error::Failure;

/// Interval at which a waiting query checks whether it was cancelled.
const POLL: Duration = Duration::from_millis(10);

/// A number of threads that queries share, first come, first served.
#[derive(Debug)]
pub struct ThreadBudget {
    queue: Mutex<WaitQueue>,
    freed: Condvar,
}

#[derive(Debug)]
struct WaitQueue {
    free: usize,
    next_ticket: u64,
    waiting: VecDeque<u64>,
}

/// The threads of one query, released on drop.
#[derive(Debug)]
pub struct Slots<'a> {
    shared: &'a ThreadBudget,
    /// Number of threads, at least one.
    pub count: usize,
}

impl ThreadBudget {
    /// Creates a budget of `count` threads, at least one.
    pub fn new(count: usize) -> Self {
        let queue = WaitQueue { free: count.max(1), next_ticket: 0, waiting: VecDeque::new() };
        Self { queue: Mutex::new(queue), freed: Condvar::new() }
    }

    /// Waits until all earlier queries have their threads and one is free, then takes the free
    /// threads up to `limit`.
    ///
    /// # Errors
    /// `cancelled` while waiting.
    pub fn take(&self, limit: usize, cancel: &CancelFlag) -> Result<Slots<'_>, Failure> {
        let mut queue = lock(&self.queue);
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        queue.waiting.push_back(ticket);
        while queue.free == 0 || queue.waiting.front() != Some(&ticket) {
            if let Err(cancelled) = cancel.check() {
                queue.waiting.retain(|n| *n != ticket);
                drop(queue);
                self.freed.notify_all();
                return Err(cancelled);
            }
            queue = self.freed.wait_timeout(queue, POLL).unwrap_or_else(|e| e.into_inner()).0;
        }
        queue.waiting.pop_front();
        let count = queue.free.min(limit.max(1));
        queue.free -= count;
        drop(queue);
        // The next query in the queue may find a free thread as well.
        self.freed.notify_all();
        Ok(Slots { shared: self, count })
    }
}

impl Drop for Slots<'_> {
    fn drop(&mut self) {
        lock(&self.shared.queue).free += self.count;
        self.shared.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn concurrent_queries_stay_within_the_budget() {
        let (shared, never_cancelled) = (ThreadBudget::new(3), CancelFlag::new());
        let (at_once, acquired_slots_total) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let slots = shared.take(2, &never_cancelled).unwrap();
                        let in_use = at_once.fetch_add(slots.count, Ordering::SeqCst) + slots.count;
                        assert!((1..=2).contains(&slots.count) && in_use <= 3);
                        acquired_slots_total.fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        at_once.fetch_sub(slots.count, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(
            (acquired_slots_total.into_inner(), shared.take(9, &never_cancelled).unwrap().count),
            (400, 3)
        );
    }

    #[test]
    fn cancelled_waiter_is_removed_from_queue() {
        let (shared, never_cancelled, flag) =
            (ThreadBudget::new(1), CancelFlag::new(), CancelFlag::new());
        let slots = shared.take(1, &never_cancelled).unwrap();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| shared.take(1, &flag).is_err());
            while lock(&shared.queue).waiting.is_empty() {
                std::thread::yield_now();
            }
            let second = scope.spawn(|| shared.take(1, &never_cancelled).map(|t| t.count).unwrap());
            flag.cancel();
            assert!(first.join().unwrap());
            drop(slots);
            assert_eq!(second.join().unwrap(), 1);
        });
    }
}
