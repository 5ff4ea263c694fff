//! `evaluate`: Python 3 for computing, without network, in a read-only workspace.

use std::{sync::Arc, time::Duration};

use cairn_harness::{Output, Permit, Tool, ToolSpec, arguments, sandbox::Confined};
use cairn_protocol::error::{Failure, Reason};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{Deps, ToolMode, shell::finished};

/// Default time limit of an evaluation, and the longest that can be requested, in seconds.
const SECONDS: (u64, u64) = (30, 120);
/// Most characters of each stream that are stored.
const MAX_OUTPUT: usize = 100_000;
/// Code that tells a model, before the sandbox does, which tool writes files.
const PREAMBLE: &str = include_str!("evaluate.py");

/// Arguments of the tool `evaluate`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EvaluateParams {
    /// Python 3 code; what it prints is the result.
    code: String,
    /// Time limit in seconds; 30 by default, at most 120.
    timeout_seconds: Option<u64>,
}

struct Evaluate {
    /// Name under which models know the tool that writes files.
    writer: &'static str,
}

pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    let writer = if deps.mode == ToolMode::Unified { "fs" } else { "write_file" };
    vec![Arc::new(Evaluate { writer })]
}

#[async_trait::async_trait]
impl Tool for Evaluate {
    fn spec(&self) -> ToolSpec {
        let text = "Evaluate Python 3 code for compute and algorithm prototyping. FORBIDDEN: writing files, subprocess, \
                    network, ctypes. Stdlib compute only; files of the workspace can be read.";
        let spec = ToolSpec::reading::<EvaluateParams>("evaluate", text);
        ToolSpec {
            paths: &[],
            code: Some("code"),
            timeout: Duration::from_secs(SECONDS.1 + 10),
            ..spec
        }
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let params: EvaluateParams = arguments(value)?;
        let root = permit.require_root()?.path.clone();
        // A run with paths of its own starts in the first of them.
        let folder = permit
            .reach(".")?
            .and_then(|p| p.first().cloned())
            .map_or(root.clone(), |part| root.join(part));
        let preamble = PREAMBLE.replace("WRITE_TOOL", self.writer);
        let words = ["python3", "-I", "-S", "-E", "-c", &preamble, &params.code];
        let mut confined = Confined::program(words.map(str::to_owned).to_vec(), folder);
        confined.writable = false;
        // It only computes; `run_shell`, with its rules, starts programs.
        confined.sole_program = true;
        confined.limits.wall =
            Duration::from_secs(params.timeout_seconds.unwrap_or(SECONDS.0).clamp(1, SECONDS.1));
        confined.limits.output = MAX_OUTPUT;
        let output = permit.run(confined, |_, _| {}).await?;
        if output.exit_code == 127 && output.stderr.text.contains("python3") {
            return Err(Failure::new(
                Reason::ToolFailed,
                "evaluate needs python3, which is not installed here",
            ));
        }
        finished(output)
    }
}
