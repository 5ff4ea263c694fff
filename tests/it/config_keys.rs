//! The effect of each configuration key, observed through the daemon.

mod costs;
mod network;
mod terminal;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    fake_model::{Answer, FakeModel},
    sealed::{Daemon, binary, command, git, tree, wait_for},
};

const FILES: &[(&str, &str)] = &[
    ("src/a.rs", "pub fn one() {}\npub fn two() {}\n"),
    ("notes.txt", "old\n"),
    ("secret/key.txt", "hidden\n"),
    (".git/HEAD", "ref: refs/heads/main\n"),
];

/// A daemon with a configuration, and a folder to work in.
pub struct ConfiguredDaemon {
    _dir: tempfile::TempDir,
    pub home: PathBuf,
    folder: PathBuf,
    daemon: Option<Daemon>,
}

impl ConfiguredDaemon {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (home, folder) = (dir.path().join("home"), dir.path().join("repo"));
        tree(&folder, FILES);
        let folder = folder.canonicalize().unwrap();
        Self { home, folder, daemon: None, _dir: dir }
    }

    fn started(config: &Value) -> Self {
        let mut fixture = Self::new();
        fixture.restart(config);
        fixture
    }

    pub fn write(&self, config: &Value) {
        tree(&self.home, &[("config/config.json", &config.to_string())]);
    }

    fn restart(&mut self, config: &Value) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.stop();
        }
        self.write(config);
        self.daemon = Some(Daemon::start_in(&self.home, &[]));
    }

    /// Writes the file and makes the daemon reload it.
    fn reload(&self, config: &Value) {
        self.write(config);
        let (code, out, err) = self.cairn(&["reload"]);
        assert_eq!(code, 0, "{out}{err}");
    }

    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().unwrap()
    }

    pub fn cairn(&self, args: &[&str]) -> (i32, String, String) {
        self.cairn_with(args, &[])
    }

    pub fn cairn_with(&self, args: &[&str], environment: &[(&str, &str)]) -> (i32, String, String) {
        run(&self.home, &self.folder, args, environment)
    }

    /// Runs a turn and returns its result.
    fn turn(&self, prompt: &str) -> Value {
        let (_, out, err) = self.cairn(&["chat", "--json", "--no-local-session", "-p", prompt]);
        let last = out.lines().last().unwrap_or_else(|| panic!("no result: {err}"));
        serde_json::from_str(last).unwrap()
    }

    /// Calls a tool without an approver and returns the result.
    async fn call(&self, name: &str, arguments: Value) -> Value {
        let mut raw = self.daemon().client().await;
        let session = raw.open_session(&self.folder).await;
        raw.call_tool(&session, name, arguments).await
    }

    async fn reason(&self, name: &str, arguments: Value) -> String {
        let got = self.call(name, arguments).await;
        got["error"]["reason"].as_str().unwrap_or("ok").to_owned()
    }
}

fn run(
    home: &Path,
    folder: &Path,
    args: &[&str],
    environment: &[(&str, &str)],
) -> (i32, String, String) {
    let mut command = command(home);
    command.args(args).current_dir(folder).envs(environment.iter().copied());
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Returns a configuration for a model behind `provider`, with further settings.
pub fn model_config(provider: &str, model: &FakeModel, more: &Value) -> Value {
    let mut config =
        json!({"llm": {"provider": provider, "endpoint": model.address, "model": "m-1"}});
    merge(&mut config, more);
    config
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => more
            .iter()
            .for_each(|(key, value)| merge(into.entry(key.clone()).or_insert(Value::Null), value)),
        (into, more) => *into = more.clone(),
    }
}

fn offered(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().filter_map(|tool| tool["function"]["name"].as_str().map(str::to_owned)).collect()
}

