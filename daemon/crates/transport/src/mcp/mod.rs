//! MCP: the API as tools and resources for other agents, over streamable HTTP and over a WebSocket.
//!
//! Nothing here reaches past [`crate::queue`]: a client of MCP has the rights, the gate, the audit and the log of every
//! other client.

mod approve;
mod client;
mod explore;
mod harness;
mod own;
mod resources;
mod server;
mod shape;
mod socket;

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

pub use server::{Server, root_of};
pub use socket::run as run_socket;

/// Path of streamable HTTP.
pub const PATH: &str = "/mcp";
/// Path of the WebSocket, a JSON-RPC message in each text frame.
pub const SOCKET_PATH: &str = "/mcp/ws";
/// How long an HTTP session without a request is kept.
const KEPT: Duration = Duration::from_secs(15 * 60);

/// What all MCP clients of a daemon share.
pub struct Host {
    api: Arc<Api>,
    sessions: tokio::sync::Mutex<client::Sessions>,
    parked: approve::Parked,
    /// Questions that a person is looking at now.
    asked: Mutex<HashSet<ApprovalId>>,
}

/// The MCP side of the daemon.
#[derive(Clone)]
pub struct Mcp {
    host: Arc<Host>,
    http: StreamableHttpService<Server, LocalSessionManager>,
}

impl Mcp {
    /// Over `api`, until `shutdown`.
    pub fn new(api: &Arc<Api>, shutdown: &CancellationToken) -> Self {
        let host = Arc::new(Host {
            api: Arc::clone(api),
            sessions: tokio::sync::Mutex::default(),
            parked: approve::Parked::default(),
            asked: Mutex::default(),
        });
        let limit = usize::try_from(api.limits().max_message_bytes).unwrap_or(usize::MAX);
        // Host and Origin are checked before, as for every other path.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_max_request_body_bytes(limit)
            .with_cancellation_token(shutdown.child_token());
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(KEPT);
        let made = Arc::clone(&host);
        let http = StreamableHttpService::new(
            move || Ok(Server::over_http(Arc::clone(&made))),
            Arc::new(manager),
            config,
        );
        Self { host, http }
    }

    /// What its clients share.
    pub fn host(&self) -> Arc<Host> {
        Arc::clone(&self.host)
    }

    /// Answers a request to [`PATH`] whose token was checked.
    pub async fn handle(&self, request: Request) -> Response {
        self.http.handle(request).await.map(Body::new)
    }
}
