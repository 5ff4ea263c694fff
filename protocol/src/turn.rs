//! Turns: input, permissions, limits and result of an agent's run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    explore::RunState,
    id::{RunId, SessionId},
    model::{Part, TokenUsage},
    tool::ToolsMode,
};

/// Parameters of the method `orchestrate.run.start`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunStartParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of the turn, chosen by the client, 1 to 128 bytes: a repeated id returns the first
    /// receipt.
    pub turn_id: String,
    /// Input of the turn.
    pub input: Input,
    /// Additional context for the model, placed before the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<TurnContext>,
    /// Permissions and limits of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<ExecutionPolicy>,
    /// Metadata that is stored with the turn and returned unchanged; at most 32 entries.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// Context of a turn: a text, or items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TurnContext {
    /// Context of text alone.
    Text(String),
    /// Texts, files, selections and diagnostics.
    Items(Vec<ContextItem>),
}

/// An item of a turn's context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ContextItem {
    /// A text that the client adds.
    Text {
        /// The text, as the model receives it.
        text: String,
    },
    /// A file that the user refers to; the model reads it when it needs it.
    File {
        /// Path of the file.
        path: String,
    },
    /// A part of a file that the user selected.
    Selection {
        /// Path of the file.
        path: String,
        /// First line, from 1.
        start_line: u32,
        /// Last line of the selection.
        end_line: u32,
        /// The selected text itself.
        text: String,
    },
    /// A message of a compiler or a linter.
    Diagnostic {
        /// Path of the file.
        path: String,
        /// Line of the message, from 1.
        line: u32,
        /// Severity, such as `error`.
        severity: String,
        /// Text of the message.
        message: String,
    },
}

impl From<String> for TurnContext {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl TurnContext {
    /// Returns the context as a model reads it.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Items(items) => {
                items.iter().map(ContextItem::text).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

impl ContextItem {
    fn text(&self) -> String {
        match self {
            Self::Text { text } => text.clone(),
            Self::File { path } => format!("The user refers to the file {path}."),
            Self::Selection { path, start_line, end_line, text } => {
                // A fence that is longer than any in the text.
                let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
                let fence = "`".repeat(longest.max(2) + 1);
                format!("{path}, lines {start_line} to {end_line}:\n{fence}\n{text}\n{fence}")
            }
            Self::Diagnostic { path, line, severity, message } => {
                format!("{path}:{line}: {severity}: {message}")
            }
        }
    }
}

/// Input of a turn: a text, or parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Input {
    /// Input of text alone.
    Text(String),
    /// Input of text and images.
    Parts(Vec<Part>),
}

impl Input {
    /// Returns the text of the input, without images.
    pub fn text(&self) -> String {
        match self {
            Input::Text(text) => text.clone(),
            Input::Parts(parts) => {
                let text = parts.iter().filter_map(|part| match part {
                    Part::Text { text } => Some(text.as_str()),
                    Part::Image { .. } => None,
                });
                text.collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// Converts the input to parts.
    pub fn into_parts(self) -> Vec<Part> {
        match self {
            Input::Text(text) => vec![Part::Text { text }],
            Input::Parts(parts) => parts,
        }
    }
}

/// Permissions and limits of a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecutionPolicy {
    /// True if models outside this machine may be used; the daemon's `models.allowExternal` must
    /// also allow it.
    #[serde(default, rename = "allowExternalLLMs")]
    pub allow_external_llms: bool,
    /// True if tools may use the network.
    #[serde(default)]
    pub network: bool,
    /// Names of the only tools that may be called; all registered ones when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<Vec<String>>,
    /// The only paths that tools may access, relative to the root; all when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// Maximum number of model answers; `agent.maxIterations` when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// Maximum number of input and output tokens over all answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Maximum cost in US dollars, by the known prices; `models.maxUsdPerTurn` applies too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_usd: Option<f64>,
    /// Maximum duration in seconds, without the time spent waiting for approvals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Reports tool calls without running them.
    #[serde(default)]
    pub dry_run: bool,
    /// True requests reports on the model's progress in reading its prompt; the daemon's setting
    /// when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_progress: Option<bool>,
    /// Names under which tools are offered; `tools.mode` when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_mode: Option<ToolsMode>,
    /// Mode of the turn, `ask` when omitted. `accept-edits` and `auto` require the right `approve`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ExecutionMode>,
    /// `off` runs commands outside the sandbox, which requires the right `admin` and is noted in
    /// the audit of each command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxUse>,
    /// Settings of this turn that override the configured ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<TurnOverrides>,
}

/// Settings of one turn that override the configured ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TurnOverrides {
    /// Sampling temperature of the answers, 0 to 2, instead of `llm.temperature`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Maximum tokens of one answer, at least 1, instead of `llm.maxTokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_answer_tokens: Option<u32>,
    /// Maximum tokens of the context, at least 1, instead of `context.maxTokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_context_tokens: Option<u32>,
    /// Fill level of the context, 0 to 1, above which older turns are condensed, instead of
    /// `context.compactionThreshold`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_threshold: Option<f64>,
    /// Tokens of the repository map, instead of `context.repoMapTokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_map_tokens: Option<u32>,
    /// Maximum characters of a tool's output for the model, instead of
    /// `context.maxToolOutputChars`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tool_output_chars: Option<u64>,
}

/// Calls that a turn may make without an approval, and whether it may change anything at all.
/// Denials, required confirmations and protected paths apply in every mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExecutionMode {
    /// Only tools that change nothing may be called.
    Plan,
    /// Calls with an effect need an approval, unless a rule allows them.
    #[default]
    Ask,
    /// Edits of files inside the root need no approval.
    AcceptEdits,
    /// Edits of files, and commands that the sandbox confines, need no approval.
    Auto,
}

impl ExecutionMode {
    /// All modes, from the strictest on.
    pub const ALL: [Self; 4] = [Self::Plan, Self::Ask, Self::AcceptEdits, Self::Auto];

