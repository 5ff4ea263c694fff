//! Hooks of plugins and their events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    id::{RunId, SessionId},
    model::TokenUsage,
};

/// A point in the life of a session at which plugins are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    /// A session was created, or resumed after an interruption.
    SessionStart,
    /// A session was archived or deleted.
    SessionStop,
    /// A tool call passed the rules and is about to run; a plugin may refuse it.
    BeforeTool,
    /// A tool call has finished.
    AfterTool,
    /// A model request is about to be sent; a plugin may refuse it.
    BeforeModel,
    /// A model request succeeded or failed.
    AfterModel,
    /// A user's message is about to start a turn; a plugin may refuse it or add context.
    UserPrompt,
    /// The agent is about to end its turn; a refusal is its next instruction.
    TurnStop,
    /// A subagent has ended.
    SubagentStop,
    /// The conversation is about to be condensed.
    BeforeCompact,
    /// The user's attention is needed.
    Notification,
}

/// Event for a plugin: one JSON object with the hook's name as `hook`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase", tag = "hook")]
pub enum HookEvent {
    /// Event of the hook [`Hook::SessionStart`].
    SessionStart {
        /// Id of the session.
        session_id: SessionId,
        /// Path of the session's root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root: Option<String>,
    },
    /// Event of the hook [`Hook::SessionStop`].
    SessionStop {
        /// Id of the session.
        session_id: SessionId,
    },
    /// Event of the hook [`Hook::BeforeTool`].
    BeforeTool {
        /// Id of the session.
        session_id: SessionId,
        /// Name of the tool.
        tool: String,
        /// Arguments of the call.
        arguments: serde_json::Value,
    },
    /// Event of the hook [`Hook::AfterTool`].
    AfterTool {
        /// Id of the session.
        session_id: SessionId,
        /// Name of the tool.
        tool: String,
        /// Outcome of the call: `ok`, or the reason of its failure.
        outcome: String,
        /// Duration of the call, in milliseconds.
        millis: u64,
        /// Arguments of the call.
        #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
        arguments: serde_json::Value,
        /// Output of a call that succeeded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<serde_json::Value>,
    },
    /// Event of the hook [`Hook::BeforeModel`].
    BeforeModel {
        /// Id of the session.
        session_id: SessionId,
        /// Id of the turn's run.
        run_id: RunId,
        /// Name of the provider.
        provider: String,
        /// Name of the model.
        model: String,
        /// Number of messages in the conversation.
        messages: u64,
    },
    /// Event of the hook [`Hook::AfterModel`].
    AfterModel {
        /// Id of the session.
        session_id: SessionId,
        /// Id of the turn's run.
        run_id: RunId,
        /// Outcome of the request: `ok`, or the reason of the failure.
        outcome: String,
        /// Token usage, if the request succeeded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<TokenUsage>,
    },
    /// Event of the hook [`Hook::UserPrompt`].
    UserPrompt {
        /// Id of the session.
        session_id: SessionId,
        /// Text of the message.
        prompt: String,
    },
    /// Event of the hook [`Hook::TurnStop`].
    TurnStop {
        /// Id of the session.
        session_id: SessionId,
        /// True if the turn continues already because a plugin refused its end.
        active: bool,
        /// Last text of the model.
        text: String,
    },
    /// Event of the hook [`Hook::SubagentStop`].
    SubagentStop {
        /// Id of the parent's session.
        session_id: SessionId,
        /// Id of the subagent's session.
        agent: SessionId,
    },
    /// Event of the hook [`Hook::BeforeCompact`].
    BeforeCompact {
        /// Id of the session.
        session_id: SessionId,
    },
    /// Event of the hook [`Hook::Notification`].
    Notification {
        /// Id of the session.
        session_id: SessionId,
        /// Text for the user.
        message: String,
    },
}

impl HookEvent {
    /// Returns the hook of this event.
    pub fn hook(&self) -> Hook {
        match self {
            Self::SessionStart { .. } => Hook::SessionStart,
            Self::SessionStop { .. } => Hook::SessionStop,
            Self::BeforeTool { .. } => Hook::BeforeTool,
            Self::AfterTool { .. } => Hook::AfterTool,
            Self::BeforeModel { .. } => Hook::BeforeModel,
            Self::AfterModel { .. } => Hook::AfterModel,
            Self::UserPrompt { .. } => Hook::UserPrompt,
            Self::TurnStop { .. } => Hook::TurnStop,
            Self::SubagentStop { .. } => Hook::SubagentStop,
            Self::BeforeCompact { .. } => Hook::BeforeCompact,
            Self::Notification { .. } => Hook::Notification,
        }
    }

    /// Returns the session that the event belongs to.
    pub fn session(&self) -> &SessionId {
        match self {
            Self::SessionStart { session_id, .. }
            | Self::SessionStop { session_id }
            | Self::BeforeTool { session_id, .. }
            | Self::AfterTool { session_id, .. }
            | Self::BeforeModel { session_id, .. }
            | Self::AfterModel { session_id, .. }
            | Self::UserPrompt { session_id, .. }
            | Self::TurnStop { session_id, .. }
            | Self::SubagentStop { session_id, .. }
            | Self::BeforeCompact { session_id }
            | Self::Notification { session_id, .. } => session_id,
        }
    }
}

/// Answer of a plugin; an empty object or no output lets the operation continue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HookAnswer {
    /// Reason for refusing the operation of `before_tool`, `before_model`, `user_prompt` or
    /// `turn_stop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuse: Option<String>,
    /// Reason for requesting an approval of a call that the rules allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// True to allow a call that would be asked about by default. It has an effect for hooks of
    /// the user alone, where `hooks.mayAllow` is set.
    pub allow: bool,
    /// Arguments in place of those of a call; the rules decide about them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<serde_json::Value>,
    /// Text for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Text for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// Reason for ending the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
}

/// A folder of skills, MCP servers, commands and hooks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginInfo {
    /// Name of the plugin.
    pub name: String,
    /// Version in its author's numbering.
    #[serde(default)]
    pub version: String,
    /// Description in one line.
    #[serde(default)]
    pub description: String,
    /// Path of its folder.
    pub folder: String,
    /// Names of its skills.
    #[serde(default)]
    pub skills: Vec<String>,
    /// Names of its MCP servers.
    #[serde(default)]
    pub mcp_servers: Vec<String>,
    /// Names of its commands.
    #[serde(default)]
    pub commands: Vec<String>,
    /// Events that its hooks handle.
    #[serde(default)]
    pub hooks: Vec<String>,
    /// Reason why it is not loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
