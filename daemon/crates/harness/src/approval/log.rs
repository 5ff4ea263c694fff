//! Requests and answers in the log, with a notice after each.

use std::time::Duration;

use cairn_protocol::{
    approval::{Approval, ApprovalDecision, ApprovalNotice, Resolution},
    envelope::{Body, Origin},
    error::{Failure, Reason},
    event::AgentEvt,
    time::Timestamp,
};
use cairn_trace::{Append, NewRecord, Trace, TraceError};
use tokio::sync::broadcast;
use uuid::Uuid;

/// The log of requests and answers, and the subscribers who are notified after each entry.
#[derive(Clone)]
pub(super) struct ApprovalLog {
    pub trace: Trace,
    pub notices: broadcast::Sender<ApprovalNotice>,
}

impl ApprovalLog {
    pub fn publish(&self, approval: &Approval, decision: Option<ApprovalDecision>) {
        let notice = ApprovalNotice {
            approval_id: approval.approval_id.clone(),
            session_id: approval.session_id.clone(),
            tool: approval.tool.clone(),
            summary: approval.preview.summary.clone(),
            expires_at: approval.expires_at,
            decision,
        };
        let _no_subscriber = self.notices.send(notice);
    }

    /// Stores an answer with its event if it is the first.
    pub async fn record_resolution(
        &self,
        approval: &Approval,
        resolution: &Resolution,
    ) -> Result<(), TraceError> {
        let evt = AgentEvt::ApprovalResolved {
            approval_id: approval.approval_id.clone(),
            resolution: resolution.clone(),
        };
        let origin = Some(Origin {
            client: Some(resolution.by.clone()),
            run_id: approval.run_id.clone(),
            tool: Some(approval.tool.clone()),
        });
        let body = Body::Evt { evt };
        let record = NewRecord { id: Uuid::now_v7(), parent_id: None, origin, body };
        let append = Append::new(&approval.session_id, vec![record])
            .answer(&approval.approval_id, resolution);
        self.trace.append(append).await?;
        self.publish(approval, Some(resolution.decision));
        Ok(())
    }
}

pub(super) fn already_resolved(first: Option<Resolution>) -> Failure {
    let text = match &first {
        Some(r) if r.by == "deadline" => "the time to answer it is over".to_owned(),
        Some(r) if r.by == "cancelled" => "the call that requested it has ended".to_owned(),
        Some(r) => format!("it was already answered '{}' by {}", r.decision.as_str(), r.by),
        None => "it was already answered".to_owned(),
    };
    let details = serde_json::json!({"resolution": first});
    Failure::new(Reason::ApprovalResolved, text).with_details(details)
}

pub(super) fn time_to_answer(approval: &Approval) -> Duration {
    let millis = approval.expires_at.0.saturating_sub(approval.created_at.0);
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

/// Returns the time to answer that is left after a restart, during which the deadline stands.
pub(super) fn remaining(approval: &Approval) -> Duration {
    let millis = approval.expires_at.0.saturating_sub(Timestamp::now().0);
    Duration::from_millis(u64::try_from(millis).unwrap_or(0)).min(time_to_answer(approval))
}

pub(super) fn denial(by: &str, why: &str) -> Resolution {
    Resolution {
        decision: ApprovalDecision::Deny,
        by: by.to_owned(),
        reason: Some(why.to_owned()),
        pattern: None,
        at: Timestamp::now(),
    }
}
