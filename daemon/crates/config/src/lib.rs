//! The configuration: typed values with defaults, read in layers (system, user, home, project, an
//! explicit file, environment, flags). Each value knows its source. A project's own file can only
//! tighten safety.
//!
//! The crate does not read the environment or look up the home folder: the caller passes both in
//! [`Inputs`].

mod environment;
mod files;
mod keys;
mod load;
mod model;
mod project;
mod scope;
mod table;

pub use environment::{Variable, variables};
pub use files::{DiskFiles, Files, MAX_FILE_BYTES};
pub use keys::is_same as is_same_key;
pub use load::{ConfigError, ConfigErrors, Inputs, Loaded, ProjectTrust, Source, Warning, load};
pub use model::{
    AgentConfig, AgentPluginsConfig, AgentProgram, Ann, BuiltinTool, ChatConfig, ChatMode,
    ChatNotify, ChatTheme, CheckedRule, Config, ContextConfig, DaemonConfig, DefaultAction,
    DiagnosticsConfig, DiagnosticsMode, Discovery, ExternalTool, FleetConfig, FleetMirror,
    FormatConfig, GitConfig, HookCommand, HookGroup, HooksConfig, LanguageServer, ListenConfig,
    LlmApi, LlmConfig, LlmToolCalls, McpConfig, McpServer, ModelsConfig, NetworkConfig,
    NetworkPreset, NotificationsConfig, PermissionsConfig, PluginHook, PluginProgram,
    ResourcesConfig, RuleEntry, SafetyConfig, SandboxConfig, ShellCwd, ShellMode, TelemetryConfig,
    ToolsConfig, ToolsMode, TrustConfig, UiConfig, WebBackend, WebConfig, WhenMissing,
};
pub use project::{Rule, rule_of};
pub use scope::{KeyUse, Scope, key_uses, scope_of};
pub use table::{Row, redacted, rows};

/// Returns the JSON Schema of a configuration file, for editors.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Config).to_value()
}
