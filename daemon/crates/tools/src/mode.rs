//! Under which names models are offered the tools.

use std::sync::Arc;

use cairn_harness::{Asker, Intent, Output, Permit, Tool, ToolSpec};
use cairn_protocol::error::Failure;
use serde_json::Value;

/// How tools are offered to models. Every tool can be called in every mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolMode {
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

impl ToolMode {
    /// The tool as this mode offers it.
    pub(crate) fn shows(self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        let name = tool.spec().name;
        let left_out = match self {
            Self::Split => UNIFIED,
            Self::Unified => SPLIT,
            Self::Both => &[],
        };
        if left_out.contains(&&*name) { Arc::new(Hidden(tool)) } else { tool }
    }
}

/// A tool that models are not offered.
struct Hidden(Arc<dyn Tool>);

#[async_trait::async_trait]
impl Tool for Hidden {
    fn spec(&self) -> ToolSpec {
        ToolSpec { hidden: true, ..self.0.spec() }
    }

    fn stands_for(&self, arguments: &Value) -> Vec<(&'static str, Value)> {
        self.0.stands_for(arguments)
    }

    async fn intent(&self, asker: &Asker<'_>, arguments: &Value) -> Result<Intent, Failure> {
        self.0.intent(asker, arguments).await
    }

    async fn run(&self, permit: Permit, arguments: Value) -> Result<Output, Failure> {
        self.0.run(permit, arguments).await
    }
}
