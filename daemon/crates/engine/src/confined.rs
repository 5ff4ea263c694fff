//! Command lines that the engine runs for a user by itself: the set-up of a work tree, and the
//! check of an unattended run. They pass the gate like calls of a model in the mode `auto`, so
//! that the sandbox confines them and every denial applies.

use cairn_harness::Grants;
use cairn_protocol::{
    error::{Failure, Reason},
    id::SessionId,
    turn::ExecutionMode,
};
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{DomainAccess, Engine, RunContext};

/// Tool that runs the command lines.
const TOOL: &str = "run_shell";
/// Longest command line, in bytes.
pub(crate) const MAX_COMMAND: usize = 4 * 1024;
/// Longest duration of a command in seconds; the tool may have a lower limit.
const MAX_SECONDS: u64 = 600;
/// Most bytes of the output that are returned: its end, because errors come last.
const MAX_OUTPUT: usize = 16 * 1024;

/// A command line that ran to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandEnd {
    pub exit_code: i32,
    /// Standard output and standard error, cut at their beginning.
    pub output: String,
}

#[derive(Deserialize)]
struct ShellResult {
    exit_code: i32,
    stdout: String,
    stderr: String,
    timed_out: bool,
}

/// Rejects a command line that is empty or too long.
///
/// # Errors
/// `invalid_params` that names the parameter.
pub(crate) fn check_command(name: &str, command: &str) -> Result<(), Failure> {
    if command.trim().is_empty() || command.len() > MAX_COMMAND {
        let text = format!("{name} must have 1 to {MAX_COMMAND} bytes");
        return Err(Failure::new(Reason::InvalidParams, text));
    }
    Ok(())
}

impl Engine {
    /// Runs a command line in the root of a session. Its call, its output and its exit status are
    /// records of the session.
    ///
    /// # Errors
    /// `tool_denied`, `sandbox_missing`, `tool_timed_out`, `cancelled`; errors of the log.
    pub(crate) async fn run_confined(
        &self,
        session: &SessionId,
        command: &str,
        client: Option<String>,
        stop: &CancellationToken,
    ) -> Result<CommandEnd, Failure> {
        let _slot = self.command_slot()?;
        let root = self.inner.trace.session_root(session).await?;
        let settings = self.turn_settings(self.root_of(root.as_deref())?.as_ref());
        let grants = Grants {
            domains: settings.domains != DomainAccess::Off,
            ops: Some(vec![TOOL.to_owned()]),
            mode: ExecutionMode::Auto,
            ..Grants::default()
        };
        let cx: RunContext = self.command_context(session, root.as_deref(), client, grants)?;
        let cancel = cx.cancel().clone();
        let _dropped = cancel.clone().drop_guard();
        let arguments = json!({"command": command, "timeout_seconds": MAX_SECONDS});
        let call = cx.call(TOOL, arguments);
        tokio::pin!(call);
        let value = tokio::select! {
            value = &mut call => value,
            () = stop.cancelled() => {
                cancel.cancel();
                // The outcome is recorded before the call ends.
                call.await
            }
        }?;
        let unreadable = |e| Failure::new(Reason::Internal, format!("{TOOL} answered: {e}"));
        let result: ShellResult = serde_json::from_value(value).map_err(unreadable)?;
        if result.timed_out {
            let text = format!("the command did not end within its time limit: {command}");
            return Err(Failure::new(Reason::ToolTimedOut, text));
        }
        let output = [result.stdout.trim_end(), result.stderr.trim_end()].join("\n");
        Ok(CommandEnd { exit_code: result.exit_code, output: tail(output.trim()) })
    }
}

fn tail(text: &str) -> String {
    let mut start = text.len().saturating_sub(MAX_OUTPUT);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].to_owned()
}
