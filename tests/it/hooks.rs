//! Hooks of Claude Code's shape and agent plugins, with a real daemon and scripted models.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    chat::{calls, text_answer},
    sealed::{Daemon, command, python, tree},
};

/// A daemon with a scripted model, its own home folder, and a project.
pub struct Scene {
    pub daemon: Daemon,
    dir: tempfile::TempDir,
}

impl Scene {
    /// Starts a daemon with this configuration. `{DIR}` in it, in the answers and in the files
    /// stands for the folder of the test, which has the project in `repo`.
    pub fn new(answers: &Value, config: &Value, files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().canonicalize().unwrap();
        tree(&at.join("repo"), &[("notes.txt", "old\n"), (".git/HEAD", "x")]);
        let filled = |text: &str| text.replace("{DIR}", &at.to_string_lossy());
        for (name, text) in files {
            tree(&at, &[(name, &filled(text))]);
        }
        let script = json!({"model": "script", "contextTokens": 32768, "answers": answers});
        tree(&at, &[("script.json", &filled(&script.to_string()))]);
        let mut config: Value = serde_json::from_str(&filled(&config.to_string())).unwrap();
        // Tests ask more often than a person does.
        config["llm"] = json!({"provider": "scripted", "endpoint": at.join("script.json"),
            "maxRequestsPerMinute": 100_000});
        tree(&at.join("home"), &[("config/config.json", &config.to_string())]);
        let user = at.join("user").to_string_lossy().into_owned();
        fs::create_dir_all(&user).unwrap();
        let daemon = Daemon::start_with(&at.join("home"), &[("HOME", &user)]);
        Self { daemon, dir }
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub fn cairn(&self, args: &[&str]) -> (i32, String, String) {
        let mut command = command(&self.daemon.home);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let output = command.args(args).current_dir(self.path("repo")).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    }

    /// Runs a turn without an approver; returns its events.
    pub fn turn(&self, prompt: &str) -> Vec<Value> {
        let (_, out, err) = self.cairn(&["chat", "--json", "-p", prompt]);
        let events: Vec<Value> =
            out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(!events.is_empty(), "{err}");
        events
    }
}

/// Returns the events of a kind.
pub fn of<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().map(|line| &line["evt"]).filter(|evt| evt["type"] == kind).collect()
}

fn write() -> Value {
    calls("write_file", &json!({"path": "new.txt", "content": "new\n"}))
}

fn hook(matcher: &str, command: &str) -> Value {
    json!([{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}])
}

/// A hook that answers with this JSON.
fn answering(matcher: &str, answer: &Value) -> Value {
    hook(matcher, &format!("cat > /dev/null; printf %s '{answer}'"))
}

fn pre_tool(matcher: &str, answer: &Value) -> Value {
    answering(matcher, &json!({"hookSpecificOutput": answer}))
}

#[test]
fn every_event_runs_its_hook() {
    let log = "cat >> {DIR}/repo/log.jsonl; echo >> {DIR}/repo/log.jsonl";
    let mut hooks = json!({});
    for event in [
        "PreToolUse",
        "PostToolUse",
        "UserPromptSubmit",
        "SessionStart",
        "SessionEnd",
        "Stop",
        "SubagentStop",
        "PreCompact",
        "Notification",
    ] {
        hooks[event] = hook("", log);
    }
    let answers = json!([
        write(),
        calls("run_agent", &json!({"task": "look"})),
        text_answer("looked"),
        text_answer("done"),
        calls("delete_file", &json!({"path": "new.txt"})),
        text_answer("a summary"),
    ]);
    let config = json!({"hooks": hooks, "permissions": {"allow": ["write_file"]}});
    let scene = Scene::new(&answers, &config, &[]);
    let events = scene.turn("write it");
    scene.turn("delete it");
    let session = events[0]["sessionId"].as_str().unwrap();
    scene.cairn(&["chat", "--resume", session, "-p", "/compress"]);
    scene.cairn(&["trace", "delete", session]);
    let lines: Vec<Value> = scene
        .text("repo/log.jsonl")
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let find = |event: &str| lines.iter().find(|line| line["hook_event_name"] == event);
    for event in ["SessionStart", "UserPromptSubmit", "PreToolUse", "Notification", "Stop"] {
        assert!(find(event).is_some(), "{event} is missing: {lines:#?} {events:#?}");
    }
    let before = find("PreToolUse").unwrap();
    assert_eq!((&before["tool_name"], &before["session_id"]), (&json!("Write"), &json!(session)));
    assert_eq!(before["tool_input"]["file_path"], json!(scene.path("repo/new.txt")));
    assert_eq!(find("UserPromptSubmit").unwrap()["prompt"], "write it");
    let audit = scene.cairn(&["audit", "--json"]).1;
    assert!(audit.contains("hook PreToolUse") && audit.contains("hooks of hooks"), "{audit}");
}

