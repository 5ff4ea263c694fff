//! Skills: instructions and tools of an agent for one kind of task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Content of a skill's `skill.json`; the skill's folder has the same name as its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SkillFile {
    /// Id of the skill: letters, digits, `-` and `_`, at most 64.
    pub id: String,
    /// Version of the skill, in its author's numbering.
    #[serde(default)]
    pub version: String,
    /// Description in one line.
    #[serde(default)]
    pub description: String,
    /// Instructions for the agent, at most 16 KiB; the file `prompt.md` beside it when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_block: Option<String>,
    /// Names of the tools that the skill uses. The skill is disabled while all of them are
    /// disabled or missing.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Rules that apply while the skill is enabled; they can only tighten the policy.
    #[serde(default)]
    pub policy: SkillPolicy,
}

/// Rules of a skill, in the syntax of `permissions`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SkillPolicy {
    /// Rules for calls that are refused.
    pub deny: Vec<String>,
    /// Rules for calls that require an approval.
    pub confirm: Vec<String>,
}

/// A skill as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillInfo {
    /// Content of the skill's file.
    pub skill: SkillFile,
    /// True if the skill is part of the agent's instructions.
    pub enabled: bool,
    /// Reason why the skill is disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Folder that the skill comes from; absent for a built-in skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}
