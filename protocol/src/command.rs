//! The typed commands of an agent. Each variant is one registered tool; its name is the tag.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{content, git, search};

/// A command. Tags are snake_case; the camelCase tags of older clients are accepted on input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentCmd {
    /// Lists a folder.
    #[serde(alias = "fsListDir")]
    FsListDir(content::ListDirParams),
    /// Reads a bounded range of lines.
    #[serde(alias = "contentGetSpan")]
    ContentGetSpan(content::SpanParams),
    /// Makes a root of a clone and indexes it; a declared root stays as it is.
    #[serde(alias = "indexAddRoot")]
    IndexAddRoot(IndexAddRoot),
    /// Brings the index of the session's root up to date and waits for it.
    #[serde(alias = "indexBuild")]
    IndexBuild(IndexBuild),
    /// Literal or regular-expression search over lines.
    #[serde(alias = "searchGrep")]
    SearchGrep(search::GrepParams),
    /// Search by meaning.
    #[serde(alias = "searchSemantic")]
    SearchSemantic(search::SearchParams),
    /// Search by words and meaning, fused.
    #[serde(alias = "searchHybrid")]
    SearchHybrid(search::SearchParams),
    /// Clones a repository into the workspaces folder.
    #[serde(alias = "gitClone")]
    GitClone(git::CloneParams),
    /// Branch, head and changed files of a repository.
    #[serde(alias = "gitStatus")]
    GitStatus(git::GitStatusParams),
    /// Asks a model one question.
    #[serde(alias = "llmCall")]
    LlmCall(LlmCall),
    /// Any other registered tool, by name.
    ToolCall(ToolCall),
}

/// Arguments of `index_add_root`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IndexAddRoot {
    /// Absolute path of the folder.
    pub path: String,
}

/// Arguments of `index_build`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IndexBuild {
    /// Indexes at work at once at most, this one among them: with as many others at work the build waits for them first.
    /// As many as there are when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// Seconds to wait at most, up to 600; then the answer is the state reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
}

/// Arguments of `llm_call`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LlmCall {
    /// The provider; the session's own when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The system text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// What is asked.
    pub prompt: String,
    /// The registered type that the answer must be: `ExplorePlan` or `ExploreSummary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expects_type: Option<String>,
    /// Whether a typed answer is told while it is written, as `structured_snapshot` events; needs `expectsType`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stream_structured: bool,
    /// How the model is asked.
    #[serde(default)]
    pub policy: LlmPolicy,
}

/// How a model is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LlmPolicy {
    /// 0 to 2; the provider's own when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Tokens of the answer, at most 8,192; 1,024 when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The model; the provider's default when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether a model outside this machine may be asked. The daemon's `models.allowExternal` must say so too.
    #[serde(default, rename = "allowExternalLLMs", skip_serializing_if = "std::ops::Not::not")]
    pub allow_external_llms: bool,
}

/// A call of a tool by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Name in `tool.list`.
    pub name: String,
    /// Arguments, by the tool's input schema.
    #[serde(default)]
    pub arguments: serde_json::Value,
}

impl AgentCmd {
    /// The tool this command calls and its arguments.
    pub fn into_call(self) -> ToolCall {
        if let AgentCmd::ToolCall(call) = self {
            return call;
        }
        let mut value = serde_json::to_value(self).unwrap_or_default();
        let tag = value.as_object_mut().and_then(|o| o.remove("type"));
        let name = tag.and_then(|t| t.as_str().map(str::to_owned)).unwrap_or_default();
        ToolCall { name, arguments: value }
    }

    /// The typed command for a call, or the call itself when its tool has no typed form.
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
    fn seed_tags_are_read_and_ours_written() {
        let cmd: AgentCmd = serde_json::from_str(r#"{"type":"fsListDir","path":"src","depth":2}"#).unwrap();
        let text = serde_json::to_string(&cmd).unwrap();
        assert!(text.starts_with(r#"{"type":"fs_list_dir","path":"src","depth":2"#), "{text}");
    }

    #[test]
    fn a_call_is_its_command() {
        let call = ToolCall { name: "git_status".into(), arguments: serde_json::json!({"path": "."}) };
        let cmd = AgentCmd::from_call(call.clone());
        assert!(matches!(cmd, AgentCmd::GitStatus(_)));
        assert_eq!(cmd.into_call(), call);
        let other = ToolCall { name: "rank_files".into(), arguments: serde_json::json!({"k": 3}) };
        assert_eq!(AgentCmd::from_call(other.clone()), AgentCmd::ToolCall(other));
    }
}
