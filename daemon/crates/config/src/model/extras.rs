//! Extensions of a daemon: plugins and MCP servers.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Event that a plugin is notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PluginHook {
    /// A session starts or resumes.
    SessionStart,
    /// A session is archived or deleted.
    SessionStop,
    /// A tool is about to be called; the plugin may refuse the call.
    BeforeTool,
    /// A tool call has finished.
    AfterTool,
    /// A model request is about to be sent; the plugin may refuse it.
    BeforeModel,
    /// A model has answered.
    AfterModel,
}

section! {
    /// A plugin program: it reads one JSON object from standard input and writes one to standard
    /// output. It runs as the user, with a clean environment and outside the sandbox.
    PluginProgram "camelCase" {
        /// Unique name.
        name: String = String::new(),
        /// Program and arguments.
        command: Vec<String> = vec![],
        /// Hooks that are sent to the plugin; all when empty.
        hooks: Vec<PluginHook> = vec![],
        /// Milliseconds that one hook may take, at most 60,000.
        timeout_ms: u64 = 2000,
        /// Refuses the call or request when the plugin fails to judge it.
        required: bool = false,
        /// Runs the plugin.
        enabled: bool = true,
    }
}

section! {
    /// Servers of the Model Context Protocol.
    McpConfig "camelCase" {
        /// Servers by the name that their tools get: `mcp_<name>_<tool>`.
        servers: BTreeMap<String, McpServer> = BTreeMap::new(),
        /// Most tools of one server, and of all such servers together, that a model is offered at
        /// once; it looks further ones up by `tool_lookup`.
        listed_tools: u32 = 20,
        /// Tools that MCP clients of Cairn are offered: `default`, `all`, or names. A client can
        /// name others with `cairn mcp --tools`.
        tools: Vec<String> = vec!["default".into()],
    }
}

section! {
    /// One server: a program that communicates over standard input and output, or the URL of a
    /// server with streamable HTTP.
    McpServer "camelCase" {
        /// Path or name of the program.
        command: Option<String> = None,
        /// Arguments of the program.
        args: Vec<String> = vec![],
        /// Variables added to the program's environment, which otherwise contains only basics such
        /// as `PATH` and `HOME`; `${NAME}` is replaced by a variable of the daemon.
        env: BTreeMap<String, String> = BTreeMap::new(),
        /// Working directory; the home folder when absent.
        cwd: Option<PathBuf> = None,
        /// Address of the server, instead of a program.
        url: Option<String> = None,
        /// Headers of every request; `${NAME}` is replaced by a variable of the daemon.
        headers: BTreeMap<String, String> = BTreeMap::new(),
        /// Uses the server.
        enabled: bool = true,
        /// Trusts the server's read-only annotations: a tool that declares itself read-only runs
        /// without a prompt.
        trust_annotations: bool = false,
        /// Seconds that one call may take, at most 3,600.
        timeout_seconds: u64 = 60,
        /// Seconds that the server may take to answer after its start, at most 600.
        start_timeout_seconds: u64 = 30,
    }
}
