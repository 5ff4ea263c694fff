//! Words for an agent whose call waits for its user: that it waits, and the places where the user
//! answers.

use std::time::Duration;

use cairn_protocol::{
    approval::{Approval, ApprovalListParams},
    error::Failure,
    session::Page,
    tool::ToolResult,
};

use super::client::Client;

/// Interval of progress while an approval is pending.
pub const REMINDER_INTERVAL: Duration = Duration::from_secs(10);
/// The author of an answer that the deadline gave.
const DEADLINE: &str = "deadline";
/// Characters of the summary in a message.
const MAX_SUMMARY: usize = 80;

/// Returns the message while an approval is pending.
pub fn text(approval: &Approval) -> String {
    let summary: String = approval.preview.summary.chars().take(MAX_SUMMARY).collect();
    let id = &approval.approval_id;
    format!(
        "waiting for the user's approval of: {summary} - answer in 'cairn viewer', in a chat, or \
         with 'cairn approvals answer {id} yes'"
    )
}

/// Adds the reason to a result that failed because no one answered in time.
pub async fn with_reason(
    client: &Client,
    question: &Approval,
    mut result: ToolResult,
) -> ToolResult {
    let Some(error) = &mut result.error else { return result };
    let params =
        ApprovalListParams { session_id: Some(question.session_id.clone()), resolved: true };
    let page: Result<Page<Approval>, Failure> = client.api.request("approval.list", &params).await;
    let answered = page.ok().and_then(|page| {
        page.data.into_iter().find(|approval| approval.approval_id == question.approval_id)
    });
    let is_late = answered.and_then(|a| a.resolution).is_some_and(|r| r.by == DEADLINE);
    if is_late {
        error.message.push_str(
            "; no one answered in time: let the user open 'cairn approvals --watch' or 'cairn \
             viewer', then repeat the call",
        );
    }
    result
}