#[test]
fn hook_denies_or_changes_a_call_which_is_judged_again() {
    let config = |answer: &Value| {
        json!({
            "permissions": {"allow": ["write_file"], "deny": ["write_file(secret*)"]},
            "hooks": {"PreToolUse": pre_tool("Write|Edit", answer)},
        })
    };
    let run = |answer: &Value| {
        let scene = Scene::new(&json!([write(), text_answer("ok")]), &config(answer), &[]);
        let events = scene.turn("write it");
        let result = of(&events, "tool_result").first().map(|evt| evt.to_string());
        (result.unwrap_or_default(), scene.text("repo/new.txt"), scene.text("repo/other.txt"))
    };
    // Control: a hook that says nothing.
    let (_, notes, _) = run(&json!({}));
    assert_eq!(notes, "new\n");
    let deny = json!({"permissionDecision": "deny", "permissionDecisionReason": "frozen"});
    let (result, notes, _) = run(&deny);
    assert!(result.contains("plugin_refused") && result.contains("frozen"), "{result}");
    assert_eq!(notes, "");
    // No client can answer, so that the call is denied although a rule allows it.
    let (_, notes, _) = run(&json!({"permissionDecision": "ask"}));
    assert_eq!(notes, "");
    let to = |path: &str| json!({"updatedInput": {"file_path": path, "content": "changed\n"}});
    let (_, notes, other) = run(&to("other.txt"));
    assert_eq!((&*notes, &*other), ("", "changed\n"));
    let (result, notes, _) = run(&to("secret.txt"));
    assert!(result.contains("tool_denied"), "{result}");
    assert_eq!(notes, "");
    let (result, _, _) = run(&json!({"updatedInput": {"nonsense": 1}}));
    assert!(result.contains("invalid_params"), "{result}");
}

#[test]
fn hook_allows_only_if_the_user_lets_it() {
    let run = |may_allow: bool, permissions: Value| {
        let mut hooks =
            json!({"PreToolUse": pre_tool("Write", &json!({"permissionDecision": "allow"}))});
        hooks["mayAllow"] = json!(may_allow);
        let config = json!({"hooks": hooks, "permissions": permissions});
        let scene = Scene::new(&json!([write(), text_answer("ok")]), &config, &[]);
        scene.turn("write it");
        scene.text("repo/new.txt")
    };
    assert_eq!(run(true, json!({})), "new\n");
    assert_eq!(run(false, json!({})), "");
    assert_eq!(run(true, json!({"deny": ["write_file"]})), "");
    assert_eq!(run(true, json!({"finalDeny": ["write_file"]})), "");
}

