//! The handshake and the daemon itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{id::InstanceId, location::ConfigFolder, time::Timestamp};

/// Parameters of `initialize`, the first message of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// Versions the client speaks, best first.
    pub protocol_versions: Vec<String>,
    /// Who it is.
    pub client: ClientInfo,
    /// What it can do.
    #[serde(default)]
    pub capabilities: ClientCapabilities,
}

/// A client's name and version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientInfo {
    /// Name, at most 64 characters.
    pub name: String,
    /// Version.
    pub version: String,
}

/// What a client can do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientCapabilities {
    /// Whether it answers approvals.
    #[serde(default)]
    pub approvals: bool,
}

/// Answer of `initialize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// The version both speak.
    pub protocol_version: String,
    /// Version of the daemon, as in its Bonjour record.
    pub version: String,
    /// Who answers.
    pub server: ServerInfo,
    /// What the daemon can do.
    pub capabilities: ServerCapabilities,
    /// Limits of this connection.
    pub limits: Limits,
}

/// The daemon's name and instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerInfo {
    /// Always `cairn`.
    pub name: String,
    /// Version of the binary.
    pub version: String,
    /// This start of the daemon.
    pub instance_id: InstanceId,
}

/// What a daemon can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerCapabilities {
    /// Methods it answers on this connection.
    pub methods: Vec<String>,
    /// Notifications it sends.
    pub notifications: Vec<String>,
}

/// Limits; over them there is an immediate error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Bytes of one message to the daemon.
    pub max_message_bytes: u64,
    /// Calls of one connection at work at once.
    pub max_in_flight: u32,
    /// Calls in one batch.
    pub max_batch: u32,
    /// Subscriptions of one connection.
    pub max_subscriptions: u32,
    /// Connections of the daemon.
    pub max_connections: u32,
    /// Entries of one page.
    pub max_page: u32,
    /// Results of one search.
    pub max_k: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_message_bytes: 4 * 1024 * 1024,
            max_in_flight: 64,
            max_batch: 64,
            max_subscriptions: 64,
            max_connections: 1024,
            max_page: 500,
            max_k: crate::search::MAX_K,
        }
    }
}

/// Answer of `daemon.status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonStatus {
    /// Version of the binary.
    pub version: String,
    /// This start of the daemon.
    pub instance_id: InstanceId,
    /// Process id.
    pub pid: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// Addresses it listens on.
    pub addresses: Vec<String>,
    /// Where its data lies.
    pub data_root: String,
    /// Where it logs; absent when it logs to its terminal or the service manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_file: Option<String>,
    /// The folder of the user's configuration; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_dir: Option<String>,
    /// The reason why this folder applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_origin: Option<ConfigFolder>,
    /// `on_demand`, `service` or `foreground`.
    pub mode: String,
    /// Seconds without a client after which it leaves by itself; absent when it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_exit_seconds: Option<u64>,
    /// Declared roots and their indexes.
    pub index: crate::index::IndexStatus,
    /// Sessions at work.
    pub running_sessions: u64,
}

/// Answer of `daemon.stats`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonStats {
    /// Seconds since start.
    pub uptime_seconds: u64,
    /// Resident memory in bytes; 0 where it cannot be read.
    pub resident_bytes: u64,
    /// Of it, memory that is not file pages.
    pub anonymous_bytes: u64,
    /// Connections now.
    pub connections: u64,
    /// Subscriptions now.
    pub subscriptions: u64,
    /// Calls since start.
    pub calls: u64,
    /// Calls that ended with an error.
    pub call_errors: u64,
    /// Sessions in the log.
    pub sessions: u64,
    /// Runs at work.
    pub running: u64,
    /// Records appended since start.
    pub records_appended: u64,
    /// Records waiting for their commit.
    pub log_queue: u64,
    /// Bytes of the log's database.
    pub log_bytes: u64,
    /// Files in all indexes.
    pub index_files: u64,
    /// Chunks in all indexes.
    pub index_chunks: u64,
    /// Files waiting to be indexed.
    pub index_pending: u64,
}
