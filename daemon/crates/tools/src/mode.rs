//! Names under which models are offered the tools.

use std::sync::Arc;

use cairn_harness::{Caller, Intent, Output, Permit, Tool, ToolSpec};
use cairn_protocol::{error::Failure, tool::ToolsMode};
use serde_json::Value;

/// Returns the tool as this mode offers it. Every tool can be called in every mode.
pub fn shows(mode: ToolsMode, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
    if mode.hides(&tool.spec().name) { Arc::new(Hidden(tool)) } else { tool }
}

/// A tool that is not offered to models.
struct Hidden(Arc<dyn Tool>);

#[async_trait::async_trait]
impl Tool for Hidden {
    fn spec(&self) -> ToolSpec {
        ToolSpec { hidden: true, ..self.0.spec() }
    }

    fn delegated_calls(&self, arguments: &Value) -> Vec<(&'static str, Value)> {
        self.0.delegated_calls(arguments)
    }

    async fn intent(&self, caller: &Caller<'_>, arguments: &Value) -> Result<Intent, Failure> {
        self.0.intent(caller, arguments).await
    }

    async fn run(&self, permit: Permit, arguments: Value) -> Result<Output, Failure> {
        self.0.run(permit, arguments).await
    }
}