/// `llm.provider`, `llm.endpoint`, `llm.model`, `llm.temperature`, `llm.reasoningEffort`,
/// `llm.maxTokens`, the three ways to a key, `tools.mode`, `tools.builtin.*.enabled`, `context.repoMapTokens`.
#[test]
fn model_settings_are_sent_in_its_request() {
    let model = FakeModel::agreeable();
    let config = |more: Value| model_config("openai-compatible", &model, &more);
    let mut fixture = ConfiguredDaemon::started(&config(json!({
        "llm": {"temperature": 0.25, "reasoningEffort": "low", "maxTokens": 77, "apiKey": "k-inline"},
        "tools": {"mode": "split", "builtin": {"git_log": {"enabled": false}}},
        "context": {"repoMapTokens": 0},
    })));
    let (code, out, err) = fixture.cairn(&["index", "add", ".", "--wait"]);
    assert_eq!(code, 0, "{out}{err}");
    let done = fixture.turn("hi");
    assert_eq!(done["status"], "completed", "{done}");
    let request = model.latest();
    assert_eq!(request.body["model"], "m-1");
    assert_eq!(request.body["temperature"], 0.25);
    assert_eq!(request.body["reasoning_effort"], "low");
    // The tokens of the effort are added, so that they leave room for the answer.
    let most = [&request.body["max_tokens"], &request.body["max_completion_tokens"]];
    assert!(most.contains(&&json!(77 + 2048)), "{}", request.body);
    assert!(request.head.contains("authorization: bearer k-inline"), "{}", request.head);
    let tools = offered(&request.body);
    assert!(
        tools.iter().any(|t| t == "read_file") && !tools.iter().any(|t| t == "git_log"),
        "{tools:?}"
    );
    assert!(!request.body.to_string().contains("function two"), "{}", request.body);
    // The other sources of a key, the other mode, and a map.
    tree(&fixture.home, &[("key.txt", "k-file\n")]);
    let file = fixture.home.join("key.txt");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&file, private).unwrap();
    fixture.restart(&config(json!({
        "llm": {"apiKeyFile": file},
        "tools": {"mode": "unified"},
        "context": {"repoMapTokens": 2048},
    })));
    fixture.turn("hi");
    let request = model.latest();
    assert!(request.head.contains("authorization: bearer k-file"), "{}", request.head);
    assert_eq!(request.body.get("temperature"), None, "none is set");
    let tools = offered(&request.body);
    assert!(
        tools.iter().any(|t| t == "fs") && !tools.iter().any(|t| t == "read_file"),
        "{tools:?}"
    );
    assert!(request.body.to_string().contains("pub fn two()"), "no map");
    fixture.reload(&config(json!({"llm": {"apiKeyCommand": ["/bin/echo", "k-command"]}})));
    fixture.turn("hi");
    assert!(
        model.latest().head.contains("authorization: bearer k-command"),
        "{}",
        model.latest().head
    );
}

/// `agent.maxIterations`, `context.maxToolOutputChars`, `context.maxTokens`,
/// `context.compactionThreshold`.
#[test]
fn turn_limits_are_enforced() {
    let model = FakeModel::start(|_, _| Answer::Call("read_file", json!({"path": "long.txt"})));
    let config = |more: Value| model_config("openai-compatible", &model, &more);
    let fixture = ConfiguredDaemon::started(&config(json!({
        "agent": {"maxIterations": 2}, "context": {"maxToolOutputChars": 60},
    })));
    tree(&fixture.folder, &[("long.txt", &"a long line of it\n".repeat(200))]);
    let done = fixture.turn("read it");
    assert_eq!(model.requests().len(), 2, "{done}");
    assert!(done.to_string().contains("agent.maxIterations"), "{done}");
    let content =
        model.latest().body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(content.len() < 400, "{content}");

    let ollama = FakeModel::agreeable();
    let config = |threshold: f64| {
        let context = json!({"context": {"maxTokens": 12_345, "compactionThreshold": threshold}});
        model_config("ollama", &ollama, &context)
    };
    let fixture = ConfiguredDaemon::started(&config(0.95));
    fixture.turn("hi");
    assert_eq!(ollama.latest().body["options"]["num_ctx"], 12_345, "{}", ollama.latest().body);
    // The system text alone exceeds one percent of the context.
    fixture.reload(&config(0.01));
    let done = fixture.turn("hi").to_string();
    assert!(done.contains("context_overflow"), "{done}");
}

