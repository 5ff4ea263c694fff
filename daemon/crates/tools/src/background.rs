//! `command_output` and `stop_command`: the background commands that `run_shell` started.

use std::sync::Arc;

use cairn_harness::{Caller, Intent, Output, Permit, Rule, Tool, ToolSpec, arguments};
use cairn_protocol::{
    approval::Preview,
    background::BackgroundOutput,
    error::{Failure, Reason},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Deps, ShellMode};

/// Arguments of the tool `command_output`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OutputParams {
    /// Id of the command; without it all commands are listed.
    #[serde(default)]
    id: Option<String>,
    /// Position to read from: the `cursor` of the last answer.
    #[serde(default)]
    cursor: u64,
}

/// Arguments of the tool `stop_command`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StopParams {
    /// Id of the command.
    id: String,
}

struct CommandOutput;
struct StopCommand;

/// Returns the tools, unless there are no commands.
pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    match deps.shell.mode {
        ShellMode::Off => vec![],
        _ => vec![Arc::new(CommandOutput), Arc::new(StopCommand)],
    }
}

/// Returns new output as the model receives it.
pub fn answer(new: &BackgroundOutput) -> Output {
    let value = json!({
        "id": new.command.id,
        "state": new.command.state,
        "exit_code": new.command.exit_code,
        "output": new.output,
        "cursor": new.cursor,
        "dropped_bytes": new.dropped,
        "more": new.more,
    });
    let truncated = new.dropped > 0 || new.more;
    Output { tag: "background", value, truncated, exit_code: new.command.exit_code }
}

#[async_trait::async_trait]
impl Tool for CommandOutput {
    fn spec(&self) -> ToolSpec {
        let text = "Returns new output of a background command, or lists the background commands. \
            Pass the last `cursor` to continue; `dropped_bytes` counts output that was lost.";
        ToolSpec { paths: &[], ..ToolSpec::reading::<OutputParams>("command_output", text) }
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let params: OutputParams = arguments(value)?;
        match params.id {
            Some(id) => Ok(answer(&permit.background_output(&id, params.cursor)?)),
            None if params.cursor > 0 => {
                Err(Failure::new(Reason::InvalidParams, "a cursor needs the id of its command"))
            }
            None => {
                let commands = permit.background_commands();
                Output::of("background_list", &json!({"commands": commands}), false)
            }
        }
    }
}

#[async_trait::async_trait]
impl Tool for StopCommand {
    fn spec(&self) -> ToolSpec {
        let text = "Stops a background command of this session.";
        // The command itself was approved; its end needs no further approval.
        ToolSpec {
            own_state: true,
            paths: &[],
            ..ToolSpec::writing::<StopParams>("stop_command", text)
        }
    }

    async fn intent(&self, _: &Caller<'_>, value: &Value) -> Result<Intent, Failure> {
        let params: StopParams = arguments(value.clone())?;
        let summary = format!("stop_command {}", params.id);
        let preview = Preview { summary, ..Preview::default() };
        Ok(Intent { preview, grants: vec![Rule::of_tool("stop_command")], ..Intent::default() })
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let params: StopParams = arguments(value)?;
        let stopped = permit.stop_background(&params.id).await?;
        Output::of("background_stopped", &stopped, false)
    }
}
