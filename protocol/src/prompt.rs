//! The system text of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::SessionId;

/// Parameters of `prompt.set`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PromptSetParams {
    /// The session; its conversation is emptied.
    pub session_id: SessionId,
    /// Stands in place of the built-in base; the empty text for no base. When omitted, the built-in one is back and nothing
    /// is appended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
}

/// Parameters of `prompt.append`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PromptAppendParams {
    /// The session.
    pub session_id: SessionId,
    /// What goes after the tools' own texts; at most 16 KiB of it are used.
    pub text: String,
}

/// A resolved system text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptShown {
    /// The text as the model gets it.
    pub system: String,
}
