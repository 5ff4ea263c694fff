//! All configuration keys and their defaults.
//!
//! Names are camelCase like the wire; the snake_case of older files is read with a warning.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares a section: its fields with documentation and defaults.
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

mod after_edit;
mod chat;
mod checks;
mod extras;
mod fleet;
mod hooks;
mod network;
mod notifications;
mod rerank;
mod retention;
mod telemetry;
pub use after_edit::{DiagnosticsConfig, DiagnosticsMode, FormatConfig, LanguageServer};
pub use chat::{ChatConfig, ChatMode, ChatNotify, ChatTheme};
pub use extras::{McpConfig, McpServer, PluginHook, PluginProgram};
pub use fleet::{FleetConfig, FleetMirror};
pub use hooks::{AgentPluginsConfig, HookCommand, HookGroup, HooksConfig};
pub use network::{NetworkConfig, NetworkPreset};
pub use notifications::{NotificationsConfig, WorktreesConfig};
pub use rerank::RerankConfig;
pub use retention::RetentionConfig;
pub use telemetry::TelemetryConfig;

fn list<T: From<&'static str>>(items: &[&'static str]) -> Vec<T> {
    items.iter().map(|i| T::from(i)).collect()
}

section! {
    Config "camelCase" {
        /// Version of the file format.
        version: String = "1.0".into(),
        /// Folders that are declared and indexed when the daemon starts.
        roots: Vec<PathBuf> = vec![],
        /// Globs of paths that no index contains, as in a `.gitignore` at each root.
        exclusions: Vec<String> = vec![],
        /// `builtin`, or a folder with an embedding model: a static table, or (with the feature `transformer`) a BERT model
        /// as `config.json`, `tokenizer.json` and `model.safetensors`.
        embedder: String = "builtin".into(),
        /// Reranking of the best results of a hybrid search by a second model.
        rerank: RerankConfig = RerankConfig::default(),
        /// Limits of the log of sessions.
        retention: RetentionConfig = RetentionConfig::default(),
        /// Algorithm of vector search.
        ann: Ann = Ann::BruteForce,
        /// Limits on the resources that the daemon uses.
        resources: ResourcesConfig = ResourcesConfig::default(),
        /// Models outside this machine that may be called.
        models: ModelsConfig = ModelsConfig::default(),
        /// Rules for tool calls.
        permissions: PermissionsConfig = PermissionsConfig::default(),
        /// Addresses that the daemon listens on.
        listen: ListenConfig = ListenConfig::default(),
        /// Announcement of listeners that can be reached from the network.
        discovery: Discovery = Discovery::Auto,
        /// Lifetime and logging of the daemon.
        daemon: DaemonConfig = DaemonConfig::default(),
        /// Sandbox for commands.
        sandbox: SandboxConfig = SandboxConfig::default(),
        /// Domains that commands may reach.
        network: NetworkConfig = NetworkConfig::default(),
        /// Folders whose own configuration may loosen safety.
        trust: TrustConfig = TrustConfig::default(),
        /// The model that agents use.
        llm: LlmConfig = LlmConfig::default(),
        /// Limits on the text that a model receives.
        context: ContextConfig = ContextConfig::default(),
        /// The agent's loop.
        agent: AgentConfig = AgentConfig::default(),
        /// Restrictions on tools.
        safety: SafetyConfig = SafetyConfig::default(),
        /// Tools.
        tools: ToolsConfig = ToolsConfig::default(),
        /// Programs that are notified of sessions, tool calls and model requests, in this order.
        plugins: Vec<PluginProgram> = vec![],
        /// Hooks of agents.
        hooks: HooksConfig = HooksConfig::default(),
        /// Agent plugins.
        agent_plugins: AgentPluginsConfig = AgentPluginsConfig::default(),
        /// MCP servers whose tools are offered beside Cairn's own.
        mcp: McpConfig = McpConfig::default(),
        /// Traces and metrics for an OpenTelemetry collector.
        telemetry: TelemetryConfig = TelemetryConfig::default(),
        /// Notifications of unattended runs.
        notifications: NotificationsConfig = NotificationsConfig::default(),
        /// The broker that connects this daemon with those of other machines.
        fleet: FleetConfig = FleetConfig::default(),
        /// Work trees of sessions.
        worktrees: WorktreesConfig = WorktreesConfig::default(),
        /// Commits by the agent.
        git: GitConfig = GitConfig::default(),
        /// Formatters that run after edits.
        format: FormatConfig = FormatConfig::default(),
        /// Checks that run after edits.
        diagnostics: DiagnosticsConfig = DiagnosticsConfig::default(),
        /// The terminal.
        ui: UiConfig = UiConfig::default(),
        /// The chat in a terminal.
        chat: ChatConfig = ChatConfig::default(),
    }
}

