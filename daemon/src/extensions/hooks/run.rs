//! Running a hook: in the sandbox unless the user says otherwise, with bounds on its time and output,
//! a row in the audit and a record in the session.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use cairn_config::HookCommand;
use cairn_engine::Engine;
use cairn_harness::HookProcess;
use cairn_protocol::{error::Reason, event::AgentEvt, id::SessionId};
use cairn_trace::{AuditIntent, AuditOutcome};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
};

use super::sources::{Event, Source};
use crate::trust::items;

/// Maximum bytes of each output.
const MAX_OUTPUT: usize = 64 * 1024;
/// Maximum time of one hook.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum characters of a command in the audit.
const MAX_AUDITED: usize = 1000;
/// Variables that a hook inherits: those that a program needs to run, without keys.
const INHERITED_VARIABLES: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TMPDIR"];

/// The output of a hook that has ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HookOutput {
    /// `None` after a signal.
    pub exit_code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Reason why a hook has no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFailure {
    pub text: String,
    /// True if it could not run at all, for want of a sandbox.
    pub has_no_sandbox: bool,
}

impl From<String> for HookFailure {
    fn from(text: String) -> Self {
        Self { text, has_no_sandbox: false }
    }
}

/// A hook that is about to run.
#[derive(Clone, Copy)]
pub struct Planned<'a> {
    pub source: &'a Source,
    pub hook: &'a HookCommand,
    pub sandboxed: bool,
}

/// Runs a hook between the two writes of its audit row, and records it in the session. Without the
/// row nothing runs.
///
/// # Errors
/// A description of the failure.
pub async fn recorded(
    engine: &Engine,
    session: &SessionId,
    event: Event,
    planned: Planned<'_>,
    root: Option<&Path>,
    input: &Value,
) -> Result<HookOutput, HookFailure> {
    let Planned { source, hook, sandboxed } = planned;
    let command: String = hook.command.chars().take(MAX_AUDITED).collect();
    let suffix = if sandboxed { "" } else { ", outside the sandbox" };
    let intent = AuditIntent {
        session: session.clone(),
        tool: format!("hook {}", event.as_str()),
        args_digest: cairn_trace::digest(input),
        decision: "allow",
        rule: format!("hooks of {}{suffix}", source.name),
        call: None,
        command: Some(command.clone()),
    };
    let audit = engine.trace().audit_intent(intent, None).await;
    let audit = audit.map_err(|error| format!("it cannot be recorded: {error}"))?;
    let began = std::time::Instant::now();
    let outcome = if sandboxed {
        confined(engine, session, planned, root, input).await
    } else {
        run(hook, source.plugin.as_deref(), root, input).await.map_err(HookFailure::from)
    };
    let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let exit_code = outcome.as_ref().ok().and_then(|output| output.exit_code);
    let done = AuditOutcome {
        millis,
        outcome: if outcome.is_ok() { "ok".into() } else { "tool_failed".into() },
        exit_code,
        truncated: false,
    };
    if let Err(error) = engine.trace().audit_outcome(audit, done, None).await {
        tracing::warn!(%error, "the outcome of a hook cannot be recorded");
    }
    let evt = AgentEvt::HookFinished {
        event: event.as_str().to_owned(),
        source: source.name.clone(),
        command,
        sandboxed,
        exit_code,
        millis,
        error: outcome.as_ref().err().map(|failure| failure.text.clone()),
    };
    engine.record_hook(session, evt).await;
    outcome
}

/// Runs a hook in the sandbox.
async fn confined(
    engine: &Engine,
    session: &SessionId,
    Planned { source, hook, .. }: Planned<'_>,
    root: Option<&Path>,
    input: &Value,
) -> Result<HookOutput, HookFailure> {
    let input = serde_json::to_vec(input).map_err(|error| error.to_string())?;
    let timeout = Duration::from_secs(hook.timeout.max(1)).min(MAX_TIMEOUT);
    let folder = root.unwrap_or_else(|| Path::new("/tmp")).to_string_lossy().into_owned();
    let mut env = vec![
        ("CLAUDE_PROJECT_DIR".to_owned(), folder.clone()),
        ("CAIRN_PROJECT_DIR".to_owned(), folder),
    ];
    let mut readable = Vec::new();
    if let Some(plugin) = &source.plugin {
        let text = plugin.to_string_lossy().into_owned();
        env.push(("CLAUDE_PLUGIN_ROOT".to_owned(), text.clone()));
        env.push(("PLUGIN_ROOT".to_owned(), text));
        readable.push(plugin.clone());
    }
    if source.is_own {
        // The scripts of the user that its command names, which are not in the session's folder.
        readable.extend(outer_scripts(&hook.command));
    }
    let process = HookProcess {
        command: hook.command.clone(),
        env,
        input,
        readable,
        timeout,
        max_output: MAX_OUTPUT,
    };
    let output = engine.run_hook(session, root, process).await;
    let output = output.map_err(|failure| match failure.reason {
        Reason::SandboxMissing => HookFailure {
            text: format!(
                "{}; a hook of your own runs outside the sandbox with \"sandbox\": false",
                failure.message
            ),
            has_no_sandbox: true,
        },
        _ => failure.message.into(),
    })?;
    if output.timed_out {
        return Err(format!("it took longer than {} s", timeout.as_secs()).into());
    }
    if output.stdout.bytes > MAX_OUTPUT as u64 || output.stderr.bytes > MAX_OUTPUT as u64 {
        return Err(format!("its output has more than {MAX_OUTPUT} bytes").into());
    }
    Ok(HookOutput {
        exit_code: Some(output.exit_code),
        stdout: output.stdout.text,
        stderr: output.stderr.text,
    })
}

