//! What is added to a daemon from outside: plugins, and servers of the Model Context Protocol.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where in the life of a session a plugin is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PluginHook {
    /// A session begins or goes on.
    SessionStart,
    /// A session is put away or deleted.
    SessionStop,
    /// A tool is about to be called; the plugin may refuse it.
    BeforeTool,
    /// A tool call ended.
    AfterTool,
    /// A model is about to be asked; the plugin may refuse it.
    BeforeModel,
    /// A model's answer came.
    AfterModel,
}

section! {
    /// A program that is told: one JSON object on its standard input, one on its standard output. It is yours and runs as you, with
    /// a clean environment and outside the sandbox.
    PluginProgram "snake_case" {
        /// Its name.
        name: String = String::new(),
        /// The program and its arguments.
        command: Vec<String> = vec![],
        /// The hooks it wants; all when empty.
        hooks: Vec<PluginHook> = vec![],
        /// Milliseconds for one hook, at most 60,000.
        timeout_ms: u64 = 2000,
        /// Whether what it should judge is refused when it fails.
        required: bool = false,
        /// Whether it is told.
        enabled: bool = true,
    }
}

section! {
    /// Servers of the Model Context Protocol.
    McpConfig "snake_case" {
        /// By the name that their tools get: `mcp_<name>_<tool>`.
        servers: BTreeMap<String, McpServer> = BTreeMap::new(),
    }
}

section! {
    /// One server: a program that speaks on standard input and output, or the URL of one that speaks streamable HTTP.
    McpServer "snake_case" {
        /// The program.
        command: Option<String> = None,
        /// Its arguments.
        args: Vec<String> = vec![],
        /// What is added to its environment, which has `PATH`, `HOME` and the like and nothing else; `${NAME}` stands for a
        /// variable of the daemon's.
        env: BTreeMap<String, String> = BTreeMap::new(),
        /// The folder it works in; the home folder when absent.
        cwd: Option<PathBuf> = None,
        /// The address, instead of a program.
        url: Option<String> = None,
        /// Headers of every request to the address; `${NAME}` stands for a variable of the daemon's.
        headers: BTreeMap<String, String> = BTreeMap::new(),
        /// Whether it is used.
        enabled: bool = true,
        /// Whether it is believed when it says that a tool only reads: such a tool is not asked about.
        trust_annotations: bool = false,
        /// Seconds for one call, at most 3,600.
        timeout_seconds: u64 = 60,
        /// Seconds until it must have answered after its start, at most 600.
        start_timeout_seconds: u64 = 30,
    }
}
