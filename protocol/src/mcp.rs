//! The MCP servers of the configuration, as clients see them, and logins to them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{id::McpLoginId, time::Timestamp};

/// Names of the tools that the daemon's own MCP server offers by default.
pub const DEFAULT_TOOLS: [&str; 10] =
    ["search", "grep", "read", "symbols", "references", "map", "explore", "edit", "write", "run"];
/// Name of the tool that gives a task to Cairn's own agent.
pub const TURN_TOOL: &str = "run_turn";

/// State of an MCP server of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpServerState {
    /// The server was started and has not answered yet.
    Starting,
    /// Calls of its tools reach the server.
    Connected,
    /// The server refuses calls without a login.
    LoginRequired,
    /// The server cannot be reached, for the reason in `error`.
    Failed,
    /// The configuration switches the server off.
    Disabled,
}

/// An MCP server of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerInfo {
    /// Name of the server in the configuration.
    pub name: String,
    /// Its address without query; absent for a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// State of its connection.
    pub state: McpServerState,
    /// Number of its tools that can be called.
    pub tools: u32,
    /// True if a login to it is stored.
    pub logged_in: bool,
    /// Reason why it cannot be used, with the way out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Parameters that name an MCP server of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpServerRef {
    /// Name of the server in the configuration.
    pub name: String,
}

/// A login that waits for the user's browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpLogin {
    /// Id of the login.
    pub login_id: McpLoginId,
    /// Address that the user opens in a browser.
    pub url: String,
    /// Time after which the login is abandoned.
    pub expires_at: Timestamp,
}

/// Parameters of the method `mcp.finishLogin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpFinishLoginParams {
    /// Id of the login.
    pub login_id: McpLoginId,
    /// Address to which the browser was sent, if it could not reach the daemon: it runs on another
    /// machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_url: Option<String>,
}

/// Outcome of a login or logout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpAccount {
    /// Name of the server in the configuration.
    pub name: String,
    /// True if a login is stored now.
    pub logged_in: bool,
    /// True if a login was stored before.
    pub was_logged_in: bool,
}