#[test]
fn prompts_and_results_receive_context_and_a_turn_continues_until_it_may_stop() {
    let stop = "grep -q '\"stop_hook_active\":true' && exit 0; echo 'run the tests' >&2; exit 2";
    let config = json!({
        "permissions": {"allow": ["write_file"]},
        "hooks": {
            "UserPromptSubmit": hook("", "cat > /dev/null; echo 'the branch is frozen'"),
            "PostToolUse": pre_tool("Write", &json!({"additionalContext": "format it"})),
            "Stop": hook("", stop),
        },
    });
    let answers = json!([
        {"expect": [{"anyContains": "the branch is frozen"}], "steps": write()["steps"]},
        {"expect": [{"anyContains": "format it"}], "steps": [{"text": "done"}]},
        {"expect": [{"anyContains": "run the tests"}], "steps": [{"text": "tested"}]},
    ]);
    let scene = Scene::new(&answers, &config, &[]);
    let events = scene.turn("write it");
    let result = events.last().unwrap();
    assert_eq!(result["finalOutput"], "tested", "{events:#?}");
    // A hook refuses a message.
    let config = json!({"hooks": {"UserPromptSubmit": hook("", "echo 'no secrets' >&2; exit 2")}});
    let scene = Scene::new(&json!([text_answer("never")]), &config, &[]);
    let events = scene.turn("my password");
    assert_eq!(events.last().unwrap()["error"]["reason"], "plugin_refused", "{events:#?}");
}

const MARKING: &str = r#"{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command",
    "command": "touch {DIR}/repo/ran"}]}]}}"#;

