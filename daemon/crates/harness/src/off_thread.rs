//! Blocking work off the async threads.

use cairn_protocol::error::{Failure, Reason};

/// Runs blocking work off the async threads; `what` names it in the failure of work that panics.
///
/// # Errors
/// The error of the work, or `internal` when it panics.
pub async fn off_thread<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (sender, outcome) = tokio::sync::oneshot::channel();
    // Boxed, so that one instance of the runtime's code serves all kinds of work.
    let work: Box<dyn FnOnce() + Send> = Box::new(move || drop(sender.send(work())));
    let failed =
        |error: String| Err(Failure::new(Reason::Internal, format!("{what} failed: {error}")));
    match tokio::task::spawn_blocking(work).await {
        Ok(()) => outcome.await.unwrap_or_else(|error| failed(error.to_string())),
        Err(error) => failed(error.to_string()),
    }
}
