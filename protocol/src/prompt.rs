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

/// How questions of fact are answered: in the prompt, in the tools' texts and in what MCP clients are told, it is the same
/// four steps.
pub const KNOWLEDGE_LOOP: &str = "For questions of fact: 1. look into memory first; 2. search the web too, even when memory had \
something; 3. put both together and prefer what is newer and better founded; 4. store what is new and will stay true.";

/// Which tools write, and which must not: the same for our agents and for those of MCP clients.
pub const WRITING: &str = "Files are written and edited with the file tools alone, or with the shell for what they cannot do. \
`evaluate` computes: it may read files of the workspace and writes nothing.";
