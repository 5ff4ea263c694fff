//! Direct calls: requests of clients that no tool serves. Each one with an effect leaves a row in
//! the audit, like a tool call.

use std::time::Instant;

use cairn_protocol::{
    error::{Failure, Reason},
    id::SessionId,
};
use cairn_trace::{AuditIntent, AuditOutcome, Trace};
use cairn_workspace::git;
use serde_json::Value;

use crate::Engine;

/// Outcome of a direct call that was dropped before it finished.
const CANCELLED: &str = "cancelled";

/// A direct call whose audit row is open. Dropping it closes the row as cancelled.
pub struct DirectCall {
    method: String,
    started: Instant,
    trace: Trace,
    /// The row, until it is closed.
    row: Option<u64>,
}

impl Engine {
    /// Opens the audit row of a direct call before it acts; `session` if it concerns one.
    ///
    /// # Errors
    /// `audit_failed`, `disk_full`: then nothing may be done.
    pub async fn begin_direct(
        &self,
        method: &str,
        session: Option<SessionId>,
        mut params: Value,
    ) -> Result<DirectCall, Failure> {
        withhold_credentials(&mut params);
        let intent = AuditIntent {
            session: session.unwrap_or_else(SessionId::nil),
            tool: method.to_owned(),
            args_digest: cairn_trace::digest(&params),
            decision: "allow",
            rule: "direct call".to_owned(),
            call: None,
            command: None,
        };
        let started = Instant::now();
        let row = self
            .inner
            .trace
            .audit_intent(intent, None)
            .await
            .map_err(|cause| unaudited(method, &cause))?;
        let (method, trace) = (method.to_owned(), self.inner.trace.clone());
        Ok(DirectCall { method, started, trace, row: Some(row) })
    }
}

impl DirectCall {
    /// Closes the row: `ok`, or the reason of the failure.
    pub async fn complete(mut self, failure: Option<&Failure>) {
        let outcome = failure.map_or("ok", |failure| failure.reason.as_str());
        if let Some(row) = self.row.take() {
            close(&self.trace, &self.method, row, outcome, self.started).await;
        }
    }
}

impl Drop for DirectCall {
    fn drop(&mut self) {
        let Some(row) = self.row.take() else { return };
        let (trace, method, started) =
            (self.trace.clone(), std::mem::take(&mut self.method), self.started);
        // Without a runtime the daemon is stopping, and its next start closes the row as
        // interrupted.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { close(&trace, &method, row, CANCELLED, started).await });
        }
    }
}

async fn close(trace: &Trace, method: &str, row: u64, outcome: &str, started: Instant) {
    let outcome = AuditOutcome {
        millis: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        outcome: outcome.to_owned(),
        exit_code: None,
        truncated: false,
    };
    if let Err(cause) = trace.audit_outcome(row, outcome, None).await {
        // The call is done; the row shows that it was allowed.
        tracing::error!(method, %cause, "the outcome of a direct call could not be recorded in the audit");
    }
}

/// Removes credentials from the URL of a clone: a weak password could be guessed from a digest.
fn withhold_credentials(params: &mut Value) {
    if let Some(url) = params.get_mut("remoteURL")
        && let Some(text) = url.as_str()
    {
        *url = git::without_credentials(text).into();
    }
}

fn unaudited(method: &str, cause: &cairn_trace::TraceError) -> Failure {
    let reason =
        if cause.reason() == Reason::DiskFull { Reason::DiskFull } else { Reason::AuditFailed };
    Failure::new(reason, format!("{method} could not be recorded: {cause}"))
}
