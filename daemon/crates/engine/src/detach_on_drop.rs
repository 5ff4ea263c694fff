//! Work that runs inside its caller, and detaches into a task when the caller drops it.

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context, Poll},
};

use cairn_protocol::error::{Failure, Reason};
use futures_util::FutureExt as _;
use tokio_util::task::TaskTracker;

type Work<T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>;

/// Work that is not lost when its future is dropped: the rest becomes a task. Spawning it from the
/// start would cost two thread switches each time.
pub(crate) struct DetachOnDrop<T: 'static> {
    work: Option<Work<T>>,
}

impl<T: Send + 'static> DetachOnDrop<T> {
    /// Wraps the work, counted in `tasks` until it finishes. A panic in it becomes a failure.
    pub(crate) fn new(
        tasks: &TaskTracker,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Self {
        let lost = |_| {
            Err(Failure::new(Reason::Internal, "the call ended without an outcome: it panicked"))
        };
        let work = AssertUnwindSafe(work).catch_unwind().map(move |done| done.unwrap_or_else(lost));
        Self { work: Some(Box::pin(tasks.track_future(work))) }
    }
}

impl<T: 'static> Future for DetachOnDrop<T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let done = work.as_mut().poll(cx);
        if done.is_ready() {
            self.work = None;
        }
        done
    }
}

impl<T: 'static> Drop for DetachOnDrop<T> {
    fn drop(&mut self) {
        // Without a runtime the rest cannot run.
        if let (Some(work), Ok(runtime)) = (self.work.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(async move {
                // Its outcome is recorded in the log.
                let _result = work.await;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn dropped_future_continues_in_background() {
        let tasks = TaskTracker::new();
        assert_eq!(DetachOnDrop::new(&tasks, async { Ok(1) }).await.unwrap(), 1);
        assert!(tasks.is_empty());
        let (go, wait) = tokio::sync::oneshot::channel::<()>();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let mut detached = DetachOnDrop::new(&tasks, async move {
            let _result = wait.await;
            let _result = sender.send(2);
            Ok(())
        });
        assert!((&mut detached).now_or_never().is_none());
        drop(detached);
        assert_eq!(tasks.len(), 1);
        drop(go);
        assert_eq!(receiver.await.unwrap(), 2);
        tasks.close();
        tasks.wait().await;
    }

    #[tokio::test]
    async fn panic_becomes_failure() {
        let tasks = TaskTracker::new();
        let failure = DetachOnDrop::<()>::new(&tasks, async { panic!("no") }).await.unwrap_err();
        assert_eq!(failure.reason, Reason::Internal);
        assert!(tasks.is_empty());
    }
}
