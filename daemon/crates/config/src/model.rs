//! What can be configured, and every default.
//!
//! The sections `llm`, `context`, `agent`, `safety`, `tools`, `git` and `ui` keep the snake_case names they have always had; the
//! others are camelCase like the wire.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares a section: its fields with their documentation and default.
macro_rules! section {
    ($(#[$meta:meta])* $name:ident $case:literal { $($(#[$doc:meta])* $field:ident: $type:ty = $default:expr,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, rename_all = $case)]
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
    };
}

mod checks;
mod extras;
mod rerank;
mod telemetry;
pub use extras::{McpConfig, McpServer, PluginHook, PluginProgram};
pub use rerank::RerankConfig;
pub use telemetry::TelemetryConfig;

fn list<T: From<&'static str>>(items: &[&'static str]) -> Vec<T> {
    items.iter().map(|i| T::from(i)).collect()
}

section! {
    /// The whole configuration.
    Config "camelCase" {
        /// Version of this form.
        version: String = "1.0".into(),
        /// Folders that are declared and indexed when the daemon starts.
        roots: Vec<PathBuf> = vec![],
        /// Globs of paths to leave out of every index, as in a `.gitignore` at each root.
        exclusions: Vec<String> = vec![],
        /// `builtin`, or a folder with an embedding model: a static table, or (with the feature `transformer`) a BERT model
        /// as `config.json`, `tokenizer.json` and `model.safetensors`.
        embedder: String = "builtin".into(),
        /// A second judgement of the best answers of a hybrid search.
        rerank: RerankConfig = RerankConfig::default(),
        /// How vectors are searched.
        ann: Ann = Ann::BruteForce,
        /// Caps on what the daemon uses.
        resources: ResourcesConfig = ResourcesConfig::default(),
        /// Which models outside this machine may be called.
        models: ModelsConfig = ModelsConfig::default(),
        /// Who may call which tool.
        permissions: PermissionsConfig = PermissionsConfig::default(),
        /// Where the daemon listens.
        listen: ListenConfig = ListenConfig::default(),
        /// Whether a listener that the network can reach is announced there.
        discovery: Discovery = Discovery::Auto,
        /// The daemon's own life.
        daemon: DaemonConfig = DaemonConfig::default(),
        /// The sandbox for commands.
        sandbox: SandboxConfig = SandboxConfig::default(),
        /// Folders whose own configuration may loosen safety.
        trust: TrustConfig = TrustConfig::default(),
        /// The model that agents use.
        llm: LlmConfig = LlmConfig::default(),
        /// What a model is shown.
        context: ContextConfig = ContextConfig::default(),
        /// The agent's loop.
        agent: AgentConfig = AgentConfig::default(),
        /// What tools may touch.
        safety: SafetyConfig = SafetyConfig::default(),
        /// The tools.
        tools: ToolsConfig = ToolsConfig::default(),
        /// Programs that are told of sessions, tool calls and questions to models, in this order.
        plugins: Vec<PluginProgram> = vec![],
        /// Servers whose tools are offered beside Cairn's own.
        mcp: McpConfig = McpConfig::default(),
        /// Traces and metrics for an OpenTelemetry collector.
        telemetry: TelemetryConfig = TelemetryConfig::default(),
        /// Commits by the agent.
        git: GitConfig = GitConfig::default(),
        /// The terminal.
        ui: UiConfig = UiConfig::default(),
    }
}

/// How vectors are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ann {
    /// Every vector is compared: exact.
    BruteForce,
}

section! {
    /// Caps on what the daemon uses.
    ResourcesConfig "camelCase" {
        /// Threads for indexing and search; 0 for as many as there are processors.
        threads: usize = 0,
        /// Largest file that is indexed, in bytes.
        max_file_bytes: u64 = 4 * 1024 * 1024,
        /// Connections at once.
        max_connections: u32 = 1024,
        /// Memory for the caches of all databases together, in MiB.
        memory_mb: u64 = 512,
        /// Runs at work at once; one more is refused as `overloaded`.
        max_runs: u32 = 16,
    }
}

