//! Tools as clients see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::SessionId;

/// Description of a registered tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    /// Name of the tool.
    pub name: String,
    /// Short description in one line, for models.
    #[serde(default)]
    pub short: String,
    /// Complete description of the tool.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: serde_json::Value,
    /// True when the tool changes nothing outside Cairn's own state.
    pub read_only: bool,
    /// True when the tool uses the network.
    pub network: bool,
    /// True when the tool is not offered to models because another tool does the same for them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

/// Parameters of the method `tool.call`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolCallParams {
    /// Id of the session that records the call.
    pub session_id: SessionId,
    /// Name of the tool.
    pub name: String,
    /// Arguments of the call.
    #[serde(default)]
    pub arguments: serde_json::Value,
}

/// Result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// True if the call succeeded.
    pub ok: bool,
    /// Output of the tool; `null` on failure.
    pub output: serde_json::Value,
    /// The failure, if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolFailure>,
    /// Type of `output`, and its truncation.
    pub meta: ToolMeta,
}

/// Reason why a tool call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolFailure {
    /// Stable reason, as in the error table.
    pub reason: String,
    /// Message for a person.
    pub message: String,
    /// True if the same call may succeed later.
    pub retryable: bool,
}

/// Metadata of a tool's output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolMeta {
    /// Type of the `output`.
    pub tag: String,
    /// True when the output was cut at a limit.
    pub truncated: bool,
    /// Duration of the call in milliseconds.
    pub millis: u64,
}

/// A rule that was granted permanently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantedRule {
    /// The rule, as in `permissions.allow`.
    pub rule: String,
    /// Folder of the project in which it applies; absent for a rule that applies in every project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Name of the client that granted the rule.
    pub granted_by: String,
    /// Time of the grant.
    pub granted_at: crate::time::Timestamp,
}

/// Parameters of the method `permission.revoke`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevokeParams {
    /// The rule, as returned by `permission.list`.
    pub rule: String,
    /// Folder of a project: only the rule of that project is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// Parameters of the method `permission.narrow`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NarrowParams {
    /// The rule, as returned by `permission.list`.
    pub rule: String,
    /// The rule that replaces it. It must cover nothing that the first one does not.
    pub to: String,
    /// Folder of a project: only the rule of that project is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// Maximum characters of a tool's name: the limit of OpenAI and Anthropic.
const MAX_TOOL_NAME: usize = 64;

/// True if every model provider accepts the name of a tool: `^[a-zA-Z0-9_-]{1,64}$`.
pub fn is_tool_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=MAX_TOOL_NAME).contains(&name.len()) && name.chars().all(is_plain)
}

/// Names under which models are offered the tools for files, the web and memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolsMode {
    /// Each tool by its own name.
    #[default]
    Split,
    /// `fs`, `web` and `memory`, which take the operation as an argument and replace the separate
    /// tools.
    Unified,
    /// Both the separate and the unified tools.
    Both,
}

/// Tools that take the operation as an argument.
const UNIFIED: &[&str] = &["fs", "web", "memory"];
/// Separate tools that the unified ones replace.
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
    /// Returns true if models are not offered the tool of that name in this mode.
    pub fn hides(self, name: &str) -> bool {
        match self {
            Self::Split => UNIFIED.contains(&name),
            Self::Unified => SPLIT.contains(&name),
            Self::Both => false,
        }
    }

    /// Returns true if the mode affects the tool of that name.
    pub fn governs(name: &str) -> bool {
        UNIFIED.contains(&name) || SPLIT.contains(&name)
    }
}
