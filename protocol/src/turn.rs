//! Turns: what a run of an agent is asked, may do, and ends with.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    explore::RunState,
    id::{RunId, SessionId},
    model::{Part, TokenUsage},
    tool::ToolsMode,
};

/// Parameters of `orchestrate.run.start`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunStartParams {
    /// The session.
    pub session_id: SessionId,
    /// The client's name for the turn, 1 to 128 bytes: the same again returns the first receipt.
    pub turn_id: String,
    /// What is asked.
    pub input: Input,
    /// What the model should know beside it; goes before the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// What the turn may do and how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<ExecutionPolicy>,
    /// Kept with the turn and returned as it is; at most 32 entries.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// The input of a turn: a text, or parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Input {
    /// Text alone.
    Text(String),
    /// Text and images.
    Parts(Vec<Part>),
}

impl Input {
    /// The text of it, without images.
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

    /// As parts.
    pub fn into_parts(self) -> Vec<Part> {
        match self {
            Input::Text(text) => vec![Part::Text { text }],
            Input::Parts(parts) => parts,
        }
    }
}

/// What a turn may do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecutionPolicy {
    /// Whether models outside this machine may be asked. The daemon's `models.allowExternal` must say so too.
    #[serde(default, rename = "allowExternalLLMs")]
    pub allow_external_llms: bool,
    /// Whether tools may use the network.
    #[serde(default)]
    pub network: bool,
    /// The only tools that may be called; all registered ones when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<Vec<String>>,
    /// The only paths that may be touched, relative to the root; everything when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// Answers of the model at most; `agent.max_iterations` when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// Tokens in and out at most, over all answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Seconds at most, the waiting for approvals left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Tool calls are shown and not made.
    #[serde(default)]
    pub dry_run: bool,
    /// Whether the model is asked how far it is in reading its prompt; as the daemon has it when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_progress: Option<bool>,
    /// Under which names tools are offered; `tools.mode` when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_mode: Option<ToolsMode>,
    /// `off` runs commands outside the sandbox. Needs the right `admin`, and the audit says so of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxUse>,
    /// Settings of this turn in place of the configured ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<TurnOverrides>,
}

/// Settings of one turn in place of those that the configuration has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TurnOverrides {
    /// Randomness of the answers, 0 to 2, in place of `llm.temperature`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Tokens of one answer, at least 1, in place of `llm.max_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_answer_tokens: Option<u32>,
    /// Tokens of the context, at least 1, in place of `context.max_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_context_tokens: Option<u32>,
    /// Part of the context, 0 to 1, after which older turns are condensed, in place of `context.compaction_threshold`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_threshold: Option<f64>,
    /// Tokens of the repository map, in place of `context.repo_map_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_map_tokens: Option<u32>,
    /// Characters of a tool's output that the model gets, in place of `context.max_tool_output_chars`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tool_output_chars: Option<u64>,
}

/// Whether commands are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxUse {
    /// As the configuration says.
    On,
    /// Not at all.
    Off,
}

/// Parameters that name a turn at work; the session's current one when `turnId` is omitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TurnRef {
    /// The session.
    pub session_id: SessionId,
    /// The turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
}

/// Parameters of `orchestrate.run.steer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SteerParams {
    /// The session.
    pub session_id: SessionId,
    /// What the model should hear before its next answer; at most 16 KiB.
    pub text: String,
}

/// Answer of `orchestrate.run.status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunStatus {
    /// The session.
    pub session_id: SessionId,
    /// Its latest turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// State of the session.
    pub state: RunState,
    /// Sequence number of the newest record.
    pub head_seq: u64,
    /// Turns that wait behind the one at work.
    pub queued: u64,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The model was done.
    Completed,
    /// Something failed; `error` tells what.
    Failed,
    /// A client stopped it.
    Cancelled,
    /// A call was denied for good, or nobody could be asked.
    Denied,
    /// Its time was used up. A turn whose tokens were used up `failed` with the reason `budget_exceeded`.
    TimedOut,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// The session.
    pub session_id: SessionId,
    /// The turn.
    pub turn_id: String,
    /// The run.
    pub run_id: RunId,
    /// How it ended.
    pub status: Outcome,
    /// The model's last visible text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_output: Option<String>,
    /// Tokens of all answers.
    pub usage: TokenUsage,
    /// Every tool call, in order.
    pub tool_trace: Vec<ToolTrace>,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// What the client sent with the turn.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// One tool call of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolTrace {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// `ok`, or the reason of its failure.
    pub outcome: String,
    /// Milliseconds, the waiting for approval among them.
    pub millis: u64,
}

/// Why a turn did not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunError {
    /// Stable reason, as in the error table.
    pub reason: String,
    /// For people.
    pub message: String,
    /// Whether the same again may succeed.
    pub retryable: bool,
    /// The way out.
    pub hint: String,
}

/// Which model a session talks to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelChoice {
    /// The provider's name here.
    pub provider: String,
    /// The model there.
    pub model: String,
    /// Where it is called, when that is not the configured place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
}

/// A provider as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderInfo {
    /// Its name.
    pub name: String,
    /// Where it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Whether calling it leaves this machine.
    pub external: bool,
    /// Whether it can be called as things are; else why not.
    pub available: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The model it is called with when none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// Whether images can be sent to it; a model there may still refuse them. `false` for one that cannot be called.
    #[serde(default)]
    pub images: bool,
}

/// Parameters of `provider.current`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderCurrentParams {
    /// The session; the daemon's default when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Parameters of `provider.set`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderSetParams {
    /// The session.
    pub session_id: SessionId,
    /// The provider; the session's own when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model; the provider's default when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Another place to call it; no key that was set up for the configured one goes there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
}

/// Answer of `provider.set`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderSet {
    /// What the session talks to now.
    #[serde(flatten)]
    pub choice: ModelChoice,
    /// Tokens of its context, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// What the user should know: a smaller context than before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Parameters of `model.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelListParams {
    /// The provider; the configured one when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

/// Answer of `session.compress`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compressed {
    /// Tokens of the conversation before, as counted here.
    pub tokens_before: u64,
    /// Tokens after; the same as before when there was nothing to condense.
    pub tokens_after: u64,
}
