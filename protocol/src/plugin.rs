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
            | Self::AfterModel { session_id, .. } => session_id,
        }
    }
}

/// Answer of a plugin; an empty object or no output lets the operation continue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HookAnswer {
    /// Reason for refusing the operation of `before_tool` or `before_model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuse: Option<String>,
}
