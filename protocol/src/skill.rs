//! Skills: what an agent is told for a kind of work, and the tools it has for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A skill's `skill.json`. The folder it lies in bears its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SkillFile {
    /// Its name: letters, digits, `-` and `_`, at most 64.
    pub id: String,
    /// Its version, as its author counts.
    #[serde(default)]
    pub version: String,
    /// One line.
    #[serde(default)]
    pub description: String,
    /// What the agent is told, at most 16 KiB; `prompt.md` beside the file when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_block: Option<String>,
    /// Names of tools it uses. While all of them are switched off or missing, the skill is off.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Rules that hold while it is on; they can only tighten.
    #[serde(default)]
    pub policy: SkillPolicy,
}

/// Rules of a skill, written as in `permissions`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SkillPolicy {
    /// Refused.
    pub deny: Vec<String>,
    /// Asked about.
    pub confirm: Vec<String>,
}

/// A skill as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillInfo {
    /// What its file says.
    pub skill: SkillFile,
    /// Whether the agent is told of it.
    pub enabled: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The folder it comes from; absent for one that is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}
