//! Plugins that are programs of the user's: told of an event as JSON on their standard input, answering on their standard output.

use std::{process::Stdio, sync::Arc, time::Duration};

use cairn_config::{PluginHook, PluginProgram};
use cairn_engine::plugin::{Hook, HookAnswer, HookEvent, Plugin};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
};

/// Bytes of an answer.
const MAX_ANSWER: u64 = 64 * 1024;
/// Most time for one hook.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);

/// A program that is a plugin.
struct Program {
    settings: PluginProgram,
    hooks: Vec<Hook>,
}

/// The plugins that the configuration names, in its order. One without a program is left out, and the log says so.
pub fn configured(all: &[PluginProgram]) -> Vec<Arc<dyn Plugin>> {
    let mut plugins: Vec<Arc<dyn Plugin>> = Vec::new();
    for settings in all.iter().filter(|p| p.enabled) {
        if settings.command.is_empty() {
            tracing::warn!(plugin = settings.name, "plugins: it has no command and is left out");
            continue;
        }
        let hooks = settings.hooks.iter().map(|hook| match hook {
            PluginHook::SessionStart => Hook::SessionStart,
            PluginHook::SessionStop => Hook::SessionStop,
            PluginHook::BeforeTool => Hook::BeforeTool,
            PluginHook::AfterTool => Hook::AfterTool,
            PluginHook::BeforeModel => Hook::BeforeModel,
            PluginHook::AfterModel => Hook::AfterModel,
        });
        plugins.push(Arc::new(Program { hooks: hooks.collect(), settings: settings.clone() }));
    }
    plugins
}

#[async_trait::async_trait]
impl Plugin for Program {
    fn name(&self) -> &str {
        match self.settings.name.as_str() {
            "" => self.settings.command.first().map_or("plugin", String::as_str),
            name => name,
        }
    }

    fn wants(&self, hook: Hook) -> bool {
        self.hooks.is_empty() || self.hooks.contains(&hook)
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(self.settings.timeout_ms.max(1)).min(MAX_TIMEOUT)
    }

    fn required(&self) -> bool {
        self.settings.required
    }

    async fn on(&self, event: &HookEvent) -> Result<HookAnswer, String> {
        let text = serde_json::to_vec(event).map_err(|e| format!("the event cannot be written: {e}"))?;
        let (program, arguments) = self.settings.command.split_first().ok_or("it has no command")?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().current_dir("/").kill_on_drop(true);
        // What a program needs to run, and no key.
        command.envs(["PATH", "HOME", "LANG"].iter().filter_map(|k| Some((k, std::env::var_os(k)?))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|e| format!("{program} cannot be started: {e}"))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (mut stdin, stdout) = stdin.zip(stdout).ok_or("it has no pipes")?;
        let tell = async move {
            // One that does not want to know may leave without reading.
            let _gone = stdin.write_all(&text).await;
        };
        let mut answer = Vec::new();
        let mut bounded = stdout.take(MAX_ANSWER + 1);
        let (_, read) = tokio::join!(tell, bounded.read_to_end(&mut answer));
        read.map_err(|e| format!("its answer cannot be read: {e}"))?;
        if answer.len() as u64 > MAX_ANSWER {
            return Err(format!("its answer has more than {MAX_ANSWER} bytes"));
        }
        let status = child.wait().await.map_err(|e| format!("it cannot be waited for: {e}"))?;
        if !status.success() {
            return Err(format!("it ended with {status}"));
        }
        if answer.trim_ascii().is_empty() {
            return Ok(HookAnswer::default());
        }
        serde_json::from_slice(&answer).map_err(|e| format!("its answer is no JSON object of the kind: {e}"))
    }
}

#[cfg(test)]
mod tests {
    use cairn_protocol::id::SessionId;

    use super::*;

    async fn on(script: &str, limit: u64) -> Result<HookAnswer, String> {
        let settings = PluginProgram {
            name: "p".into(),
            command: vec!["/bin/sh".into(), "-c".into(), script.into()],
            timeout_ms: limit,
            ..PluginProgram::default()
        };
        let (session_id, arguments) = (SessionId::new(), serde_json::json!({"path": "x"}));
        let event = HookEvent::BeforeTool { session_id, tool: "read_file".into(), arguments };
        configured(&[settings])[0].on(&event).await
    }

    #[tokio::test]
    async fn a_program_hears_the_event_and_answers() {
        assert_eq!(on("true", 2000).await, Ok(HookAnswer::default()));
        assert_eq!(on("echo '{}'", 2000).await, Ok(HookAnswer::default()));
        let refuse = "grep -q '\"hook\":\"before_tool\"' && echo '{\"refuse\": \"not this\"}'";
        assert_eq!(on(refuse, 2000).await, Ok(HookAnswer { refuse: Some("not this".into()) }));
        for (script, part) in [
            ("exit 3", "exit status: 3"),
            ("echo nonsense", "no JSON"),
            ("head -c 70000 /dev/zero", "more than 65536 bytes"),
        ] {
            let error = on(script, 2000).await.unwrap_err();
            assert!(error.contains(part), "{script}: {error}");
        }
    }

    #[tokio::test]
    async fn it_sees_no_variable_of_the_daemon() {
        let seen = "env | grep -v '^PATH=\\|^HOME=\\|^LANG=\\|^PWD=\\|^SHLVL=\\|^_=\\|^OLDPWD=' >&2 && echo '{\"refuse\": \"a variable\"}' || true";
        assert_eq!(on(seen, 2000).await, Ok(HookAnswer::default()));
    }

    #[test]
    fn what_is_off_or_empty_is_left_out() {
        let program = |name: &str, command: &[&str], enabled| PluginProgram {
            name: name.into(),
            command: command.iter().map(|s| (*s).to_owned()).collect(),
            hooks: vec![PluginHook::AfterTool],
            enabled,
            ..PluginProgram::default()
        };
        let all =
            configured(&[program("a", &["x"], true), program("b", &[], true), program("c", &["x"], false)]);
        assert_eq!(all.iter().map(|p| p.name()).collect::<Vec<_>>(), ["a"]);
        assert!(all[0].wants(Hook::AfterTool) && !all[0].wants(Hook::BeforeTool));
    }
}
