//! Events of a session.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    approval::{Approval, Resolution},
    background::BackgroundState,
    explore::{ExplorePlan, ExploreSummary},
    id::{ApprovalId, RunId},
    model::{FinishReason, Part, ProviderReasoning, TokenUsage, ToolUse},
    turn::{ExecutionPolicy, ModelChoice, RunResult},
};

/// An event. A run starts with `started` and ends with exactly one of `completed`, `stopped` or
/// `error` whose `op` is the run's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvt {
    /// An operation or run started.
    Started {
        /// Name of the operation: a tool's name, or `explore`.
        op: String,
        /// Details in one line, for a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<String>,
    },
    /// Progress of an operation.
    Progress {
        /// Name of the operation.
        op: String,
        /// Progress in percent, 0 to 100.
        percent: f64,
        /// Message in one line, for a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// Result of a tool call.
    Result {
        /// Name of the tool.
        op: String,
        /// Type of `data`: `search_answer`, `grep_answer`, `span`, `dir_listing`, …
        tag: String,
        /// MIME type; always `application/json` for inline data.
        mime: String,
        /// The result itself, when it is at most 64 KiB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<serde_json::Value>,
        /// Reference to a larger result; read it with `trace.blob`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blob: Option<BlobRef>,
        /// True when the tool cut its output at a limit.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
    /// The complete plan after a revision.
    PlanSnapshot {
        /// Revision number: 1, 2, 3, …
        revision: u32,
        /// The plan after this revision.
        plan: ExplorePlan,
    },
    /// Partial typed answer of `llm_call`. Each snapshot extends the previous one, and the last is
    /// the complete answer. Live only: it has no sequence number, is not logged and is never
    /// replayed; the result follows.
    #[serde(rename_all = "camelCase")]
    StructuredSnapshot {
        /// Name of the operation, always `llm_call`.
        op: String,
        /// Type that the answer will have.
        expects_type: String,
        /// Revision number: 1, 2, 3, …
        revision: u32,
        /// The value so far; fields that are not yet written are missing.
        value: serde_json::Value,
    },
    /// A problem that did not stop the operation.
    Warning {
        /// Name of the operation concerned.
        op: String,
        /// Text of the warning.
        message: String,
    },
    /// The daemon stopped during the operation; the session can be resumed.
    Interrupted {
        /// Name of the interrupted operation.
        op: String,
    },
    /// Interrupted work was resumed.
    Resumed {
        /// Name of the resumed operation.
        op: String,
    },
    /// An explore finished successfully.
    Completed {
        /// Summary of the results.
        summary: Box<ExploreSummary>,
    },
    /// The run was aborted.
    Stopped {
        /// Name of the stopped operation.
        op: String,
        /// Client or reason that stopped it.
        reason: String,
    },
    /// An operation failed; terminal when `op` is the run's own.
    Error {
        /// Name of the failed operation.
        op: String,
        /// Error message for a person.
        message: String,
        /// True if the same request may succeed later.
        retryable: bool,
        /// Stable reason, as in the error table.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A turn was accepted; it starts at once or waits in the queue.
    #[serde(rename_all = "camelCase")]
    TurnAccepted {
        /// Id of the turn's run.
        run_id: RunId,
        /// Id of the turn, chosen by the client.
        turn_id: String,
        /// Input of the turn, with the context first.
        input: Vec<Part>,
        /// Permissions and limits of the turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<ExecutionPolicy>,
        /// Metadata that the client sent with the turn.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        metadata: BTreeMap<String, String>,
    },
    /// A turn started to run.
    #[serde(rename_all = "camelCase")]
    RunStarted {
        /// Id of the turn's run.
        run_id: RunId,
        /// Id of the turn, chosen by the client.
        turn_id: String,
        /// Model that the turn uses.
        model: ModelChoice,
        /// Maximum characters of a tool's output that the model receives.
        shown_chars: u64,
    },
    /// Text of a model as it arrives. Live only: it has no sequence number, is not logged and is
    /// never replayed; [`AgentEvt::Text`] with the same text follows.
    #[serde(rename_all = "camelCase")]
    TokenDelta {
        /// Id of the run.
        run_id: RunId,
        /// True for the model's reasoning.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reasoning: bool,
        /// Bytes of this answer's text (or reasoning) before this piece.
        offset: u64,
        /// The piece of text.
        text: String,
    },
    /// Text of a model in larger pieces: at most every 250 ms, and at the end of an answer.
    #[serde(rename_all = "camelCase")]
    Text {
        /// Id of the run.
        run_id: RunId,
        /// True for the model's reasoning.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reasoning: bool,
        /// Bytes of this answer's text (or reasoning) before this piece.
        offset: u64,
        /// The piece of text.
        text: String,
    },
    /// Progress of the model in reading its prompt. Live only, like [`AgentEvt::TokenDelta`].
    #[serde(rename_all = "camelCase")]
    PromptProgress {
        /// Id of the run.
        run_id: RunId,
        /// Number of prompt tokens read.
        processed: u64,
        /// Number of tokens of the prompt.
        total: u64,
        /// Context size of the model in tokens, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_tokens: Option<u64>,
    },
    /// The model's answer is complete; its text is in the preceding `text` records.
    ModelAnswer(ModelAnswer),
    /// The model requested a tool call, which now passes the gate.
    #[serde(rename_all = "camelCase")]
    ToolCall {
        /// Id of the call, as in [`ModelAnswer::calls`].
        call_id: String,
        /// Name of the tool.
        name: String,
        /// Arguments of the call, repaired where necessary.
        arguments: serde_json::Value,
    },
    /// Outcome of a tool call.
    ToolResult(ToolOutcome),
    /// Output of a command that a tool call runs, at most ten times a second. Live only, like
    /// [`AgentEvt::TokenDelta`]; the call's result follows.
    #[serde(rename_all = "camelCase")]
    CommandOutput {
        /// Id of the call.
        call_id: String,
        /// The output since the last event, both streams in the order of arrival.
        text: String,
        /// Bytes before `text` that were left out, because the command writes faster than events
        /// are sent.
        #[serde(default, skip_serializing_if = "is_zero")]
        dropped: u64,
    },
    /// A command was started in the background.
    BackgroundStarted {
        /// Id of the command.
        id: String,
        /// Command line as it was given.
        command: String,
    },
    /// A background command ended; the model is notified before its next answer.
    #[serde(rename_all = "camelCase")]
    BackgroundFinished {
        /// Id of the command.
        id: String,
        /// Command line as it was given.
        command: String,
        /// The way it ended.
        state: BackgroundState,
        /// Exit code; absent if it is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// The last lines of its output.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        tail: String,
    },
    /// A hook ran at an event of the session.
    #[serde(rename_all = "camelCase")]
    HookFinished {
        /// The event, as hooks name it.
        event: String,
        /// The file or key that names the hook.
        source: String,
        /// Its command line, at most 1,000 characters.
        command: String,
        /// True if it ran in the sandbox.
        sandboxed: bool,
        /// Exit code; absent if it has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// Duration of its run in milliseconds.
        millis: u64,
        /// Reason why it did not run or was stopped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A tool call is pending until a client approves or denies it.
    ApprovalRequired {
        /// The approval to answer.
        approval: Box<Approval>,
    },
    /// An approval was answered.
    #[serde(rename_all = "camelCase")]
    ApprovalResolved {
        /// Id of the approval.
        approval_id: ApprovalId,
        /// The answer and its author.
        resolution: Resolution,
    },
    /// A client sent text to the model during its turn.
    #[serde(rename_all = "camelCase")]
    Steered {
        /// Id of the run.
        run_id: RunId,
        /// Text that the client sent.
        text: String,
    },
    /// The conversation so far is replaced by a summary in the model's context.
    #[serde(rename_all = "camelCase")]
    Compacted {
        /// Summary that the model receives instead.
        summary: String,
        /// Number of messages at the end of the conversation that are retained unchanged.
        kept: u32,
        /// Tokens before compaction, as counted by the daemon.
        tokens_before: u64,
        /// Tokens after compaction, as counted by the daemon.
        tokens_after: u64,
        /// Sequence number of the latest `steered` record included in the conversation here; 0 if
        /// none.
        #[serde(default)]
        heard_seq: u64,
    },
    /// The conversation was cleared; the following turns start an empty one.
    Cleared {},
    /// The session uses another model from this record on.
    ProviderChanged {
        /// The model now in use.
        model: ModelChoice,
    },
    /// The agent updated its list of tasks.
    PlanUpdate {
        /// Items of the list, in order.
        items: Vec<PlanItem>,
    },
    /// Changes of a turn to files, as one unified diff.
    #[serde(rename_all = "camelCase")]
    TurnDiff {
        /// Id of the turn.
        turn_id: String,
        /// The diff, cut at 256 KiB with a note in its text.
        diff: String,
        /// Paths that were changed.
        paths: Vec<String>,
    },
    /// The changes of a turn were committed, as `git.autoCommit` configures.
    #[serde(rename_all = "camelCase")]
    GitCommit {
        /// Id of the turn.
        turn_id: String,
        /// Hash of the commit, 40 hex digits.
        commit: String,
        /// Message of the commit.
        message: String,
        /// Paths in the commit, relative to the root.
        paths: Vec<String>,
    },
    /// A turn finished; the last record of its run.
    RunCompleted {
        /// Result of the run.
        result: Box<RunResult>,
    },
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A complete answer of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelAnswer {
    /// Id of the run.
    pub run_id: RunId,
    /// Model that gave the answer.
    pub model: ModelChoice,
    /// Tool calls that the model requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolUse>,
    /// Reason why the model stopped; absent when the answer was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// Token usage by the provider's count, or by the daemon's if the provider reports none.
    pub usage: TokenUsage,
    /// Tokens per second during the answer; 0 when it was too short to measure.
    pub tokens_per_second: f64,
    /// Context size of the model in tokens, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Milliseconds until the first piece arrived.
    pub first_millis: u64,
    /// Milliseconds until the answer was complete.
    pub millis: u64,
    /// SHA-256 (hex) of the request: system text, messages and tools.
    pub request_digest: String,
    /// Sequence number of the latest `steered` record included in the request; 0 if none.
    #[serde(default)]
    pub heard_seq: u64,
    /// Reference to the raw bytes of the answer, for replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<BlobRef>,
    /// Reasoning that the provider requires back with the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ProviderReasoning>,
}

/// Outcome of a tool call in a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutcome {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub name: String,
    /// Type of the `output`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tag: String,
    /// The output, when it is at most 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<serde_json::Value>,
    /// Reference to a larger output; read it with `trace.blob`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<BlobRef>,
    /// The failure, if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<crate::tool::ToolFailure>,
    /// True when the tool cut its output at a limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Duration of the call in milliseconds.
    pub millis: u64,
    /// Files that the call changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
}

/// A change of a file by a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// Path of the file, relative to the root.
    pub path: String,
    /// Former content as base64 text; absent when the file did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<BlobRef>,
    /// SHA-256 (hex) of the new content; absent when the file was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// True if the file existed and its former content was not stored: the change cannot be
    /// undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
}

/// One item of the agent's task list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanItem {
    /// Text of the item.
    pub text: String,
    /// Status of the item: `pending`, `in_progress` or `done`.
    #[serde(default)]
    pub status: PlanStatus,
}

/// Status of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// The task is not started.
    #[default]
    Pending,
    /// The task is in progress.
    InProgress,
    /// The task is done.
    Done,
}

/// Reference to a result stored by the hash of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlobRef {
    /// SHA-256 of the content, in hex.
    pub sha256: String,
    /// Size of the content in bytes.
    pub size: u64,
}

impl AgentEvt {
    /// Returns true for the last event of the run whose operation is `op`.
    pub fn ends(&self, run_op: &str) -> bool {
        match self {
            AgentEvt::Completed { .. } | AgentEvt::RunCompleted { .. } => true,
            AgentEvt::Stopped { op, .. } | AgentEvt::Error { op, .. } => op == run_op,
            _ => false,
        }
    }
}
