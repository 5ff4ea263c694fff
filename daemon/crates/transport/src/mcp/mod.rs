//! MCP: the API as tools and resources for other agents, over streamable HTTP and over a WebSocket.
//!
//! The module acts through [`crate::in_process`] only: rights, gate, audit and log apply as they do
//! to any client.

mod actions;
mod approve;
mod builtin_tools;
mod client;
mod explore;
mod format;
mod forms;
mod harness;
mod lookups;
mod offered;
mod pending;
mod references;
mod resources;
mod schema;
mod server;
mod socket;
mod turn;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{body::Body, extract::Request, response::Response};
use cairn_api::Api;
use cairn_protocol::id::ApprovalId;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use tokio_util::sync::CancellationToken;

pub use offered::OfferedTools;
pub use server::Server;
pub use socket::run as run_socket;

/// Path of streamable HTTP.
pub const PATH: &str = "/mcp";
/// Path of the WebSocket, with one JSON-RPC message per text frame.
pub const SOCKET_PATH: &str = "/mcp/ws";
/// Time without requests after which an HTTP session expires.
const SESSION_IDLE_LIMIT: Duration = Duration::from_secs(15 * 60);

/// State that all MCP clients of a daemon share.
pub struct Host {
    api: Arc<Api>,
    sessions: tokio::sync::Mutex<client::Sessions>,
    parked: approve::Parked,
    /// The tools that a client is offered unless its connection names others.
    offered: OfferedTools,
    /// Approvals that are being shown to a person.
    open_questions: Mutex<HashSet<ApprovalId>>,
}

/// The MCP server of the daemon.
#[derive(Clone)]
pub struct Mcp {
    host: Arc<Host>,
    http: StreamableHttpService<Server, LocalSessionManager>,
}

impl Mcp {
    /// Creates the server over `api`, which runs until `shutdown`; clients that name no tools are
    /// offered `offered`.
    pub fn new(api: &Arc<Api>, offered: OfferedTools, shutdown: &CancellationToken) -> Self {
        let host = Arc::new(Host {
            api: Arc::clone(api),
            sessions: tokio::sync::Mutex::default(),
            parked: approve::Parked::default(),
            offered,
            open_questions: Mutex::default(),
        });
        let limit = usize::try_from(api.limits().max_message_bytes).unwrap_or(usize::MAX);
        // Host and Origin have already been checked, as for every other path.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_max_request_body_bytes(limit)
            .with_cancellation_token(shutdown.child_token());
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(SESSION_IDLE_LIMIT);
        let session_host = Arc::clone(&host);
        let http = StreamableHttpService::new(
            move || Ok(Server::over_http(Arc::clone(&session_host))),
            Arc::new(manager),
            config,
        );
        Self { host, http }
    }

    pub fn host(&self) -> Arc<Host> {
        Arc::clone(&self.host)
    }

    /// Handles an authenticated request to [`PATH`].
    pub async fn handle(&self, request: Request) -> Response {
        self.http.handle(request).await.map(Body::new)
    }
}