/// Algorithm of vector search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ann {
    /// Every vector is compared; results are exact.
    BruteForce,
}

section! {
    /// Limits on the resources that the daemon uses.
    ResourcesConfig "camelCase" {
        /// Threads for indexing and search; 0 for the number of processors.
        threads: usize = 0,
        /// Largest file that is indexed, in bytes.
        max_file_bytes: u64 = 4 * 1024 * 1024,
        /// Maximum number of simultaneous connections.
        max_connections: u32 = 1024,
        /// Memory for the caches of all databases together, in MiB.
        memory_mb: u64 = 512,
        /// Maximum number of simultaneous runs; further ones are refused as `overloaded`.
        max_runs: u32 = 16,
    }
}

section! {
    /// Models outside this machine that may be called.
    ModelsConfig "camelCase" {
        /// Allows calls to models outside this machine.
        allow_external: bool = false,
        /// Providers that may be called; all known ones when empty.
        providers: Vec<String> = vec![],
        /// Models that may be called; all models of the providers when empty.
        models: Vec<String> = vec![],
        /// Maximum requests per minute over all sessions.
        max_requests_per_minute: u32 = 60,
        /// Maximum tokens per day over all sessions; unlimited when absent.
        max_tokens_per_day: Option<u64> = None,
        /// Maximum cost of one turn in US dollars, by the known prices; unlimited when absent.
        max_usd_per_turn: Option<f64> = None,
        /// Maximum cost of one session in US dollars; unlimited when absent.
        max_usd_per_session: Option<f64> = None,
        /// Maximum cost per day over all sessions in US dollars; unlimited when absent.
        max_usd_per_day: Option<f64> = None,
    }
}

/// Action for a call that no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DefaultAction {
    /// The call runs.
    Allow,
    /// The user is prompted.
    Ask,
    /// The call is refused.
    Deny,
}

/// A rule: `tool`, `tool(path)` or `run_shell(command)`, alone or with examples that are checked
/// when it is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RuleEntry {
    Text(String),
    Checked(CheckedRule),
}

/// A rule with examples: command lines for a rule about commands, otherwise paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CheckedRule {
    pub rule: String,
    /// Examples that the rule must match.
    pub matches: Vec<String>,
    /// Examples that the rule must not match.
    pub rejects: Vec<String>,
}

section! {
    /// Rules for tool calls, matched in this order.
    PermissionsConfig "camelCase" {
        /// Calls that are always refused, whatever the other rules say.
        final_deny: Vec<RuleEntry> = vec![],
        /// Exceptions to `deny`.
        overrides: Vec<RuleEntry> = vec![],
        /// Calls that are refused.
        deny: Vec<RuleEntry> = vec![],
        /// Calls that run without a prompt.
        allow: Vec<RuleEntry> = vec![],
        /// Action for every other call.
        default_action: DefaultAction = DefaultAction::Ask,
        /// Seconds until an unanswered approval counts as refused.
        approval_timeout_seconds: u64 = 600,
    }
}

section! {
    /// Addresses that the daemon listens on.
    ListenConfig "camelCase" {
        /// Address to bind.
        address: String = "127.0.0.1".into(),
        /// Port to bind; the next free one if it is in use.
        port: u16 = 7433,
        /// Lets paired devices connect from the local network, by TLS.
        lan: bool = false,
        /// Address to bind for paired devices; all interfaces by default.
        lan_address: String = "0.0.0.0".into(),
        /// Port to bind for paired devices; the next free one if it is in use.
        lan_port: u16 = 7434,
        /// Origins of web pages that may connect.
        allowed_origins: Vec<String> = vec![],
        /// Host names that clients may use besides those of loopback.
        allowed_hosts: Vec<String> = vec![],
    }
}

/// Announcement of the daemon in the local network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Discovery {
    /// Announce listeners that can be reached from the network.
    Auto,
    /// Announce nothing.
    Off,
}

section! {
    /// Lifetime and logging of the daemon.
    DaemonConfig "camelCase" {
        /// Seconds without clients and work after which a daemon that was started on demand exits;
        /// 0 disables the exit.
        idle_exit_seconds: u64 = 900,
        /// Seconds that running work may take to finish when the daemon stops, before it is
        /// interrupted.
        drain_seconds: u64 = 10,
        /// Log level: `error`, `warn`, `info`, `debug` or `trace`, also per module
        /// (`info,cairn_search=debug`). `--log` and `CAIRN_LOG` take precedence.
        log: String = "info".into(),
    }
}

/// Action for commands on a machine without a usable sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenMissing {
    /// Commands are refused.
    Refuse,
    /// The user is prompted for each command.
    Ask,
}

