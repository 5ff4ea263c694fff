//! Approvals: questions of the gate that a person answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    id::{ApprovalId, RunId, SessionId},
    time::Timestamp,
};

/// A tool call that waits for leave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Its id.
    pub approval_id: ApprovalId,
    /// The session that wants to act.
    pub session_id: SessionId,
    /// The run, when one asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The tool.
    pub tool: String,
    /// Its arguments, whole.
    pub arguments: serde_json::Value,
    /// What would be done.
    pub preview: Preview,
    /// The rule that makes it a question.
    pub rule: String,
    /// The rules that `session` and `always` would write, one a line; empty when there is none for such a call, which is then
    /// approved once.
    pub grants: String,
    /// Wider rules that an answer may name instead, as they would be stored, one a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// When it was asked.
    pub created_at: Timestamp,
    /// When silence becomes a no.
    pub expires_at: Timestamp,
    /// The answer, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
}

/// Exactly what a call would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// One line.
    pub summary: String,
    /// The command line, for a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The folder the command runs in, relative to the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The change as a unified diff; cut at 64 KiB, and then it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Paths it touches, relative to the root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Whether it uses the network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// What else the reader should know: no sandbox, a file that was not read before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// An answer to an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// This call.
    Once,
    /// This and those like it, for the life of the session.
    Session,
    /// This and those like it, from now on: a rule is written that can be read and revoked.
    Always,
    /// Not.
    Deny,
}

impl ApprovalDecision {
    /// The name on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
            Self::Deny => "deny",
        }
    }

    /// The decision of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Once, Self::Session, Self::Always, Self::Deny].into_iter().find(|d| d.as_str() == name)
    }
}

/// How an approval ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resolution {
    /// The answer.
    pub decision: ApprovalDecision,
    /// Who gave it: a client's name, `deadline`, or `cancelled`.
    pub by: String,
    /// Why; the model sees it when the answer is no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The rules that were granted in place of the approval's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// Parameters of `approval.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalListParams {
    /// Only those of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Also those that are answered, newest first; at most 500 in all.
    #[serde(default)]
    pub resolved: bool,
}

/// Parameters of `approval.resolve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalResolveParams {
    /// The approval.
    pub approval_id: ApprovalId,
    /// The answer.
    pub decision: ApprovalDecision,
    /// Why, at most 2,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// With `session` or `always`: one of the approval's `patterns`, granted in place of its `grants`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}