/// Checks `agent.retryAttempts`, `agent.retryBackoffBaseMs` and `llm.timeoutSeconds`.
#[test]
fn failed_requests_are_retried_as_configured() {
    let model = FakeModel::start(|_, _| Answer::Status(503));
    let config = |more: Value| model_config("openai-compatible", &model, &more);
    let fixture = ConfiguredDaemon::started(&config(
        json!({"agent": {"retryAttempts": 2, "retryBackoffBaseMs": 100}}),
    ));
    let done = fixture.turn("hi");
    assert_eq!(done["status"], "failed", "{done}");
    let times: Vec<_> = model.requests().iter().map(|request| request.at).collect();
    assert_eq!(times.len(), 3);
    // Each wait is a random part of a doubling pause: at least half of it.
    assert!(times[1] - times[0] >= Duration::from_millis(40), "{times:?}");
    assert!(times[2] - times[0] < Duration::from_secs(5), "{times:?}");
    fixture.reload(&config(json!({"agent": {"retryAttempts": 0}})));
    fixture.turn("hi");
    assert_eq!(model.requests().len(), 4);

    let silent = FakeModel::start(|_, _| Answer::Silence);
    let more = json!({"llm": {"timeoutSeconds": 1}, "agent": {"retryAttempts": 0}});
    let fixture = ConfiguredDaemon::started(&model_config("openai-compatible", &silent, &more));
    let done = fixture.turn("hi");
    assert!(done.to_string().contains("model_timed_out"), "{done}");
}

/// `models.allowExternal`, `models.providers`, `models.models`, `models.maxTokensPerDay`,
/// `models.maxRequestsPerMinute`.
#[test]
fn external_models_are_limited() {
    let fixture = ConfiguredDaemon::started(&json!({}));
    let outside = |models: Value| {
        let llm = json!({"provider": "openai-compatible", "endpoint": "https://192.0.2.1:9", "model": "m-1"});
        fixture.reload(&json!({"llm": llm, "models": models}));
        fixture.turn("hi").to_string()
    };
    for (models, text) in [
        (json!({}), "models.allowExternal is not set"),
        (
            json!({"allowExternal": true, "providers": ["anthropic"]}),
            "models.providers does not name",
        ),
        (json!({"allowExternal": true, "models": ["other"]}), "models.models does not name"),
    ] {
        let done = outside(models);
        assert!(done.contains(text), "{text}: {done}");
    }
    let model = FakeModel::agreeable();
    let config =
        |models: Value| model_config("openai-compatible", &model, &json!({"models": models}));
    fixture.reload(&config(json!({"maxTokensPerDay": 100})));
    assert_eq!(fixture.turn("hi")["status"], "completed");
    let done = fixture.turn("hi").to_string();
    assert!(done.contains("models.maxTokensPerDay"), "{done}");
    let fixture = ConfiguredDaemon::started(&config(json!({"maxRequestsPerMinute": 1})));
    assert_eq!(fixture.turn("hi")["status"], "completed");
}

/// Keys `permissions.*` and `safety.*` that decide on calls.
#[tokio::test]
async fn rules_allow_and_deny_calls() {
    let fixture = ConfiguredDaemon::started(&json!({}));
    let write = |path: &str| ("write_file", json!({"path": path, "content": "new\n"}));
    let read = |path: &str| ("read_file", json!({"path": path}));
    let shell = |line: &str| ("run_shell", json!({"command": line}));
    let open =
        json!({"permissions": {"defaultAction": "allow"}, "safety": {"requireConfirmation": []}});
    let with = |more: Value| {
        let mut config = open.clone();
        merge(&mut config, &more);
        config
    };
    let allow_all = json!({"permissions": {"allow": ["write_file"]}});
    let allowed_paths = |all: Value| {
        with(
            json!({"safety": {"sandboxAllowedPaths": all}, "permissions": {"allow": ["write_file"]}}),
        )
    };
    for (config, (name, arguments), want) in [
        (json!({}), write("notes.txt"), "no_approver"),
        (allow_all, write("made.txt"), "ok"),
        (json!({}), shell("true"), "no_approver"),
        (open.clone(), shell("true"), "ok"),
        (
            with(json!({"safety": {"requireConfirmation": ["run_shell"]}})),
            shell("true"),
            "no_approver",
        ),
        (with(json!({"permissions": {"defaultAction": "deny"}})), shell("true"), "tool_denied"),
        (
            with(json!({"permissions": {"deny": ["read_file(secret)"]}})),
            read("secret/key.txt"),
            "tool_denied",
        ),
        (
            with(
                json!({"permissions": {"deny": ["read_file(secret)"], "overrides": ["read_file(secret/key.txt)"]}}),
            ),
            read("secret/key.txt"),
            "ok",
        ),
        (
            with(
                json!({"permissions": {"finalDeny": ["*(secret)"], "overrides": ["read_file(secret)"]}}),
            ),
            read("secret/key.txt"),
            "tool_denied",
        ),
        (with(json!({"safety": {"blockedCommands": ["touch"]}})), shell("touch x"), "tool_denied"),
        (allowed_paths(json!(["src"])), write("src/new.rs"), "ok"),
        (allowed_paths(json!(["src"])), write("src/../notes.txt"), "tool_denied"),
        (allowed_paths(json!([])), write("src/new.rs"), "tool_denied"),
    ] {
        fixture.reload(&config);
        let got = fixture.reason(name, arguments.clone()).await;
        assert_eq!(got, want, "{config}: {name} {arguments}");
    }
    // Commands are restricted to the same paths as tools that write.
    fixture.reload(&with(json!({"safety": {"sandboxAllowedPaths": ["src"]}})));
    let got = fixture
        .call("run_shell", json!({"command": "touch src/made && echo made; touch outside"}))
        .await;
    assert!(got.to_string().contains("Read-only"), "{got}");
    assert!(
        fixture.folder.join("src/made").exists() && !fixture.folder.join("outside").exists(),
        "{got}"
    );
}