/// A malicious project: hooks, a plugin, a skill and instructions.
const MALICIOUS: &[(&str, &str)] = &[
    ("repo/.claude/settings.json", MARKING),
    ("repo/.agents/plugins/evil/plugin.json", r#"{"name": "evil"}"#),
    ("repo/.agents/plugins/evil/hooks/hooks.json", MARKING),
    ("repo/.agents/plugins/evil/skills/evil/SKILL.md", "---\ndescription: evil-skill\n---\nx"),
    ("repo/.agents/plugins/evil/mcp.json", r#"{"mcpServers": {"m": {"command": "{DIR}/x"}}}"#),
    (
        "repo/.cairn.json",
        r#"{"hooks": {"UserPromptSubmit": [{"hooks": [{"command": "touch {DIR}/repo/ran"}]}]}}"#,
    ),
    ("repo/AGENTS.md", "evil-instructions"),
];

#[test]
fn nothing_of_an_untrusted_folder_runs_and_the_user_is_notified_once() {
    let quiet = json!({"expect": [{"noneContains": "evil-"}], "steps": [{"text": "hello"}]});
    let scene = Scene::new(&json!([quiet]), &json!({}), MALICIOUS);
    let events = scene.turn("hi");
    assert_eq!(events.last().unwrap()["status"], "completed", "{events:#?}");
    assert!(!scene.path("repo/ran").exists());
    let warnings = of(&events, "warning");
    let about = |part: &str| {
        warnings.iter().filter(|evt| evt["message"].as_str().unwrap().contains(part)).count()
    };
    assert_eq!(about("hooks and plugins of this folder"), 1, "{warnings:#?}");
    // A path of the configuration makes nothing run either.
    let config = json!({"trust": {"folders": ["{DIR}"]}});
    let answers = json!([text_answer("hello"), text_answer("hello")]);
    let scene = Scene::new(&answers, &config, MALICIOUS);
    scene.turn("hi");
    assert!(!scene.path("repo/ran").exists());
    // Control: the same hooks run once their content is trusted, except those of the configuration.
    let (code, out, err) = scene.cairn(&["trust", "--yes"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("runs touch") && out.contains(".agents/plugins/evil"), "{out}");
    let events = scene.turn("hi");
    assert!(scene.path("repo/ran").exists(), "{events:#?}");
    let ran = of(&events, "hook_finished");
    assert_eq!(ran.len(), 2, "{events:#?}");
    assert!(ran.iter().all(|evt| evt["sandboxed"] == true && evt["exitCode"] == 0), "{ran:#?}");
    assert!(scene.cairn(&["skills"]).1.contains("shell"));
}

#[test]
fn hooks_of_claude_code_run_if_imported() {
    for (import, expected) in [(true, true), (false, false)] {
        let config = json!({"hooks": {"importClaude": import}});
        let files = [("user/.claude/settings.json", MARKING)];
        let scene = Scene::new(&json!([text_answer("hello")]), &config, &files);
        scene.turn("hi");
        assert_eq!(scene.path("repo/ran").exists(), expected, "import_claude {import}");
    }
}

#[test]
fn hanging_flooding_and_invalid_hooks_do_not_stop_a_turn() {
    let slow = json!([{"hooks": [{"type": "command", "command": "sleep 300", "timeout": 1}]}]);
    for broken in [
        slow,
        hook("", "cat /dev/zero"),
        hook("", "echo '{nonsense'"),
        hook("", "exit 1"),
        hook("", "/no/such/program"),
        json!([{"hooks": [{"type": "prompt", "command": "touch {DIR}/repo/ran"}]}]),
    ] {
        let config = json!({
            "permissions": {"allow": ["write_file"]}, "hooks": {"PreToolUse": broken},
        });
        let scene = Scene::new(&json!([write(), text_answer("ok")]), &config, &[]);
        let events = scene.turn("write it");
        assert_eq!(events.last().unwrap()["status"], "completed", "{broken}: {events:#?}");
        assert_eq!(scene.text("repo/new.txt"), "new\n", "{broken}");
        assert!(!scene.path("repo/ran").exists(), "{broken}");
    }
}

#[test]
fn agent_plugin_brings_skill_server_command_and_hook() {
    let Some(python) = python("mcp") else { return };
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/mcp_server.py");
    let servers = json!({"mcpServers": {"m": {"command": python, "args": [server]}}}).to_string();
    let files = [
        ("plugin/plugin.json", r#"{"name": "helper", "version": "3", "description": "Helps."}"#),
        ("plugin/mcp.json", &*servers),
        ("plugin/skills/helping/SKILL.md", "---\ndescription: plugin-skill\n---\nx"),
        ("plugin/commands/review.md", "Review it."),
        (
            "plugin/hooks/hooks.json",
            r#"{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command",
                "command": "echo $CLAUDE_PLUGIN_ROOT > {DIR}/repo/ran"}]}]}}"#,
        ),
    ];
    let config = json!({"agentPlugins": {"folders": ["{DIR}/plugin", "{DIR}/missing"]}});
    let expects = json!([{"expect": [{"anyContains": "plugin-skill"}], "steps": [{"text": "hi"}]}]);
    let scene = Scene::new(&expects, &config, &files);
    let events = scene.turn("hi");
    assert_eq!(events.last().unwrap()["status"], "completed", "{events:#?}");
    assert_eq!(scene.text("repo/ran").trim(), scene.path("plugin").to_string_lossy());
    let (code, out, err) = scene.cairn(&["plugins"]);
    assert_eq!(code, 0, "{err}");
    for part in ["helper 3  Helps.", "helping", "helper_m", "review", "UserPromptSubmit", "missing"]
    {
        assert!(out.contains(part), "{part}: {out}");
    }
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !scene.cairn(&["tools"]).1.contains("mcp_helper_m_") {
        assert!(std::time::Instant::now() < until, "the server's tools are missing");
    }
}

/// The plugin that Cairn ships is valid by its own loader and names existing tools.
#[test]
fn shipped_plugin_loads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = folder.join("packaging/agent-plugin");
    let config = json!({"agentPlugins": {"folders": [folder]}});
    let scene = Scene::new(&json!([]), &config, &[]);
    let list: Value = serde_json::from_str(&scene.cairn(&["plugins", "--json"]).1).unwrap();
    let plugin = &list["data"][0];
    assert_eq!(plugin["error"], Value::Null, "{plugin}");
    assert_eq!(plugin["skills"], json!(["code-search"]));
    assert_eq!(plugin["mcpServers"], json!(["cairn_cairn"]));
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(read("plugin.json"), read(".claude-plugin/plugin.json"));
    assert_eq!(read("mcp.json"), read(".mcp.json"));
    let manifest: Value = serde_json::from_str(&read("plugin.json")).unwrap();
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}
