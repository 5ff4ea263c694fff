//! Protocol ↔ engine: one method table, conversion, errors and subscriptions. No sockets.
//!
//! A transport makes a [`Connection`] for each client, feeds it messages, and sends what comes out of its
//! [`Outgoing`] queue. Dispatch, `rpc.discover`, the JSON Schema files and the protocol reference all come from
//! [`methods::table`].

mod audit;
mod config;
mod connection;
mod discover;
mod effects;
mod host;
mod knowledge;
mod lane;
mod message;
mod method;
pub mod methods;
mod metrics;
mod notices;
pub mod reference;
mod remote;
pub mod rights;
pub mod sdk;
mod span;
mod subscription;
mod turns;
mod viewer;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::Instant;

use cairn_engine::Engine;
use cairn_protocol::{daemon::Limits, error::Failure};

pub use config::ConfigSource;
pub use connection::{Connection, Outgoing, SharedText};
pub use discover::openrpc;
pub use host::HostInfo;
pub use method::{Audit, Disconnect, Method, Scope};
pub use metrics::{FIGURES, Figure};
pub use remote::Remote;
pub use rights::{Right, Rights};
pub use viewer::Links;

/// Messages that wait for a slow client's socket; then its calls and subscriptions wait.
pub const OUTGOING: usize = 64;

/// The answer to a message that could not be taken at all.
pub fn refusal(failure: &Failure) -> String {
    message::failure(None, failure)
}

/// The method table over an engine, shared by all connections.
pub struct Api {
    pub(crate) engine: Engine,
    pub(crate) host: HostInfo,
    pub(crate) limits: Limits,
    pub(crate) table: Vec<Method>,
    pub(crate) lanes: Arc<lane::Lanes>,
    pub(crate) counters: Counters,
    links: Links,
    pub(crate) remote: std::sync::OnceLock<Arc<dyn Remote>>,
    pub(crate) config: std::sync::OnceLock<Arc<dyn ConfigSource>>,
}

/// What is counted for `daemon.stats` and `/metrics`.
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
    /// A table over `engine`.
    pub fn new(engine: Engine, host: HostInfo, limits: Limits) -> Arc<Self> {
        let (lanes, counters) = (Arc::default(), Counters::default());
        let (table, links) = (methods::table(), Links::default());
        let (remote, config) = (std::sync::OnceLock::new(), std::sync::OnceLock::new());
        Arc::new(Self { engine, host, limits, table, lanes, counters, links, remote, config })
    }

    /// Gives it remote control; the first one stays.
    pub fn set_remote(&self, remote: Arc<dyn Remote>) {
        let _first_stays = self.remote.set(remote);
    }

    /// Gives it the host's configuration; the first one stays.
    pub fn set_config(&self, config: Arc<dyn ConfigSource>) {
        let _first_stays = self.config.set(config);
    }

    /// Does `work` that comes about by no method of the table, with a row of the audit like those that do.
    ///
    /// # Errors
    /// `audit_failed`, `disk_full`; those of the work.
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

    /// The limits of every connection.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Links that open the viewer.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// What the host told about itself.
    pub fn host(&self) -> &HostInfo {
        &self.host
    }

    /// Connections now.
    pub fn connections(&self) -> u64 {
        self.counters.connections.load(Ordering::Relaxed)
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.counters.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Method> {
        self.table.iter().find(|m| m.name == name)
    }
}
