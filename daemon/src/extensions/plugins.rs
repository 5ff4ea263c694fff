//! Plugins that are programs of the user: they receive events as JSON on standard input and answer
//! on standard output.

use std::{process::Stdio, sync::Arc, time::Duration};

use cairn_config::{PluginHook, PluginProgram};
use cairn_engine::plugin::{Hook, HookAnswer, HookEvent, Plugin};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
};

/// Maximum bytes of an answer.
const MAX_ANSWER: u64 = 64 * 1024;
/// Maximum time for one hook.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);

struct Program {
    settings: PluginProgram,
    hooks: Vec<Hook>,
}

/// Creates the plugins of the configuration, in its order. One without a program is skipped and
/// logged.
pub fn from_config(all: &[PluginProgram]) -> Vec<Arc<dyn Plugin>> {
    let mut plugins: Vec<Arc<dyn Plugin>> = Vec::new();
    for settings in all.iter().filter(|p| p.enabled) {
        if settings.command.is_empty() {
            tracing::warn!(plugin = settings.name, "plugins: it has no command and is ignored");
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
        let text =
            serde_json::to_vec(event).map_err(|e| format!("the event cannot be written: {e}"))?;
        let (program, arguments) =
            self.settings.command.split_first().ok_or("it has no command")?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().current_dir("/").kill_on_drop(true);
        // The variables that a program needs to run, without keys.
        command
            .envs(["PATH", "HOME", "LANG"].iter().filter_map(|k| Some((k, std::env::var_os(k)?))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|e| format!("{program} cannot be started: {e}"))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let (mut stdin, stdout) = stdin.zip(stdout).ok_or("it has no pipes")?;
        let send_event = async move {
            // A plugin may exit without reading the event.
            let _exited = stdin.write_all(&text).await;
        };
        let mut answer = Vec::new();
        let mut bounded = stdout.take(MAX_ANSWER + 1);
        let (_, read) = tokio::join!(send_event, bounded.read_to_end(&mut answer));
        read.map_err(|e| format!("its answer cannot be read: {e}"))?;
        if answer.len() as u64 > MAX_ANSWER {
            return Err(format!("its answer has more than {MAX_ANSWER} bytes"));
        }
        let status = child.wait().await.map_err(|e| format!("waiting for it failed: {e}"))?;
        if !status.success() {
            return Err(format!("it exited with {status}"));
        }
        if answer.trim_ascii().is_empty() {
            return Ok(HookAnswer::default());
        }
        let answer: HookAnswer = serde_json::from_slice(&answer)
            .map_err(|e| format!("its answer is not a valid JSON object: {e}"))?;
        // A plugin can only make the rules stricter.
        Ok(HookAnswer { allow: false, ..answer })
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
        let session_id = SessionId::new();
        let arguments = serde_json::json!({"path": "x"});
        let event = HookEvent::BeforeTool { session_id, tool: "read_file".into(), arguments };
        from_config(&[settings])[0].on(&event).await
    }

    #[tokio::test]
    async fn program_receives_event_and_answers() {
        assert_eq!(on("true", 2000).await, Ok(HookAnswer::default()));
        assert_eq!(on("echo '{}'", 2000).await, Ok(HookAnswer::default()));
        let refuse = "grep -q '\"hook\":\"before_tool\"' && echo '{\"refuse\": \"not this\"}'";
        assert_eq!(
            on(refuse, 2000).await,
            Ok(HookAnswer { refuse: Some("not this".into()), ..HookAnswer::default() })
        );
        for (script, part) in [
            ("exit 3", "exit status: 3"),
            ("echo nonsense", "not a valid JSON"),
            ("head -c 70000 /dev/zero", "more than 65536 bytes"),
        ] {
            let error = on(script, 2000).await.unwrap_err();
            assert!(error.contains(part), "{script}: {error}");
        }
    }

    #[tokio::test]
    async fn program_does_not_inherit_daemon_variables() {
        let seen = "env | grep -v '^PATH=\\|^HOME=\\|^LANG=\\|^PWD=\\|^SHLVL=\\|^_=\\|^OLDPWD=' >&2 && echo '{\"refuse\": \"a variable\"}' || true";
        assert_eq!(on(seen, 2000).await, Ok(HookAnswer::default()));
    }

    #[test]
    fn disabled_and_empty_plugins_are_skipped() {
        let program = |name: &str, command: &[&str], enabled| PluginProgram {
            name: name.into(),
            command: command.iter().map(|s| (*s).to_owned()).collect(),
            hooks: vec![PluginHook::AfterTool],
            enabled,
            ..PluginProgram::default()
        };
        let all = from_config(&[
            program("a", &["x"], true),
            program("b", &[], true),
            program("c", &["x"], false),
        ]);
        assert_eq!(all.iter().map(|p| p.name()).collect::<Vec<_>>(), ["a"]);
        assert!(all[0].wants(Hook::AfterTool) && !all[0].wants(Hook::BeforeTool));
    }
}
