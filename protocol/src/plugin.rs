//! What plugins are told of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    id::{RunId, SessionId},
    model::TokenUsage,
};

/// A place in the life of a session where plugins are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    /// A session was made, or goes on after an interruption.
    SessionStart,
    /// A session was put away or deleted.
    SessionStop,
    /// A tool is about to be called; the rules do not refuse it. A plugin may.
    BeforeTool,
    /// A tool call ended.
    AfterTool,
    /// A model is about to be asked. A plugin may refuse it.
    BeforeModel,
    /// A model's answer came, or failed to come.
    AfterModel,
}

/// What a plugin is told: one JSON object with the hook's name as `hook`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase", tag = "hook")]
pub enum HookEvent {
    /// See [`Hook::SessionStart`].
    SessionStart {
        /// The session.
        session_id: SessionId,
        /// The root it works in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root: Option<String>,
    },
    /// See [`Hook::SessionStop`].
    SessionStop {
        /// The session.
        session_id: SessionId,
    },
    /// See [`Hook::BeforeTool`].
    BeforeTool {
        /// The session.
        session_id: SessionId,
        /// The tool.
        tool: String,
        /// Its arguments.
        arguments: serde_json::Value,
    },
    /// See [`Hook::AfterTool`].
    AfterTool {
        /// The session.
        session_id: SessionId,
        /// The tool.
        tool: String,
        /// `ok`, or the reason of its failure.
        outcome: String,
        /// Time it took, in milliseconds.
        millis: u64,
    },
    /// See [`Hook::BeforeModel`].
    BeforeModel {
        /// The session.
        session_id: SessionId,
        /// The turn.
        run_id: RunId,
        /// Provider.
        provider: String,
        /// Model.
        model: String,
        /// Messages of the conversation.
        messages: u64,
    },
    /// See [`Hook::AfterModel`].
    AfterModel {
        /// The session.
        session_id: SessionId,
        /// The turn.
        run_id: RunId,
        /// `ok`, or the reason of the failure.
        outcome: String,
        /// Tokens, when it answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<TokenUsage>,
    },
}

impl HookEvent {
    /// Which hook it is.
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

    /// The session it is about.
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

/// What a plugin answers; an empty object, or nothing, lets things go on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HookAnswer {
    /// Refuses what `before_tool` or `before_model` told of, with the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuse: Option<String>,
}