/// `permissions.approvalTimeoutSeconds`: an unanswered approval is denied after that time.
#[tokio::test]
async fn approvals_wait_as_long_as_configured() {
    let fixture = ConfiguredDaemon::started(&json!({"permissions": {"approvalTimeoutSeconds": 1}}));
    let _approver = fixture.daemon().approver().await;
    let began = std::time::Instant::now();
    let got = fixture.call("write_file", json!({"path": "notes.txt", "content": "x"})).await;
    assert!(got["error"].is_object() && began.elapsed() >= Duration::from_secs(1), "{got}");
}

/// `safety.sandboxBlockedPaths`, `safety.sandboxEnabled`, and the settings of the shell.
#[tokio::test]
async fn commands_run_as_configured() {
    let open =
        json!({"permissions": {"defaultAction": "allow"}, "safety": {"requireConfirmation": []}});
    let with = |more: Value| {
        let mut config = open.clone();
        merge(&mut config, &more);
        config
    };
    let shell = |own: Value| with(json!({"tools": {"builtin": {"run_shell": own}}}));
    let mut fixture = ConfiguredDaemon::new();
    let closed = fixture.folder.join("secret");
    fixture.restart(&with(json!({"safety": {"sandboxBlockedPaths": [closed]}})));
    assert_eq!(
        fixture.reason("read_file", json!({"path": "secret/key.txt"})).await,
        "path_blocked"
    );
    let got = fixture.call("run_shell", json!({"command": "cat secret/key.txt"})).await;
    assert!(!got.to_string().contains("hidden"), "{got}");
    for (config, line, want) in [
        (shell(json!({"enabled": false})), "true", "unknown_tool"),
        (shell(json!({"mode": "off"})), "true", "unknown_tool"),
        (
            shell(json!({"mode": "allowlist", "allowedPrefixes": ["echo"]})),
            "touch x",
            "tool_denied",
        ),
        (shell(json!({"mode": "allowlist", "allowedPrefixes": ["echo"]})), "echo hi", "ok"),
        (shell(json!({"mode": "full"})), "touch x", "ok"),
    ] {
        fixture.restart(&config);
        assert_eq!(
            fixture.reason("run_shell", json!({"command": line})).await,
            want,
            "{config}: {line}"
        );
    }
    fixture.restart(&shell(json!({"timeoutSeconds": 1, "maxOutputChars": 20})));
    let got = fixture.call("run_shell", json!({"command": "seq 1000; sleep 30"})).await.to_string();
    assert!(got.contains("timedOut\":true") || got.contains("timed_out\":true"), "{got}");
    assert!(!got.contains("999"), "{got}");
    fixture.restart(&shell(json!({"cwd": "any"})));
    let got =
        fixture.call("run_shell", json!({"command": "pwd", "working_directory": "/tmp"})).await;
    assert!(got.to_string().contains("/tmp"), "{got}");
    fixture.restart(&shell(json!({"cwd": "workspace"})));
    let got =
        fixture.reason("run_shell", json!({"command": "pwd", "working_directory": "/tmp"})).await;
    assert_eq!(got, "path_outside_roots");
    // Without the sandbox a command can access the machine.
    fixture.restart(&with(json!({"safety": {"sandboxEnabled": false}})));
    let outside = fixture.home.join("outside.txt");
    let line = format!("echo made > {}", outside.display());
    let got = fixture.call("run_shell", json!({"command": line})).await;
    assert!(outside.exists(), "{got}");
    // Any other tool has limits too.
    fixture.restart(&with(json!({"tools": {"builtin": {"read_file": {"maxOutputChars": 3}}}})));
    let got = fixture.call("read_file", json!({"path": "src/a.rs"})).await;
    assert!(got.to_string().contains("[cut]") && !got.to_string().contains("fn two"), "{got}");
}

