//! `read_skill`: the text of a skill. The system text has only names and descriptions.

use std::sync::{Arc, Weak};

use cairn_harness::{Output, Permit, Tool, ToolSpec, arguments};
use cairn_protocol::error::{Failure, Reason};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Engine, engine::Inner};

/// Arguments of the tool `read_skill`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadSkill {
    /// Name of the skill, as listed under Skills.
    name: String,
}

/// The tool. It fails once its engine has been dropped.
struct SkillReader {
    engine: Weak<Inner>,
}

/// Creates the tool for the registry of `engine`.
pub fn tool(engine: &Arc<Inner>) -> Arc<dyn Tool> {
    Arc::new(SkillReader { engine: Arc::downgrade(engine) })
}

#[async_trait::async_trait]
impl Tool for SkillReader {
    fn spec(&self) -> ToolSpec {
        let text = "Returns the text of a skill. Read it before you do what the skill describes.";
        ToolSpec { paths: &[], ..ToolSpec::reading::<ReadSkill>("read_skill", text) }
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let ReadSkill { name } = arguments(value)?;
        let inner = self
            .engine
            .upgrade()
            .ok_or_else(|| Failure::new(Reason::Internal, "the engine is closed"))?;
        let engine = Engine { inner };
        let root = permit.root().map(|root| root.path.clone());
        let list = move || engine.skills(root.as_deref());
        let skills = tokio::task::spawn_blocking(list)
            .await
            .map_err(|e| Failure::new(Reason::Internal, format!("skills cannot be read: {e}")))?;
        let enabled = || skills.iter().filter(|info| info.enabled);
        let Some(info) = enabled().find(|info| info.skill.id == name) else {
            let names: Vec<&str> = enabled().map(|info| info.skill.id.as_str()).collect();
            let escaped: String = name.chars().take(64).flat_map(char::escape_default).collect();
            let text =
                format!("no skill is named '{escaped}'; the skills are: {}", names.join(", "));
            return Err(Failure::new(Reason::InvalidParams, text));
        };
        let text = info.skill.prompt_block.clone().unwrap_or_default();
        let folder = info.folder.clone();
        Output::of("skill", &json!({"content": text, "name": name, "folder": folder}), false)
    }
}