section! {
    /// Which models outside this machine may be called.
    ModelsConfig "camelCase" {
        /// Whether any may be.
        allow_external: bool = false,
        /// Providers that may be called; all known ones when empty.
        providers: Vec<String> = vec![],
        /// Models that may be called; all of these providers when empty.
        models: Vec<String> = vec![],
        /// Requests a minute, over all sessions.
        max_requests_per_minute: u32 = 60,
        /// Tokens a day, over all sessions; no cap when absent.
        max_tokens_per_day: Option<u64> = None,
    }
}

/// What happens to a call that no rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DefaultAction {
    /// It is done.
    Allow,
    /// The user is asked.
    Ask,
    /// It is refused.
    Deny,
}

/// A rule: `tool`, `tool(path)` or `run_shell(command)`, alone or with examples that are tried when it is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RuleEntry {
    /// The rule alone.
    Text(String),
    /// With examples.
    Checked(CheckedRule),
}

/// A rule with examples: command lines where it speaks of commands, else paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CheckedRule {
    /// The rule.
    pub rule: String,
    /// What it must match.
    pub matches: Vec<String>,
    /// What it must not match.
    pub rejects: Vec<String>,
}

section! {
    /// Who may call which tool; rules are matched in this order.
    PermissionsConfig "camelCase" {
        /// Never, whatever else says so.
        final_deny: Vec<RuleEntry> = vec![],
        /// Exceptions from `deny`.
        overrides: Vec<RuleEntry> = vec![],
        /// Refused.
        deny: Vec<RuleEntry> = vec![],
        /// Done without asking.
        allow: Vec<RuleEntry> = vec![],
        /// For everything else.
        default_action: DefaultAction = DefaultAction::Ask,
        /// Seconds that an approval waits; silence is a no.
        approval_timeout_seconds: u64 = 600,
    }
}

section! {
    /// Where the daemon listens.
    ListenConfig "camelCase" {
        /// Address.
        address: String = "127.0.0.1".into(),
        /// Port; the next free one when it is taken.
        port: u16 = 7433,
        /// Whether paired devices may connect from the local network, by TLS.
        lan: bool = false,
        /// The address that they connect to; the whole network's unless one is named.
        lan_address: String = "0.0.0.0".into(),
        /// Its port; the next free one when it is taken.
        lan_port: u16 = 7434,
        /// Origins of web pages that may connect.
        allowed_origins: Vec<String> = vec![],
        /// Host names that clients may use besides loopback's.
        allowed_hosts: Vec<String> = vec![],
    }
}

/// Whether the daemon announces itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Discovery {
    /// When a listener can be reached from the network.
    Auto,
    /// Never.
    Off,
}

section! {
    /// The daemon's own life.
    DaemonConfig "camelCase" {
        /// Seconds without client and work after which a daemon that a client started leaves; 0 for never.
        idle_exit_seconds: u64 = 900,
        /// Seconds that running work gets to end by itself when the daemon stops; then it is interrupted.
        drain_seconds: u64 = 10,
        /// What it logs: `error`, `warn`, `info`, `debug`, `trace`, also by part (`info,cairn_search=debug`). `--log` and
        /// `CAIRN_LOG` win over it.
        log: String = "info".into(),
    }
}

/// What happens to commands where no sandbox can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenMissing {
    /// They are refused.
    Refuse,
    /// The user is asked for each.
    Ask,
}

section! {
    /// The sandbox for commands.
    SandboxConfig "camelCase" {
        /// What happens where none can be had.
        when_missing: WhenMissing = WhenMissing::Refuse,
    }
}

section! {
    /// Folders whose own configuration may loosen safety. Only the user's files can name them.
    TrustConfig "camelCase" {
        /// The folders; those inside them are trusted too.
        folders: Vec<PathBuf> = vec![],
    }
}