/// `listen.port`, `listen.address`, `listen.allowedHosts`, `daemon.log`, `daemon.idleExitSeconds`,
/// `roots`, `exclusions`, `resources.maxFileBytes`, `resources.maxConnections`,
/// `resources.maxRuns`.
#[tokio::test]
async fn daemon_starts_as_configured() {
    let mut fixture = ConfiguredDaemon::new();
    tree(&fixture.folder, &[("big.txt", &"much text\n".repeat(1000)), ("gone.skip", "left out\n")]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    fixture.write(&json!({
        "listen": {"port": port, "allowedHosts": ["cairn.test"]},
        "daemon": {"log": "debug", "idleExitSeconds": 1},
        "roots": [fixture.folder],
        "exclusions": ["*.skip"],
        "resources": {"maxFileBytes": 1000, "maxConnections": 3, "maxRuns": 1, "threads": 1},
    }));
    let (code, out, err) = fixture.cairn(&["status"]);
    assert_eq!(code, 4, "{out}{err}");
    let (code, out, err) = fixture.cairn(&["index", "status"]);
    assert_eq!(code, 0, "{out}{err}");
    let address = format!("127.0.0.1:{port}");
    let token = std::fs::read_to_string(fixture.home.join("token")).unwrap();
    let token = format!("Bearer {token}");
    let headers = [("authorization", token.as_str())];
    let connect = || crate::sealed::Raw::connect(&address, &headers);
    let mut raw = connect().await.unwrap();
    raw.ok("initialize", crate::sealed::hello()).await;
    let status = crate::contents::complete(&mut raw).await;
    assert_eq!(status["path"], json!(fixture.folder), "{status}");
    let files = raw.ok("fs.listDir", json!({"path": fixture.folder})).await.to_string();
    assert!(files.contains("big.txt"), "{files}");
    for (word, want) in [("much text", 0), ("left out", 0), ("fn one", 1)] {
        let results = raw.ok("search.lexical", json!({"query": word})).await;
        let hits = results["items"].as_array().unwrap().len();
        assert_eq!(hits.min(1), want, "{word}: {results}");
    }
    let stats = raw.ok("daemon.status", json!({})).await;
    assert_eq!(stats["idleExitSeconds"], 1, "{stats}");
    let _second = connect().await.unwrap();
    let _third = connect().await.unwrap();
    assert!(connect().await.is_err(), "a fourth connection");
    drop(raw);
    drop((_second, _third));
    let root = cairn_protocol::location::DataRoot(fixture.home.clone());
    wait_for("the end of the daemon", || (!cairn_client_sdk::is_root_locked(&root)).then_some(()));
    let log = std::fs::read_to_string(fixture.home.join("logs/daemon.log")).unwrap();
    assert!(log.contains("DEBUG"), "{log}");
    fixture.restart(&json!({
        "listen": {"address": "127.0.0.2", "lan": true, "lanAddress": "127.0.0.3", "lanPort": port},
        "discovery": "off",
    }));
    let addresses = fixture.daemon().file().unwrap().addresses;
    assert!(addresses.contains(&format!("127.0.0.3:{port}")), "{addresses:?}");
    assert!(fixture.daemon().address().starts_with("127.0.0.2:"), "{}", fixture.daemon().address());
}

/// Values that refer to something that does not exist are refused with their key: `embedder`,
/// `rerank.*`, `ann`, `version`, `resources.threads`, `resources.memoryMb`, `discovery`.
#[test]
fn invalid_value_is_refused_with_its_key() {
    let fixture = ConfiguredDaemon::new();
    for (config, key) in [
        (json!({"embedder": "/no/such/model"}), "embedder"),
        (json!({"rerank": {"model": "/no/such/model"}}), "rerank.model"),
        (json!({"rerank": {"top": 0}}), "rerank.top"),
        (json!({"rerank": {"maxMs": 0}}), "rerank.maxMs"),
        (json!({"ann": "graph"}), "ann"),
        (json!({"version": "2.0"}), "version"),
        (json!({"resources": {"threads": 5000}}), "resources.threads"),
        (json!({"resources": {"memoryMb": 1}}), "resources.memoryMb"),
        (json!({"discovery": "loud"}), "discovery"),
        (json!({"trust": {"folders": 1}}), "trust.folders"),
    ] {
        fixture.write(&config);
        let (code, out, err) = fixture.cairn(&["index", "status"]);
        assert!(code != 0 && err.contains(key), "{key}: {code} {out}{err}");
    }
}

/// `trust.folders` covers instructions; the folder's file may loosen rules that others may only
/// tighten once its content is trusted.
#[tokio::test]
async fn trusted_folder_sets_its_model() {
    let model = FakeModel::agreeable();
    let fixture = ConfiguredDaemon::new();
    let mut fixture = fixture;
    let base = model_config("openai-compatible", &model, &json!({}));
    tree(
        &fixture.folder,
        &[(".cairn.json", &json!({"llm": {"model": "m-of-the-folder"}}).to_string())],
    );
    fixture.restart(&base);
    fixture.turn("hi");
    assert_eq!(model.latest().body["model"], "m-1");
    let mut trusting = base.clone();
    merge(&mut trusting, &json!({"trust": {"folders": [fixture.folder]}}));
    tree(&fixture.folder, &[("AGENTS.md", "be-exact-here\n")]);
    fixture.restart(&trusting);
    fixture.turn("hi");
    let body = model.latest().body;
    assert_eq!(body["model"], "m-1");
    assert!(body.to_string().contains("be-exact-here"), "{body}");
    let folder = fixture.folder.to_string_lossy().into_owned();
    let done = command(&fixture.home).args(["trust", &folder, "--yes"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    fixture.turn("hi");
    assert_eq!(model.latest().body["model"], "m-of-the-folder");
}

/// Checks `git.autoCommit`, `git.commitMessagePrefix` and `plugins`.
#[test]
fn commits_and_plugin_hooks_follow_configuration() {
    let model = FakeModel::start(|n, _| {
        if n == 0 {
            Answer::Call("write_file", json!({"path": "made.txt", "content": "made\n"}))
        } else {
            Answer::Text("done")
        }
    });
    let mut fixture = ConfiguredDaemon::new();
    std::fs::remove_dir_all(fixture.folder.join(".git")).unwrap();
    git(&fixture.folder, &["init", "-q"]);
    git(&fixture.folder, &["config", "user.name", "A"]);
    git(&fixture.folder, &["config", "user.email", "a@b"]);
    git(&fixture.folder, &["add", "."]);
    git(&fixture.folder, &["commit", "-q", "-m", "first"]);
    let hook_log = fixture.home.join("heard.txt");
    let script = format!("cat >> {}; echo '{{}}'", hook_log.display());
    fixture.restart(&model_config(
        "openai-compatible",
        &model,
        &json!({
            "git": {"autoCommit": true, "commitMessagePrefix": "[robot]"},
            "permissions": {"allow": ["write_file"]},
            "plugins": [{"name": "ear", "command": ["/bin/sh", "-c", script], "hooks": ["before_tool"]}],
        }),
    ));
    let done = fixture.turn("make it");
    assert_eq!(done["status"], "completed", "{done}");
    let log = git(&fixture.folder, &["log", "--format=%s", "-1"]);
    assert!(log.starts_with("[robot]"), "{log}: {done}");
    let hook_log = std::fs::read_to_string(hook_log).unwrap_or_default();
    assert!(hook_log.contains("write_file") && !hook_log.contains("after_tool"), "{hook_log}");
}

/// Checks `listen.allowedHosts` and `listen.allowedOrigins`.
#[test]
fn configured_hosts_and_origins_are_accepted() {
    use std::io::{Read as _, Write as _};
    let mut fixture = ConfiguredDaemon::new();
    fixture.restart(
        &json!({"listen": {"allowedHosts": ["cairn.test"], "allowedOrigins": ["https://a.test"]}}),
    );
    let status = |host: &str, origin: &str| {
        let mut stream = std::net::TcpStream::connect(fixture.daemon().address()).unwrap();
        let token = fixture.daemon().token();
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(status("cairn.test", "https://a.test"), "200");
    assert_eq!(status("other.test", "https://a.test"), "403");
    assert_eq!(status("cairn.test", "https://b.test"), "403");
}