    /// Returns its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Auto => "auto",
        }
    }

    /// Returns the mode of this name on the wire.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }

    /// Returns true if calls run without approvals that the mode `ask` requires.
    pub const fn is_raised(self) -> bool {
        matches!(self, Self::AcceptEdits | Self::Auto)
    }
}

/// Confinement of commands in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxUse {
    /// Commands are confined as the configuration says.
    On,
    /// Commands run outside the sandbox.
    Off,
}

/// Parameters that name an active turn; the session's current one when `turnId` is omitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TurnRef {
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
}

/// Parameters of the method `orchestrate.run.steer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SteerParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Text that the model receives before its next answer; at most 16 KiB.
    pub text: String,
}

/// Answer of the method `orchestrate.run.status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunStatus {
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of its latest turn's run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// State of the session.
    pub state: RunState,
    /// Sequence number of the newest record.
    pub head_seq: u64,
    /// Number of turns in the queue behind the active one.
    pub queued: u64,
}

/// Outcome of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The model finished its answer.
    Completed,
    /// The turn failed; `error` holds the reason.
    Failed,
    /// A client cancelled the turn.
    Cancelled,
    /// A call was finally denied, or no approver was available.
    Denied,
    /// The time limit was exceeded. A turn that exceeds its token limit ends as `failed` with the
    /// reason `budget_exceeded`.
    TimedOut,
}

/// Result of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of the turn.
    pub turn_id: String,
    /// Id of the run.
    pub run_id: RunId,
    /// Outcome of the turn.
    pub status: Outcome,
    /// Last visible text of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_output: Option<String>,
    /// Token usage of all answers.
    pub usage: TokenUsage,
    /// All tool calls in order.
    pub tool_trace: Vec<ToolTrace>,
    /// Reason why the turn did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// Metadata that the client sent with the turn.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// One tool call of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolTrace {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub tool: String,
    /// Outcome of the call: `ok`, or the reason of its failure.
    pub outcome: String,
    /// Duration in milliseconds, including the wait for an approval.
    pub millis: u64,
}

/// Reason why a turn did not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunError {
    /// Stable reason, as in the error table.
    pub reason: String,
    /// Message for a person.
    pub message: String,
    /// True if the same turn may succeed later.
    pub retryable: bool,
    /// Advice on how to resolve the failure.
    pub hint: String,
}

/// The model that a session uses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelChoice {
    /// Name of the provider in Cairn.
    pub provider: String,
    /// Name of the model at the provider.
    pub model: String,
    /// URL of the endpoint, when it differs from the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
}

/// A provider as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderInfo {
    /// Name of the provider.
    pub name: String,
    /// URL of the provider's endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// True if requests leave this machine.
    pub external: bool,
    /// True if the provider can currently be called.
    pub available: bool,
    /// Reason why the provider is unavailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Name of the model used when a request names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// True if the provider accepts images, although a model may still refuse them. Always false
    /// for an unavailable provider.
    #[serde(default)]
    pub images: bool,
}

/// Parameters of the method `provider.current`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderCurrentParams {
    /// Id of the session; the daemon's default model when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Parameters of the method `provider.set`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderSetParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Name of the provider; the session's own when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Name of the model; the provider's default when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// URL of another endpoint, to which no key configured for the regular one is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
}

/// Answer of the method `provider.set`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderSet {
    /// The model that the session now uses.
    #[serde(flatten)]
    pub choice: ModelChoice,
    /// Context size of the model in tokens, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Warnings for the user, such as a smaller context than before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Parameters of the method `model.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelListParams {
    /// Name of the provider; the configured one when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

/// Answer of the method `session.compress`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compressed {
    /// Tokens of the conversation before, as counted by the daemon.
    pub tokens_before: u64,
    /// Tokens after; unchanged when there was nothing to condense.
    pub tokens_after: u64,
}