section! {
    /// The model that agents use.
    LlmConfig "snake_case" {
        /// Provider.
        provider: String = "ollama".into(),
        /// Model.
        model: String = "qwen3:14b".into(),
        /// Base URL of the provider.
        endpoint: Option<String> = Some("http://localhost:11434".into()),
        /// Key for it. Never printed.
        api_key: Option<String> = None,
        /// A file that holds the key and that nobody else may read (mode 0600).
        api_key_file: Option<PathBuf> = None,
        /// A program and its arguments that print the key: for a keychain. Run once, when it is needed.
        api_key_command: Vec<String> = vec![],
        /// 0 to 2.
        temperature: f64 = 0.7,
        /// Tokens of one answer.
        max_tokens: u32 = 4096,
        /// Seconds for one answer.
        timeout_seconds: u64 = 120,
        /// Command-line agents of yours that may be asked as models, by provider: `claudeCode`, `codex`. One that is not
        /// named here is never started.
        agents: BTreeMap<String, AgentProgram> = BTreeMap::new(),
    }
}

section! {
    /// A command-line agent of the user's. It is run headless in the sandbox, in an empty folder, with the network.
    AgentProgram "snake_case" {
        /// The program; when absent, `claude` or `codex` on the search path.
        path: Option<PathBuf> = None,
        /// The folder with its login; `~/.claude` or `~/.codex` when absent.
        credentials: Option<PathBuf> = None,
        /// Whether it may write to that folder, to renew its login and to keep what it remembers.
        credentials_writable: bool = false,
        /// Names of environment variables that it is given, such as one that holds a key.
        env: Vec<String> = vec![],
        /// Further files and folders that it may read, such as the one that its runtime is in.
        readable: Vec<PathBuf> = vec![],
        /// Further arguments, before those that Cairn gives it.
        arguments: Vec<String> = vec![],
        /// Seconds for one answer.
        timeout_seconds: u64 = 600,
    }
}

section! {
    /// What a model is shown.
    ContextConfig "snake_case" {
        /// Tokens in all.
        max_tokens: u32 = 32_000,
        /// Part of them, 0 to 1, after which older turns are condensed.
        compaction_threshold: f64 = 0.95,
        /// Tokens of the repository map.
        repo_map_tokens: u32 = 1024,
        /// Characters of one tool's output.
        max_tool_output_chars: u64 = 10_000,
    }
}

section! {
    /// The agent's loop.
    AgentConfig "snake_case" {
        /// Answers of the model in one turn.
        max_iterations: u32 = 25,
        /// Attempts after a failed request.
        retry_attempts: u32 = 3,
        /// Wait before the first of them, in milliseconds; doubled each time.
        retry_backoff_base_ms: u64 = 1000,
    }
}

section! {
    /// What tools may touch.
    SafetyConfig "snake_case" {
        /// Whether commands run in a sandbox.
        sandbox_enabled: bool = true,
        /// Folders that tools may write to, relative to the workspace.
        sandbox_allowed_paths: Vec<String> = list(&["./"]),
        /// Paths that nothing may touch, even inside a root. They win over every allowed one.
        sandbox_blocked_paths: Vec<PathBuf> = list(BLOCKED),
        /// Tools that ask first.
        require_confirmation: Vec<String> = list(&["write_file", "run_shell", "delete_file"]),
        /// Commands that are never run.
        blocked_commands: Vec<String> = list(&["rm -rf /", "sudo", "chmod 777"]),
    }
}

/// Where people keep secrets.
const BLOCKED: &[&str] = &[
    "~/.ssh",
    "~/.aws",
    "~/.config",
    "~/.gnupg",
    "~/.kube",
    "~/.docker",
    "~/.azure",
    "~/.netrc",
    "~/.git-credentials",
    "~/.npmrc",
    "~/.pypirc",
    "~/.cargo/credentials.toml",
    "~/.password-store",
    "~/.local/share/keyrings",
    "~/Library/Keychains",
];