section! {
    /// Sandbox for commands.
    SandboxConfig "camelCase" {
        /// Action for commands on a machine without a usable sandbox.
        when_missing: WhenMissing = WhenMissing::Refuse,
        /// Maximum number of background commands of one session.
        max_background: u32 = 8,
        /// Seconds after which a background command is stopped.
        background_seconds: u64 = 14_400,
    }
}

section! {
    /// Folders whose instructions (`AGENTS.md`) and skills are given to models, and in which language
    /// servers start. What runs by itself is trusted by its content alone. Only the user's files
    /// can name them.
    TrustConfig "camelCase" {
        /// Trusted folders; folders inside them are trusted too.
        folders: Vec<PathBuf> = vec![],
    }
}

section! {
    /// The model that agents use.
    LlmConfig "camelCase" {
        /// Name of the provider.
        provider: String = "ollama".into(),
        /// Name of the model.
        model: String = "qwen3:14b".into(),
        /// Base URL of the provider.
        endpoint: Option<String> = Some("http://localhost:11434".into()),
        /// API key of the provider. It is never printed.
        api_key: Option<String> = None,
        /// File that contains the API key and that only its owner can read (mode 0600).
        api_key_file: Option<PathBuf> = None,
        /// Program and arguments that print the API key, for a keychain. It runs once, on first
        /// use.
        api_key_command: Vec<String> = vec![],
        /// Sampling temperature, 0 to 2; the provider's own when absent, and for models that take
        /// none.
        temperature: Option<f64> = None,
        /// API of `openai` and `openai-compatible`: `chat` or `responses`.
        api: LlmApi = LlmApi::Chat,
        /// Effort of reasoning, at every provider: `none`, `minimal`, `low`, `medium`, `high`, `xhigh`
        /// or `max`, as the model allows; the model's own when absent.
        reasoning_effort: Option<String> = None,
        /// Form of tool calls: `native`, or `schema` for small models that fail at the native form.
        /// With `schema`, the server must enforce a JSON Schema.
        tool_calls: LlmToolCalls = LlmToolCalls::Native,
        /// Maximum tokens of one answer.
        max_tokens: u32 = 4096,
        /// Seconds that one answer may take.
        timeout_seconds: u64 = 120,
        /// Command-line agents that may serve as models, by provider: `claudeCode`, `codex`. An
        /// agent that is not configured is never started.
        agents: BTreeMap<String, AgentProgram> = BTreeMap::new(),
    }
}

/// Form in which a model makes tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LlmToolCalls {
    /// The form of the provider.
    Native,
    /// JSON that a schema forces.
    Schema,
}

/// API of OpenAI, and of servers compatible with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LlmApi {
    /// Chat completions, which every compatible server has.
    Chat,
    /// Responses.
    Responses,
}

section! {
    /// A command-line agent of the user. It runs headless in the sandbox, in an empty folder, with
    /// network access.
    AgentProgram "camelCase" {
        /// Path of the program; when absent, `claude` or `codex` from the search path.
        path: Option<PathBuf> = None,
        /// Folder with the agent's login; `~/.claude` or `~/.codex` when absent.
        credentials: Option<PathBuf> = None,
        /// Lets the agent write to that folder, to renew its login and to store its state.
        credentials_writable: bool = false,
        /// Names of environment variables that are passed on, such as one that contains a key.
        env: Vec<String> = vec![],
        /// Further files and folders that the agent may read, such as the folder of its runtime.
        readable: Vec<PathBuf> = vec![],
        /// Further arguments, placed before those of Cairn.
        arguments: Vec<String> = vec![],
        /// Seconds that one answer may take.
        timeout_seconds: u64 = 600,
    }
}

section! {
    /// Limits on the text that a model receives.
    ContextConfig "camelCase" {
        /// Most tokens of the context window; 0 for the model's own size, or 32,000 if it does not
        /// report one.
        max_tokens: u32 = 0,
        /// Fraction of the window, 0 to 1, above which older turns are condensed.
        compaction_threshold: f64 = 0.95,
        /// Size of the repository map in tokens.
        repo_map_tokens: u32 = 1024,
        /// Maximum characters of one tool's output; a read of a file may have as many tokens.
        max_tool_output_chars: u64 = 10_000,
    }
}

section! {
    /// The agent's loop.
    AgentConfig "camelCase" {
        /// Maximum model answers per turn.
        max_iterations: u32 = 25,
        /// Maximum retries of a failed request.
        retry_attempts: u32 = 3,
        /// Milliseconds before the first retry; doubled for each further one.
        retry_backoff_base_ms: u64 = 1000,
    }
}

