//! Time that a run spends waiting for approvers, which its time limit excludes.

use std::{
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Interval in which a limit is checked while an approver decides.
const WAITING: Duration = Duration::from_millis(50);

/// Counts the time in which at least one call of a run waits for an answer. Overlapping waits count
/// once, and a wait whose future is dropped stops.
#[derive(Debug, Default)]
pub struct WaitClock(Mutex<Waits>);

#[derive(Debug, Default)]
struct Waits {
    /// Number of current waits.
    open: u32,
    /// Start of the first of them.
    since: Option<Instant>,
    /// Total duration of the waits.
    total: Duration,
}

/// One wait; it stops when this is dropped.
struct Wait<'a>(&'a WaitClock);

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut waits = self.0.waits();
        waits.open = waits.open.saturating_sub(1);
        if waits.open == 0
            && let Some(since) = waits.since.take()
        {
            waits.total += since.elapsed();
        }
    }
}

impl WaitClock {
    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time waited so far, including a current wait.
    pub fn waited(&self) -> Duration {
        let waits = self.waits();
        waits.total + waits.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Returns true if a call waits for an answer now.
    pub fn is_waiting(&self) -> bool {
        self.waits().open > 0
    }

    fn start(&self) -> Wait<'_> {
        let mut waits = self.waits();
        waits.open += 1;
        waits.since.get_or_insert_with(Instant::now);
        Wait(self)
    }

    /// Returns once `limit` has passed without the time that this clock counts.
    pub(crate) async fn after(&self, limit: Duration) {
        let (started, before) = (Instant::now(), self.waited());
        loop {
            let excluded = self.waited().saturating_sub(before);
            let remaining = (limit + excluded).saturating_sub(started.elapsed());
            if remaining.is_zero() {
                return;
            }
            let pause = if self.is_waiting() { remaining.max(WAITING) } else { remaining };
            tokio::time::sleep(pause).await;
        }
    }

    /// Counts the time of `work`.
    pub async fn while_waiting<T>(&self, work: impl Future<Output = T>) -> T {
        let _wait = self.start();
        work.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S5
    #[test]
    fn overlapping_waits_count_once() {
        let clock = WaitClock::default();
        let began = Instant::now();
        let waits = [clock.start(), clock.start(), clock.start()];
        // Their clock starts after `began`, by as much as the thread is preempted.
        while clock.waited() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        drop(waits);
        let elapsed = began.elapsed();
        assert!(clock.waited() >= Duration::from_millis(20) && clock.waited() <= elapsed);
        assert!(!clock.is_waiting());
    }

    #[tokio::test]
    async fn limit_passes_without_waits() {
        let clock = WaitClock::default();
        clock.after(Duration::ZERO).await;
        let limit = clock.after(Duration::from_millis(30));
        let waiting = clock.while_waiting(std::future::pending::<()>());
        tokio::pin!(limit, waiting);
        tokio::select! {
            biased;
            () = &mut waiting => {}
            () = &mut limit => panic!("the limit passed during a wait"),
            () = tokio::time::sleep(Duration::from_millis(200)) => {}
        }
    }

    // S5
    #[tokio::test]
    async fn a_dropped_wait_ends() {
        let clock = WaitClock::default();
        {
            let waiting = clock.while_waiting(std::future::pending::<()>());
            tokio::pin!(waiting);
            assert!(tokio::time::timeout(Duration::ZERO, &mut waiting).await.is_err());
            assert!(clock.is_waiting());
        }
        assert!(!clock.is_waiting());
        let waited = clock.waited();
        assert_eq!(clock.waited(), waited, "the clock stands when nothing waits");
    }
}