/// How tools are offered to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolsMode {
    /// Each by its own name.
    Split,
    /// A few that take the operation as an argument.
    Unified,
    /// Both ways.
    Both,
}

/// What searches the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebBackend {
    /// The page without scripts of DuckDuckGo; needs no key.
    DuckDuckGo,
    /// A SearXNG server: `endpoint` is its address.
    Searxng,
    /// Brave's interface, which needs a key.
    Brave,
}

section! {
    /// The web tools.
    WebConfig "snake_case" {
        /// What searches.
        backend: WebBackend = WebBackend::DuckDuckGo,
        /// Its address, where it is not the usual one.
        endpoint: Option<String> = None,
        /// The environment variable that holds its key.
        api_key_env: Option<String> = None,
    }
}

section! {
    /// The tools.
    ToolsConfig "snake_case" {
        /// How they are offered to a model.
        mode: ToolsMode = ToolsMode::Split,
        /// Settings of built-in tools, by name.
        builtin: BTreeMap<String, BuiltinTool> = BTreeMap::new(),
        /// The web tools.
        web: WebConfig = WebConfig::default(),
        /// Tools that are programs of the user's.
        external: Vec<ExternalTool> = vec![],
    }
}

/// What the shell tool may be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShellMode {
    /// Nothing.
    Off,
    /// Commands that begin with an allowed prefix.
    Allowlist,
    /// Any command; each is still asked about.
    Full,
}

/// Where the shell tool may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShellCwd {
    /// In the workspace.
    Workspace,
    /// Anywhere.
    Any,
}

section! {
    /// Settings of one built-in tool.
    BuiltinTool "snake_case" {
        /// Whether it is offered.
        enabled: bool = true,
        /// Seconds for one call; the tool's own limit when absent.
        timeout_seconds: Option<u64> = None,
        /// Characters of its output; the tool's own limit when absent.
        max_output_chars: Option<u64> = None,
        /// For the shell: what it may be asked for.
        mode: Option<ShellMode> = None,
        /// For the shell: prefixes for the mode `allowlist`.
        allowed_prefixes: Vec<String> = vec![],
        /// For the shell: where it may run.
        cwd: Option<ShellCwd> = None,
    }
}

section! {
    /// A tool that is a program of the user's.
    ExternalTool "snake_case" {
        /// Its name.
        name: String = String::new(),
        /// `executable`.
        r#type: String = "executable".into(),
        /// The program: one file, which is called with one JSON argument.
        path: PathBuf = PathBuf::new(),
        /// What it does, for models; that of its `.tool.json` when absent.
        description: Option<String> = None,
        /// Its parameters: by name with `type`, `required`, `default` and `description`, or a JSON Schema; those of its
        /// `.tool.json` when absent.
        parameters: Option<serde_json::Value> = None,
        /// Seconds for one call.
        timeout_seconds: Option<u64> = None,
        /// Whether it uses the network; a run without it cannot call it then.
        network: Option<bool> = None,
        /// Whether it is offered.
        enabled: bool = true,
        /// Whether it takes the place of a built-in tool of its name.
        replaces_builtin: bool = false,
    }
}

section! {
    /// Commits by the agent.
    GitConfig "snake_case" {
        /// Whether it commits what it changed.
        auto_commit: bool = false,
        /// What its messages begin with.
        commit_message_prefix: String = "[cairn]".into(),
    }
}

section! {
    /// The terminal.
    UiConfig "snake_case" {
        /// Colours.
        color: bool = true,
        /// Tokens used.
        show_token_usage: bool = true,
        /// Tool calls.
        show_tool_calls: bool = true,
        /// Answers as they come.
        stream_responses: bool = true,
        /// Whether `cairn chat` is the user's shell, as with `--shell`.
        shell: bool = false,
    }
}
