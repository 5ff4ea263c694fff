//! The system text of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{id::SessionId, turn::ExecutionPolicy};

/// Parameters of the method `prompt.set`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PromptSetParams {
    /// Id of the session, whose conversation is cleared.
    pub session_id: SessionId,
    /// Text that replaces the built-in base; an empty text removes the base. When omitted, the
    /// built-in base is restored and appended text is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
}

/// Parameters of the method `prompt.append`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PromptAppendParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Text appended after the tools' own texts; at most 16 KiB of it are used.
    pub text: String,
}

/// Parameters of the method `prompt.show`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PromptShowParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Permissions and limits of the turn whose text is returned; they decide which tools it lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<ExecutionPolicy>,
}

/// The resolved system text of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptShown {
    /// The text as the model receives it.
    pub system: String,
}

/// Four steps for answering questions of fact, the same in the prompt and in the tools' texts.
pub const KNOWLEDGE_LOOP: &str = "For questions of fact: 1. search memory first; 2. search the web too, \
    even if memory had a result; 3. combine both and prefer newer, better supported facts; 4. store new \
    facts that will stay true.";

/// Rules on which tools may write files.
pub const WRITING: &str = "Write and edit files with the file tools; use the shell only for what they \
    cannot do. `evaluate` computes: it may read files of the workspace and writes nothing.";
