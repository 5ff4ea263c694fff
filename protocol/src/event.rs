//! What happens in a session.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    approval::{Approval, Resolution},
    explore::{ExplorePlan, ExploreSummary},
    id::{ApprovalId, RunId},
    model::{FinishReason, Part, TokenUsage, ToolUse},
    turn::{ExecutionPolicy, ModelChoice, RunResult},
};

/// An event. A run begins with `started` and ends with exactly one of `completed`, `stopped` or `error` whose
/// `op` is the run's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvt {
    /// Work began.
    Started {
        /// What began: a tool's name, or `explore`.
        op: String,
        /// A line for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<String>,
    },
    /// How far it is.
    Progress {
        /// What goes on.
        op: String,
        /// 0 to 100.
        percent: f64,
        /// A line for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A tool's result.
    Result {
        /// The tool.
        op: String,
        /// What `data` is: `search_answer`, `grep_answer`, `span`, `dir_listing`, …
        tag: String,
        /// Always `application/json` for inline data.
        mime: String,
        /// The result itself, when it is 64 KiB or less.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<serde_json::Value>,
        /// Where a larger one lies; read it with `trace.blob`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blob: Option<BlobRef>,
        /// True when the tool cut its output at a limit.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
    /// The plan as it stands after a revision.
    PlanSnapshot {
        /// 1, 2, 3, …
        revision: u32,
        /// The plan.
        plan: ExplorePlan,
    },
    /// A typed answer of `llm_call` as far as it is written: each holds what the one before it held, and the last is the
    /// answer itself. Live only: it has no number, is not in the log and is never replayed; the result follows.
    #[serde(rename_all = "camelCase")]
    StructuredSnapshot {
        /// Always `llm_call`.
        op: String,
        /// The type that the answer will be.
        expects_type: String,
        /// 1, 2, 3, …
        revision: u32,
        /// What is written so far; fields that it does not hold yet are missing.
        value: serde_json::Value,
    },
    /// Something the user should know that did not stop the work.
    Warning {
        /// What it concerns.
        op: String,
        /// The text.
        message: String,
    },
    /// The daemon ended while this was going on; the session can be resumed.
    Interrupted {
        /// What was cut off.
        op: String,
    },
    /// Interrupted work goes on.
    Resumed {
        /// What goes on.
        op: String,
    },
    /// An explore ended well.
    Completed {
        /// What it found.
        summary: Box<ExploreSummary>,
    },
    /// The run was aborted.
    Stopped {
        /// What was stopped.
        op: String,
        /// By whom or why.
        reason: String,
    },
    /// Work failed; terminal when `op` is the run's own.
    Error {
        /// What failed.
        op: String,
        /// For people.
        message: String,
        /// Whether the same again may succeed.
        retryable: bool,
        /// The stable reason, as in the error table.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A turn was taken; it begins at once or waits for those before it.
    #[serde(rename_all = "camelCase")]
    TurnAccepted {
        /// Its run.
        run_id: RunId,
        /// The client's name for it.
        turn_id: String,
        /// What is asked, the context first.
        input: Vec<Part>,
        /// What it may do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<ExecutionPolicy>,
        /// What the client sent with it.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        metadata: BTreeMap<String, String>,
    },
    /// A turn began.
    #[serde(rename_all = "camelCase")]
    RunStarted {
        /// Its run.
        run_id: RunId,
        /// The client's name for it.
        turn_id: String,
        /// Whom it asks.
        model: ModelChoice,
        /// Characters of a tool's output that the model is shown at most.
        shown_chars: u64,
    },
    /// Text of a model as it comes. Live only: it has no number, is not in the log and is never replayed; [`AgentEvt::Text`]
    /// with the same text follows.
    #[serde(rename_all = "camelCase")]
    TokenDelta {
        /// The run.
        run_id: RunId,
        /// True for the model's thinking.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reasoning: bool,
        /// Bytes of this answer's text (or thinking) before this one.
        offset: u64,
        /// The text.
        text: String,
    },
    /// Text of a model, put together: at most every 250 ms, and at the end of an answer.
    #[serde(rename_all = "camelCase")]
    Text {
        /// The run.
        run_id: RunId,
        /// True for the model's thinking.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reasoning: bool,
        /// Bytes of this answer's text (or thinking) before this one.
        offset: u64,
        /// The text.
        text: String,
    },
    /// How far the model is in reading its prompt. Live only, like [`AgentEvt::TokenDelta`].
    #[serde(rename_all = "camelCase")]
    PromptProgress {
        /// The run.
        run_id: RunId,
        /// Tokens read.
        processed: u64,
        /// Tokens there are.
        total: u64,
        /// Tokens of the model's context, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_tokens: Option<u64>,
    },
    /// The model's answer is whole; its text is that of the `text` records before it.
    ModelAnswer(ModelAnswer),
    /// The model asked for a tool, which now goes through the gate.
    #[serde(rename_all = "camelCase")]
    ToolCall {
        /// The call, as in [`ModelAnswer::calls`].
        call_id: String,
        /// The tool.
        name: String,
        /// Its arguments, repaired where they had to be.
        arguments: serde_json::Value,
    },
    /// What came of a tool call.
    ToolResult(ToolOutcome),
    /// Somebody must say whether a tool may act.
    ApprovalRequired {
        /// The question.
        approval: Box<Approval>,
    },
    /// The question is answered.
    #[serde(rename_all = "camelCase")]
    ApprovalResolved {
        /// Which.
        approval_id: ApprovalId,
        /// How.
        resolution: Resolution,
    },
    /// A client told the model something while it worked.
    #[serde(rename_all = "camelCase")]
    Steered {
        /// The run.
        run_id: RunId,
        /// The text.
        text: String,
    },
    /// The conversation up to here is replaced by a summary in what the model is shown.
    #[serde(rename_all = "camelCase")]
    Compacted {
        /// What the model is shown instead.
        summary: String,
        /// Messages at the end of the conversation that are kept as they are.
        kept: u32,
        /// Tokens before, as counted here.
        tokens_before: u64,
        /// Tokens after.
        tokens_after: u64,
        /// Number of the latest `steered` record that is part of the conversation here; 0 when there is none.
        #[serde(default)]
        heard_seq: u64,
    },
    /// The conversation was emptied; what follows starts afresh.
    Cleared {},
    /// The session talks to another model from here on.
    ProviderChanged {
        /// Which.
        model: ModelChoice,
    },
    /// The agent's list of things to do.
    PlanUpdate {
        /// The items, in order.
        items: Vec<PlanItem>,
    },
    /// What a turn changed in files, as one unified diff.
    #[serde(rename_all = "camelCase")]
    TurnDiff {
        /// The turn.
        turn_id: String,
        /// The diff; cut at 256 KiB, and then it says so.
        diff: String,
        /// Paths that changed.
        paths: Vec<String>,
    },
    /// What a turn changed was committed, as `git.auto_commit` says.
    #[serde(rename_all = "camelCase")]
    GitCommit {
        /// The turn.
        turn_id: String,
        /// The commit's id, 40 hex digits.
        commit: String,
        /// Its message.
        message: String,
        /// Paths it holds, relative to the root.
        paths: Vec<String>,
    },
    /// A turn ended; the last record of its run.
    RunCompleted {
        /// How.
        result: Box<RunResult>,
    },
}

/// A whole answer of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelAnswer {
    /// The run.
    pub run_id: RunId,
    /// Who answered.
    pub model: ModelChoice,
    /// Tools it asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolUse>,
    /// Why it stopped; absent when it was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// Tokens, as the provider counts them; counted here where it does not tell.
    pub usage: TokenUsage,
    /// Tokens a second while it answered; 0 when too short to tell.
    pub tokens_per_second: f64,
    /// Tokens of the model's context, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Milliseconds to the first piece.
    pub first_millis: u64,
    /// Milliseconds to the end.
    pub millis: u64,
    /// SHA-256 (hex) of what was asked: system text, messages, tools.
    pub request_digest: String,
    /// Number of the latest `steered` record that was in what was asked; 0 when there was none.
    #[serde(default)]
    pub heard_seq: u64,
    /// The answer's bytes as they came, for replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<BlobRef>,
}

/// What came of a tool call in a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutcome {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// What `output` is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tag: String,
    /// The output, when it is 64 KiB or less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<serde_json::Value>,
    /// Where a larger one lies; read it with `trace.blob`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<BlobRef>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<crate::tool::ToolFailure>,
    /// True when the tool cut its output at a limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Milliseconds.
    pub millis: u64,
    /// Files it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
}

/// A file that a tool changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// The file, relative to the root.
    pub path: String,
    /// What it held before, as base64 text; absent when it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<BlobRef>,
    /// SHA-256 (hex) of what it held afterwards; absent when it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Whether it was there before and what it held was not kept: such a change cannot be undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanItem {
    /// What.
    pub text: String,
    /// `pending`, `in_progress` or `done`.
    #[serde(default)]
    pub status: PlanStatus,
}

/// How far a thing to do is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Done,
}

/// A result stored by the hash of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlobRef {
    /// SHA-256, hex.
    pub sha256: String,
    /// Bytes.
    pub size: u64,
}

impl AgentEvt {
    /// True for the last event of the run whose operation is `op`.
    pub fn ends(&self, run_op: &str) -> bool {
        match self {
            AgentEvt::Completed { .. } | AgentEvt::RunCompleted { .. } => true,
            AgentEvt::Stopped { op, .. } | AgentEvt::Error { op, .. } => op == run_op,
            _ => false,
        }
    }
}
