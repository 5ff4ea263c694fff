//! The configuration: typed values with defaults in one place, read in layers (system, user, home, project, an explicit
//! file, environment, flags), each value with where it comes from; a project's own file may only tighten safety.
//!
//! Nothing here reads the environment or finds a home folder: the caller passes them in [`Inputs`].

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
pub use load::{ConfigError, ConfigErrors, Inputs, Loaded, Source, Warning, load};
pub use model::{
    AgentConfig, AgentProgram, Ann, BuiltinTool, CheckedRule, Config, ContextConfig, DaemonConfig,
    DefaultAction, Discovery, ExternalTool, GitConfig, ListenConfig, LlmConfig, McpConfig, McpServer,
    ModelsConfig, PermissionsConfig, PluginHook, PluginProgram, ResourcesConfig, RuleEntry, SafetyConfig,
    SandboxConfig, ShellCwd, ShellMode, TelemetryConfig, ToolsConfig, ToolsMode, TrustConfig, UiConfig,
    WebBackend, WebConfig, WhenMissing,
};
pub use project::{Rule, rule_of};
pub use scope::{KeyUse, Scope, key_uses, scope_of};
pub use table::{Row, redacted, rows};

/// JSON Schema of a configuration file, for editors.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Config).to_value()
}