section! {
    /// Restrictions on tools.
    SafetyConfig "camelCase" {
        /// Runs commands in a sandbox.
        sandbox_enabled: bool = true,
        /// Folders that tools may write to, relative to the workspace.
        sandbox_allowed_paths: Vec<String> = list(&["./"]),
        /// Paths that no tool may touch, even inside a root. They take precedence over allowed
        /// ones.
        sandbox_blocked_paths: Vec<PathBuf> = list(DEFAULT_BLOCKED_PATHS),
        /// Tools that need a confirmation. Without `edit_file`, an edit of a file that the session
        /// has read needs none.
        require_confirmation: Vec<String> = list(&["write_file", "run_shell", "delete_file"]),
        /// Commands that never run.
        blocked_commands: Vec<String> = list(&["rm -rf /", "sudo", "chmod 777"]),
    }
}

/// Common locations of secrets.
const DEFAULT_BLOCKED_PATHS: &[&str] = &[
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

/// Form in which tools are offered to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolsMode {
    /// Each tool under its own name.
    Split,
    /// A few tools that take the operation as an argument.
    Unified,
    /// Both forms.
    Both,
}

/// Service that searches the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebBackend {
    /// The script-free page of DuckDuckGo; it needs no key.
    DuckDuckGo,
    /// A SearXNG server; `endpoint` is its address.
    Searxng,
    /// The Brave Search API; it needs a key.
    Brave,
}

section! {
    /// Web tools.
    WebConfig "camelCase" {
        /// Service that searches the web.
        backend: WebBackend = WebBackend::DuckDuckGo,
        /// Address of the service, if it is not the default one.
        endpoint: Option<String> = None,
        /// Environment variable that contains the service's key.
        api_key_env: Option<String> = None,
    }
}

section! {
    /// Tools.
    ToolsConfig "camelCase" {
        /// Form in which tools are offered to a model.
        mode: ToolsMode = ToolsMode::Split,
        /// Settings of built-in tools by name.
        builtin: BTreeMap<String, BuiltinTool> = BTreeMap::new(),
        /// Web tools.
        web: WebConfig = WebConfig::default(),
        /// Tools that are programs of the user.
        external: Vec<ExternalTool> = vec![],
    }
}

/// Commands that the shell tool accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShellMode {
    /// None.
    Off,
    /// Commands that start with an allowed prefix.
    Allowlist,
    /// Any command; the approval rules still apply.
    Full,
}

/// Working directories that the shell tool accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShellCwd {
    /// Folders of the workspace.
    Workspace,
    /// Any folder.
    Any,
}

section! {
    /// Settings of a built-in tool.
    BuiltinTool "camelCase" {
        /// Offers the tool to models.
        enabled: bool = true,
        /// Seconds that one call may take; the tool's own limit when absent.
        timeout_seconds: Option<u64> = None,
        /// Maximum characters of output; the tool's own limit when absent.
        max_output_chars: Option<u64> = None,
        /// For the shell: commands that it accepts.
        mode: Option<ShellMode> = None,
        /// For the shell: prefixes for the mode `allowlist`.
        allowed_prefixes: Vec<String> = vec![],
        /// For the shell: working directories that it accepts.
        cwd: Option<ShellCwd> = None,
    }
}

section! {
    /// A tool that is a program of the user.
    ExternalTool "camelCase" {
        /// Unique name.
        name: String = String::new(),
        /// `executable`.
        r#type: String = "executable".into(),
        /// Path of the program, which is called with one JSON argument.
        path: PathBuf = PathBuf::new(),
        /// Description for models; that of its `.tool.json` when absent.
        description: Option<String> = None,
        /// Parameters: by name with `type`, `required`, `default` and `description`, or a JSON
        /// Schema; those of its `.tool.json` when absent.
        parameters: Option<serde_json::Value> = None,
        /// Seconds that one call may take.
        timeout_seconds: Option<u64> = None,
        /// Set if the tool needs the network; runs without network access cannot call it then.
        network: Option<bool> = None,
        /// Names of environment variables that are passed on, such as one that contains a key.
        env: Vec<String> = vec![],
        /// Offers the tool to models.
        enabled: bool = true,
        /// Replaces the built-in tool of the same name.
        replaces_builtin: bool = false,
    }
}

section! {
    /// Commits by the agent.
    GitConfig "camelCase" {
        /// Commits the changes of each turn.
        auto_commit: bool = false,
        /// Prefix of commit messages.
        commit_message_prefix: String = "[cairn]".into(),
    }
}

section! {
    /// The terminal.
    UiConfig "camelCase" {
        /// Prints in colour.
        color: bool = true,
        /// Shows the number of tokens used.
        show_token_usage: bool = true,
        /// Shows tool calls.
        show_tool_calls: bool = true,
        /// Shows answers while they are written.
        stream_responses: bool = true,
        /// Makes `cairn chat` the user's shell, as with `--shell`.
        shell: bool = false,
    }
}
