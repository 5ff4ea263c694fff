//! The tools there are. It tells about them and never hands one out.

use std::{collections::BTreeMap, sync::Arc};

use cairn_protocol::{
    error::{Failure, Reason},
    tool::ToolInfo,
};
use serde_json::Value;

use crate::{Tool, ToolSpec};

/// Older names of tools, for callers that still use them; they are not listed.
const ALIASES: &[(&str, &str)] = &[("bash", "run_shell"), ("python3", "evaluate")];

/// Tools by name.
#[derive(Default)]
pub struct Registry {
    tools: BTreeMap<&'static str, Entry>,
}

/// A tool with its compiled schema.
pub(crate) struct Entry {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) spec: ToolSpec,
    schema: jsonschema::Validator,
}

impl Registry {
    /// Adds a tool.
    ///
    /// # Errors
    /// When the name is taken or the schema is none.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), Failure> {
        let spec = tool.spec();
        let bad = |what: String| Failure::new(Reason::Internal, format!("tool {}: {what}", spec.name));
        if self.tools.contains_key(spec.name) {
            return Err(bad("is registered twice".into()));
        }
        let schema =
            jsonschema::validator_for(&spec.input_schema).map_err(|e| bad(format!("schema: {e}")))?;
        self.tools.insert(spec.name, Entry { tool, spec, schema });
        Ok(())
    }

    /// Every tool, by name.
    pub fn list(&self) -> Vec<ToolInfo> {
        self.tools.values().map(|e| e.spec.info()).collect()
    }

    /// The entry of that name, with a suggestion where there is none.
    pub(crate) fn find(&self, name: &str) -> Result<&Entry, Failure> {
        let missing = || {
            let shown = name.chars().take(64).collect::<String>();
            Failure::new(Reason::UnknownTool, format!("there is no tool '{}'", shown.escape_default()))
        };
        let own = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own);
        self.tools.get(name).or_else(|| self.tools.get(own)).ok_or_else(missing)
    }
}

impl Entry {
    /// Checks arguments against the schema.
    pub(crate) fn check(&self, arguments: &Value) -> Result<(), Failure> {
        let Some(error) = self.schema.iter_errors(arguments).next() else { return Ok(()) };
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { "arguments".to_owned() } else { format!("arguments{place}") };
        Err(Failure::new(Reason::InvalidParams, format!("tool {}: {place}: {error}", self.spec.name)))
    }
}
