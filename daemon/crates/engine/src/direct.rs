//! Direct calls that change something: audited like the calls of tools.

use std::{future::Future, time::Instant};

use cairn_protocol::{
    error::{Failure, Reason},
    id::SessionId,
};
use cairn_trace::{AuditIntent, AuditOutcome};
use serde::Serialize;

use crate::Engine;

impl Engine {
    /// Does `work` between the two halves of an audit row that names the method; `session` where it concerns one. What cannot be
    /// audited is not done.
    ///
    /// # Errors
    /// `audit_failed`, `disk_full`; those of the work.
    pub(crate) async fn audited<T>(
        &self,
        method: &str,
        session: Option<&SessionId>,
        params: &impl Serialize,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let intent = AuditIntent {
            session: session.cloned().unwrap_or_else(SessionId::nil),
            tool: method.to_owned(),
            args_digest: cairn_trace::digest(params),
            decision: "allow",
            rule: "direct call".to_owned(),
            call: None,
            command: None,
        };
        let row =
            self.inner.trace.audit_intent(intent, None).await.map_err(|cause| unaudited(method, &cause))?;
        let began = Instant::now();
        let outcome = work.await;
        let done = AuditOutcome {
            millis: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            outcome: outcome.as_ref().map_or_else(|e| e.reason.as_str(), |_| "ok").to_owned(),
            exit_code: None,
            truncated: false,
        };
        if let Err(cause) = self.inner.trace.audit_outcome(row, done, None).await {
            // It is done; the row shows that it was allowed.
            tracing::error!(method, %cause, "the outcome of a direct call could not be audited");
        }
        outcome
    }
}

fn unaudited(method: &str, cause: &Failure) -> Failure {
    let reason = if cause.reason == Reason::DiskFull { Reason::DiskFull } else { Reason::AuditFailed };
    Failure::new(reason, format!("{method} could not be recorded: {cause}"))
}