/// Returns the files that a command names by absolute paths, or in the home folder.
fn outer_scripts(command: &str) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let expand = |word: &str| {
        let in_home = word.strip_prefix("~/").or_else(|| word.strip_prefix("$HOME/"));
        match (in_home, &home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(word),
        }
    };
    let words = items::words(command);
    let paths = words.iter().map(|word| expand(word));
    paths.filter(|path| path.is_absolute() && path.is_file()).take(32).collect()
}

/// A process group that is killed when this is dropped: a hook may have started others.
struct Group(Option<rustix::process::Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0.take() {
            // The group is gone when all of its processes have ended.
            let _gone = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

async fn run(
    hook: &HookCommand,
    plugin: Option<&Path>,
    root: Option<&Path>,
    input: &Value,
) -> Result<HookOutput, String> {
    let folder = root.filter(|root| root.is_dir()).unwrap_or_else(|| Path::new("/"));
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(&hook.command).env_clear().current_dir(folder).kill_on_drop(true);
    command
        .envs(INHERITED_VARIABLES.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
    command.env("CLAUDE_PROJECT_DIR", folder).env("CAIRN_PROJECT_DIR", folder);
    if let Some(plugin) = plugin {
        command.env("CLAUDE_PLUGIN_ROOT", plugin).env("PLUGIN_ROOT", plugin);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("it cannot be started: {error}"))?;
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let _group = Group(id.and_then(rustix::process::Pid::from_raw));
    let text = serde_json::to_vec(input).map_err(|error| error.to_string())?;
    let (mut stdin, stdout, stderr) =
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => (stdin, stdout, stderr),
            _ => return Err("it has no pipes".into()),
        };
    let send = async move {
        // A hook may exit without reading the event.
        let _exited = stdin.write_all(&text).await;
        Ok(())
    };
    let work = async {
        let ((), stdout, stderr) = tokio::try_join!(send, bounded(stdout), bounded(stderr))?;
        let status = child.wait().await.map_err(|error| format!("waiting failed: {error}"))?;
        Ok(HookOutput { exit_code: status.code(), stdout, stderr })
    };
    let limit = Duration::from_secs(hook.timeout.max(1)).min(MAX_TIMEOUT);
    match tokio::time::timeout(limit, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("it took longer than {} s", limit.as_secs())),
    }
}

async fn bounded(output: impl AsyncRead + Unpin) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut limited = output.take(MAX_OUTPUT as u64 + 1);
    limited
        .read_to_end(&mut bytes)
        .await
        .map_err(|error| format!("its output cannot be read: {error}"))?;
    if bytes.len() > MAX_OUTPUT {
        return Err(format!("its output has more than {MAX_OUTPUT} bytes"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn on(script: &str, timeout: u64) -> Result<HookOutput, String> {
        let hook = HookCommand { command: script.into(), timeout, ..HookCommand::default() };
        let dir = tempfile::tempdir().unwrap();
        run(&hook, None, Some(dir.path()), &json!({"tool_name": "Bash"})).await
    }

    #[tokio::test]
    async fn hook_receives_the_event_in_the_projects_folder() {
        let done = on("grep -q tool_name && pwd && echo problem >&2; exit 2", 10).await.unwrap();
        assert_eq!((done.exit_code, done.stderr.as_str()), (Some(2), "problem\n"));
        assert!(done.stdout.starts_with('/'));
        let done = on("test \"$CLAUDE_PROJECT_DIR\" = \"$PWD\"", 10).await.unwrap();
        assert_eq!(done.exit_code, Some(0));
    }

    #[tokio::test]
    async fn hanging_and_flooding_hooks_are_killed_with_their_processes() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("pid");
        let script = format!("sleep 300 & echo $! > {}; wait", mark.display());
        let error = on(&script, 1).await.unwrap_err();
        assert!(error.contains("longer than 1 s"), "{error}");
        let child: i32 = std::fs::read_to_string(&mark).unwrap().trim().parse().unwrap();
        let child = rustix::process::Pid::from_raw(child).unwrap();
        // The kill is sent; the process is reaped soon after.
        let gone = async {
            while rustix::process::test_kill_process(child).is_ok() && !is_zombie(child) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
        let error = on("cat /dev/zero", 60).await.unwrap_err();
        assert!(error.contains("more than 65536 bytes"), "{error}");
        let error = on("cat /dev/zero >&2", 60).await.unwrap_err();
        assert!(error.contains("more than 65536 bytes"), "{error}");
    }

    fn is_zombie(pid: rustix::process::Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        stat.map_or(true, |stat| stat.contains(") Z"))
    }
}
