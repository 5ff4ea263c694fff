//! Approvals: requests of the gate that a person answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    id::{ApprovalId, RunId, SessionId},
    time::Timestamp,
};

/// A tool call that is pending until a client approves or denies it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Id of the approval.
    pub approval_id: ApprovalId,
    /// Id of the session that requests the call.
    pub session_id: SessionId,
    /// Id of the run that requests the call, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Name of the tool.
    pub tool: String,
    /// Complete arguments of the call; empty if the approval is shortened.
    pub arguments: serde_json::Value,
    /// Effects of the call, shown to the approver.
    pub preview: Preview,
    /// The rule that requires the approval.
    pub rule: String,
    /// Folder of the project in which `always` would allow such calls: the root of the session, or
    /// the repository of which the root is a work tree. Absent for a session without a root, where
    /// `always` is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Rules that `session`, `always` and `everywhere` would write; one rule may have several lines. Empty when
    /// no rule can be written for such a call, which can then be approved only once.
    pub grants: Vec<String>,
    /// Lists of wider rules, of which an answer may name one instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<Vec<String>>,
    /// Values that the user enters, for a question of an MCP server; such an approval is answered
    /// with `once` and the values, or denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// Time of the request.
    pub created_at: Timestamp,
    /// Time after which an unanswered approval counts as denied.
    pub expires_at: Timestamp,
    /// The answer; absent while the approval is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
    /// True if the arguments and long texts of the preview are left out of a list, because the
    /// approvals before it have filled it. `approval.get` has the complete approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shortened: bool,
}

/// The exact effects of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Summary in one line.
    pub summary: String,
    /// The command line, for a shell call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Working folder of the command, relative to the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The change as a unified diff, cut at 64 KiB with a note in its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Paths that the call touches, relative to the root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// True if the call uses the network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Domains that the call can reach without a further approval, as patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// Paths that a command acts by as they were at the request: its working folder, the scripts
    /// that it runs, the files that its redirections write. The command does not start when they differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bound: Vec<BoundPath>,
    /// Warnings for the approver, such as a missing sandbox or a file that was not read before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The part that a path plays in a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoundRole {
    /// The folder in which the command starts.
    Folder,
    /// A program or script that runs.
    Program,
    /// A file that a redirection writes.
    Output,
}

/// A path that a command acts by, as it was when its approval was requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoundPath {
    /// Its part in the command.
    pub role: BoundRole,
    /// The path as the command has it, relative to the root.
    pub path: String,
    /// The path to which it leads.
    pub target: String,
    /// Its content or identity, to compare; empty for a file that is written.
    pub state: String,
}

/// A question of an MCP server for the user. No model sees it or answers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Form {
    /// Name of the server.
    pub server: String,
    /// The server's own text: untrusted, without control characters.
    pub message: String,
    /// The values that it requests, in order.
    pub fields: Vec<FormField>,
}

/// One value of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormField {
    /// Name of the value in the answer.
    pub name: String,
    /// Title of the field, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Explanation of the field, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Kind of the value.
    pub kind: FormFieldKind,
    /// The values to choose from, for `choice` and `choices`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<FormOption>,
    /// True if the answer must have it.
    pub required: bool,
    /// Value that the server proposes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<serde_json::Value>,
    /// Smallest number, or fewest characters or chosen values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Largest number, or most characters or chosen values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// Kind of a value of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FormFieldKind {
    /// A text of one line.
    Text,
    /// A number, with a fraction or without.
    Number,
    /// A number without a fraction.
    Integer,
    /// Either true or false.
    Boolean,
    /// Exactly one of the options.
    Choice,
    /// Any number of the options.
    Choices,
}

/// A value that the user may choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormOption {
    /// The value in the answer.
    pub value: String,
    /// Title of the value, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// An answer to an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// Approves this call only.
    Once,
    /// Approves this call and similar ones until the session ends.
    Session,
    /// Approves this call and similar ones from now on in the approval's project: writes a rule that
    /// can be listed and revoked.
    Always,
    /// Approves this call and similar ones from now on in every project: writes a rule that can be
    /// listed and revoked.
    Everywhere,
    /// Denies the pending call.
    Deny,
}

impl ApprovalDecision {
    /// Returns the name used on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
            Self::Everywhere => "everywhere",
            Self::Deny => "deny",
        }
    }

    /// Returns true if the answer stores a rule that outlives the session.
    pub fn is_permanent(self) -> bool {
        matches!(self, Self::Always | Self::Everywhere)
    }

    /// Parses a name; `None` if it is unknown.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Once, Self::Session, Self::Always, Self::Everywhere, Self::Deny]
            .into_iter()
            .find(|d| d.as_str() == name)
    }
}

/// Answer to an approval, with its author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resolution {
    /// The decision that was made.
    pub decision: ApprovalDecision,
    /// Author of the answer: a client's name, `deadline` or `cancelled`.
    pub by: String,
    /// Reason for the decision; shown to the model when the call is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Rules that were granted instead of the approval's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Vec<String>>,
    /// Time of the answer.
    pub at: Timestamp,
}

/// Notification for clients that answer approvals: one of a session that they do not follow is
/// pending, or was answered. A client that falls behind misses some; `approval.list` has all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalNotice {
    /// Id of the approval.
    pub approval_id: ApprovalId,
    /// Id of the session that requests the call.
    pub session_id: SessionId,
    /// Name of the tool.
    pub tool: String,
    /// Effect of the call in one line.
    pub summary: String,
    /// Time after which it counts as denied.
    pub expires_at: Timestamp,
    /// The answer; absent while the approval is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<ApprovalDecision>,
}

/// Parameters of the method `approval.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalListParams {
    /// Lists only the approvals of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Includes answered approvals, newest first; at most 500 in all.
    #[serde(default)]
    pub resolved: bool,
}

/// Reference to an approval, as parameters of a method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalRef {
    /// Id of the approval.
    pub approval_id: ApprovalId,
}

/// Parameters of the method `approval.resolve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalResolveParams {
    /// Id of the approval.
    pub approval_id: ApprovalId,
    /// The decision to record.
    pub decision: ApprovalDecision,
    /// Reason for the decision, at most 2,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// One of the approval's `patterns`, granted instead of its `grants`; valid with `session`,
    /// `always` or `everywhere`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Vec<String>>,
    /// Values of the approval's `form` by the names of its fields; valid with `once`. They reach
    /// the server and are not recorded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, serde_json::Value>,
}
