//! Tools as clients see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::SessionId;

/// A registered tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    /// Its name.
    pub name: String,
    /// One line: what a model is told of it.
    #[serde(default)]
    pub short: String,
    /// All there is to say.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: serde_json::Value,
    /// True when it changes nothing outside Cairn's own state.
    pub read_only: bool,
    /// True when it uses the network.
    pub network: bool,
    /// True when models are not offered it: another tool does the same for them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

/// Parameters of `tool.call`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolCallParams {
    /// The session it is recorded in.
    pub session_id: SessionId,
    /// The tool.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: serde_json::Value,
}

/// A tool's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// Whether it did what was asked.
    pub ok: bool,
    /// The output; `null` on failure.
    pub output: serde_json::Value,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolFailure>,
    /// What `output` is and what was cut.
    pub meta: ToolMeta,
}

/// Why a tool call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolFailure {
    /// Stable reason, as in the error table.
    pub reason: String,
    /// For people.
    pub message: String,
    /// Whether the same again may succeed.
    pub retryable: bool,
}

/// About a tool's output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolMeta {
    /// The type of `output`.
    pub tag: String,
    /// True when it was cut at a limit.
    pub truncated: bool,
    /// Milliseconds.
    pub millis: u64,
}

/// A rule that somebody granted for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantedRule {
    /// The rule, as in `permissions.allow`.
    pub rule: String,
    /// The client that answered.
    pub granted_by: String,
    /// When.
    pub granted_at: crate::time::Timestamp,
}

/// Parameters of `permission.revoke`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevokeParams {
    /// The rule, as `permission.list` tells it.
    pub rule: String,
}

/// Under which names models are offered what tools do with files, the web and memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolsMode {
    /// Each by its own name.
    #[default]
    Split,
    /// `fs`, `web` and `memory`, which take the operation as an argument, in place of what they stand for.
    Unified,
    /// Both ways.
    Both,
}

/// Tools that take the operation as an argument.
const UNIFIED: &[&str] = &["fs", "web", "memory"];
/// What they stand for.
const SPLIT: &[&str] = &[
    "read_file",
    "write_file",
    "edit_file",
    "delete_file",
    "list_files",
    "search_files",
    "web_fetch",
    "web_search",
    "memory_search",
    "memory_list",
    "memory_keywords",
    "memory_load",
    "memory_save",
    "memory_append",
    "memory_delete",
];

impl ToolsMode {
    /// Whether models are not offered the tool of that name in this mode.
    pub fn hides(self, name: &str) -> bool {
        match self {
            Self::Split => UNIFIED.contains(&name),
            Self::Unified => SPLIT.contains(&name),
            Self::Both => false,
        }
    }

    /// Whether the mode has anything to say of the tool of that name.
    pub fn governs(name: &str) -> bool {
        UNIFIED.contains(&name) || SPLIT.contains(&name)
    }
}
