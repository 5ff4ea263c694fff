//! The methods about MCP servers of the configuration. The host runs the servers.

use std::sync::Arc;

use cairn_protocol::{
    error::{Failure, Reason},
    mcp::{McpAccount, McpFinishLoginParams, McpLogin, McpServerInfo, McpServerRef},
    session::{Empty, Page},
};

use crate::{
    connection::Caller,
    method::{Audit, Method},
    rights::Right,
};

/// The MCP servers of the configuration and the logins to them.
#[async_trait::async_trait]
pub trait McpServers: Send + Sync {
    /// Lists the servers by name.
    fn list(&self) -> Vec<McpServerInfo>;
    /// Starts a login, which replaces an earlier one of the same server that is not finished.
    ///
    /// # Errors
    /// `mcp_server_not_found`; `invalid_params` for a program; `login_failed` when the server or
    /// its authorization server cannot be used.
    async fn login(self: Arc<Self>, server: &McpServerRef) -> Result<McpLogin, Failure>;
    /// Waits until the user has logged in, and stores the login.
    ///
    /// # Errors
    /// `invalid_params` for an unknown login; `login_failed`, also when its time has passed.
    async fn finish_login(&self, params: McpFinishLoginParams) -> Result<McpAccount, Failure>;
    /// Deletes the login to a server.
    ///
    /// # Errors
    /// `mcp_server_not_found`, `storage_failed`.
    async fn logout(self: Arc<Self>, server: &McpServerRef) -> Result<McpAccount, Failure>;
}

pub fn methods() -> Vec<Method> {
    vec![
        Method::new(
            "mcp.list",
            "The MCP servers of the configuration, with their state and logins.",
            |cx, _: Empty| async move {
                let data = cx.api().mcp.get().map(|servers| servers.list()).unwrap_or_default();
                Ok(Page::<McpServerInfo> { data, next_cursor: None })
            },
        ),
        Method::new(
            "mcp.login",
            "Starts a login to an MCP server; the user opens the address that is returned.",
            |cx, server: McpServerRef| async move { servers(&cx)?.login(&server).await },
        )
        .detached(Right::Admin),
        Method::new(
            "mcp.finishLogin",
            "Waits until the user has logged in, and stores the login.",
            |cx, params: McpFinishLoginParams| async move {
                servers(&cx)?.finish_login(params).await
            },
        )
        .detached(Right::Admin),
        Method::new(
            "mcp.logout",
            "Deletes the login to an MCP server.",
            |cx, server: McpServerRef| async move { servers(&cx)?.logout(&server).await },
        )
        .detached(Right::Admin)
        .audit(Audit::BestEffort),
    ]
}

fn servers(cx: &Caller) -> Result<Arc<dyn McpServers>, Failure> {
    let none = || Failure::new(Reason::NotSupported, "this host has no MCP servers");
    cx.api().mcp.get().cloned().ok_or_else(none)
}
