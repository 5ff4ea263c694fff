//! The typed commands of an agent. Each variant is one registered tool; its name is the tag.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{content, git, search};

/// A command. Tags are snake_case; the camelCase tags of older clients are accepted on input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentCmd {
    /// Lists the entries of a folder.
    #[serde(alias = "fsListDir")]
    FsListDir(content::ListDirParams),
    /// Reads a bounded range of lines.
    #[serde(alias = "contentGetSpan")]
    ContentGetSpan(content::SpanParams),
    /// Declares a clone as a root and indexes it; a root that is already declared stays unchanged.
    #[serde(alias = "indexAddRoot")]
    IndexAddRoot(IndexAddRoot),
    /// Updates the index of the session's root and waits until it is complete.
    #[serde(alias = "indexBuild")]
    IndexBuild(IndexBuild),
    /// Searches lines for a literal text or a regular expression.
    #[serde(alias = "searchGrep")]
    SearchGrep(search::GrepParams),
    /// Searches by meaning (dense vectors).
    #[serde(alias = "searchSemantic")]
    SearchSemantic(search::SearchParams),
    /// Searches by words and by meaning, and fuses both lists.
    #[serde(alias = "searchHybrid")]
    SearchHybrid(search::SearchParams),
    /// Clones a repository into the workspaces folder.
    #[serde(alias = "gitClone")]
    GitClone(git::CloneParams),
    /// Returns branch, head and changed files of a repository.
    #[serde(alias = "gitStatus")]
    GitStatus(git::GitStatusParams),
    /// Sends one request to a model.
    #[serde(alias = "llmCall")]
    LlmCall(LlmCall),
    /// Calls any other registered tool by its name.
    ToolCall(ToolCall),
}

/// Arguments of the tool `index_add_root`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IndexAddRoot {
    /// Absolute path of the folder.
    pub path: String,
}

/// Arguments of the tool `index_build`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IndexBuild {
    /// Maximum number of indexes that run at once, including this one; while more are running, the
    /// build waits for them first. Unlimited when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// Maximum time to wait, in seconds, up to 600; the answer then holds the state reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
}

/// Arguments of the tool `llm_call`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LlmCall {
    /// Name of the provider; the session's own when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// System text of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Text of the request.
    pub prompt: String,
    /// Registered type that the answer must match: `ExplorePlan` or `ExploreSummary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expects_type: Option<String>,
    /// Emits a typed answer while it is written, as `structured_snapshot` events; requires
    /// `expectsType`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stream_structured: bool,
    /// Limits and options of the model request.
    #[serde(default)]
    pub policy: LlmPolicy,
}

/// Limits and options of a model request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LlmPolicy {
    /// Sampling temperature, 0 to 2; the provider's default when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Maximum tokens of the answer, at most 8,192; 1,024 when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Name of the model; the provider's default when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// True if models outside this machine may be used; the daemon's `models.allowExternal` must
    /// also allow it.
    #[serde(default, rename = "allowExternalLLMs", skip_serializing_if = "std::ops::Not::not")]
    pub allow_external_llms: bool,
}

/// A call of a tool by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Name of the tool, as in `tool.list`.
    pub name: String,
    /// Arguments that match the tool's input schema.
    #[serde(default)]
    pub arguments: serde_json::Value,
}

impl AgentCmd {
    /// Converts the command to the name of its tool and the arguments.
    pub fn into_call(self) -> ToolCall {
        if let AgentCmd::ToolCall(call) = self {
            return call;
        }
        let mut value = serde_json::to_value(self).unwrap_or_default();
        let tag = value.as_object_mut().and_then(|o| o.remove("type"));
        let name = tag.and_then(|t| t.as_str().map(str::to_owned)).unwrap_or_default();
        ToolCall { name, arguments: value }
    }

    /// Returns the typed command for a call, or the call itself when its tool has no typed form.
    pub fn from_call(call: ToolCall) -> AgentCmd {
        let mut value = call.arguments.clone();
        if let Some(object) = value.as_object_mut() {
            object.insert("type".into(), call.name.clone().into());
        }
        match serde_json::from_value(value) {
            Ok(AgentCmd::ToolCall(_)) | Err(_) => AgentCmd::ToolCall(call),
            Ok(typed) => typed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legacy_tags_are_parsed_and_current_ones_written() {
        let cmd: AgentCmd =
            serde_json::from_str(r#"{"type":"fsListDir","path":"src","depth":2}"#).unwrap();
        let text = serde_json::to_string(&cmd).unwrap();
        assert!(text.starts_with(r#"{"type":"fs_list_dir","path":"src","depth":2"#), "{text}");
    }

    #[test]
    fn call_converts_to_its_command() {
        let call =
            ToolCall { name: "git_status".into(), arguments: serde_json::json!({"path": "."}) };
        let cmd = AgentCmd::from_call(call.clone());
        assert!(matches!(cmd, AgentCmd::GitStatus(_)));
        assert_eq!(cmd.into_call(), call);
        let other = ToolCall { name: "rank_files".into(), arguments: serde_json::json!({"k": 3}) };
        assert_eq!(AgentCmd::from_call(other.clone()), AgentCmd::ToolCall(other));
    }
}
