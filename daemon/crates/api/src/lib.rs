//! The protocol on top of the engine: one method table, conversion, errors and subscriptions. The
//! crate opens no sockets.
//!
//! A transport creates a [`Connection`] for each client, feeds it messages, and sends the contents
//! of its [`Outgoing`] queue. Dispatch, `rpc.discover`, the JSON Schema files and the protocol
//! reference all derive from [`methods::table`].

mod approval_list;
mod approver;
mod audit;
mod call_queue;
mod config;
mod connection;
mod discover;
mod effects;
mod fleet;
mod half_close;
mod host;
mod knowledge;
mod mcp;
mod message;
mod method;
pub mod methods;
mod metrics;
mod outgoing;
pub mod params;
mod progress;
pub mod reference;
mod remote;
pub mod rights;
pub mod sdk;
mod span;
mod subscription;
mod trust;
mod turns;
mod unattended;
mod viewer;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::Instant;

use cairn_engine::Engine;
use cairn_protocol::{daemon::Limits, error::Failure};

pub use config::ConfigSource;
pub use connection::Connection;
pub use discover::openrpc;
pub use fleet::Fleet;
pub use host::HostInfo;
pub use mcp::McpServers;
pub use method::{Audit, Disconnect, FollowUp, Method, Scope};
pub use metrics::{FIGURES, Figure};
pub use outgoing::{Outgoing, SharedText};
pub use remote::Remote;
pub use rights::{Right, Rights};
pub use viewer::{Links, PageConnection};

/// Capacity of the queue of messages for one client. When it is full, the client's calls and
/// subscriptions wait.
pub const OUTGOING: usize = 64;

/// Renders the answer to a message that could not be accepted at all.
pub fn refusal(failure: &Failure) -> String {
    message::failure(None, failure)
}

/// The method table over an engine, shared by all connections.
pub struct Api {
    pub(crate) engine: Engine,
    pub(crate) host: HostInfo,
    pub(crate) limits: Limits,
    pub(crate) table: Vec<Method>,
    pub(crate) queue: Arc<call_queue::CallQueue>,
    pub(crate) counters: Counters,
    links: Links,
    pub(crate) remote: std::sync::OnceLock<Arc<dyn Remote>>,
    pub(crate) config: std::sync::OnceLock<Arc<dyn ConfigSource>>,
    pub(crate) mcp: std::sync::OnceLock<Arc<dyn McpServers>>,
    pub(crate) fleet: std::sync::OnceLock<Arc<dyn Fleet>>,
}

/// Counters for `daemon.stats` and `/metrics`.
#[derive(Debug)]
pub(crate) struct Counters {
    /// For the uptime: the wall clock may be set while the daemon runs.
    pub(crate) started: Instant,
    pub(crate) connections: AtomicU64,
    pub(crate) subscriptions: AtomicU64,
    pub(crate) calls: AtomicU64,
    pub(crate) errors: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            connections: AtomicU64::default(),
            subscriptions: AtomicU64::default(),
            calls: AtomicU64::default(),
            errors: AtomicU64::default(),
        }
    }
}

impl Api {
    pub fn new(engine: Engine, host: HostInfo, limits: Limits) -> Arc<Self> {
        let queue = Arc::default();
        let counters = Counters::default();
        let table = methods::table();
        let links = Links::default();
        let remote = std::sync::OnceLock::new();
        let config = std::sync::OnceLock::new();
        let mcp = std::sync::OnceLock::new();
        let fleet = std::sync::OnceLock::new();
        Arc::new(Self {
            engine,
            host,
            limits,
            table,
            queue,
            counters,
            links,
            remote,
            config,
            mcp,
            fleet,
        })
    }

    /// Sets the remote control; only the first call has an effect.
    pub fn set_remote(&self, remote: Arc<dyn Remote>) {
        let _first_stays = self.remote.set(remote);
    }

    /// Sets the host's configuration; only the first call has an effect.
    pub fn set_config(&self, config: Arc<dyn ConfigSource>) {
        let _first_stays = self.config.set(config);
    }

    /// Sets the host's MCP servers; only the first call has an effect.
    pub fn set_mcp(&self, servers: Arc<dyn McpServers>) {
        let _first_stays = self.mcp.set(servers);
    }

    /// Sets the host's part in a fleet; only the first call has an effect.
    pub fn set_fleet(&self, fleet: Arc<dyn Fleet>) {
        let _first_stays = self.fleet.set(fleet);
    }

    /// Returns the engine that the methods act on.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Does `work` that no method of the table covers, with an audit row like theirs.
    ///
    /// # Errors
    /// `audit_failed` and `disk_full`, and the errors of the work.
    pub async fn audited<T>(
        &self,
        name: &str,
        params: serde_json::Value,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let row = self.engine.begin_direct(name, None, params).await?;
        let outcome = work.await;
        row.complete(outcome.as_ref().err()).await;
        outcome
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn links(&self) -> &Links {
        &self.links
    }

    pub fn host(&self) -> &HostInfo {
        &self.host
    }

    /// Number of open connections.
    pub fn connections(&self) -> u64 {
        self.counters.connections.load(Ordering::Relaxed)
    }

    /// Number of calls since the start.
    pub fn calls(&self) -> u64 {
        self.counters.calls.load(Ordering::Relaxed)
    }

    /// Returns the notifications that follow the answer of a method.
    pub fn follow_up(&self, method: &str) -> Option<FollowUp> {
        self.find(method)?.follow_up
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Method> {
        self.table.iter().find(|m| m.name == name)
    }
}
