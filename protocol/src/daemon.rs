//! The handshake, and the state of the daemon.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{id::InstanceId, location::ConfigFolder, time::Timestamp};

/// Parameters of `initialize`, the first message of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// Protocol versions that the client supports, best first.
    pub protocol_versions: Vec<String>,
    /// Name and version of the client.
    pub client: ClientInfo,
    /// Capabilities of the client.
    #[serde(default)]
    pub capabilities: ClientCapabilities,
}

/// Name and version of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientInfo {
    /// Name of the client, at most 64 characters.
    pub name: String,
    /// Version of the client.
    pub version: String,
}

/// Capabilities of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientCapabilities {
    /// True if the client answers approvals.
    #[serde(default)]
    pub approvals: bool,
}

/// Answer of the method `initialize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// The protocol version that both sides use.
    pub protocol_version: String,
    /// Version of the daemon, as in its Bonjour record.
    pub version: String,
    /// Name and instance of the daemon.
    pub server: ServerInfo,
    /// Capabilities of the daemon.
    pub capabilities: ServerCapabilities,
    /// Limits of this connection.
    pub limits: Limits,
}

/// Name, version and instance of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerInfo {
    /// Name of the server, always `cairn`.
    pub name: String,
    /// Version of the daemon's binary.
    pub version: String,
    /// Id of this start of the daemon.
    pub instance_id: InstanceId,
}

/// Capabilities of a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerCapabilities {
    /// Methods available on this connection.
    pub methods: Vec<String>,
    /// Notifications that the daemon sends.
    pub notifications: Vec<String>,
}

/// Limits of a connection; exceeding one returns an error at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Maximum bytes of one message to the daemon.
    pub max_message_bytes: u64,
    /// Maximum calls of one connection that run at once.
    pub max_in_flight: u32,
    /// Maximum calls in one batch.
    pub max_batch: u32,
    /// Maximum subscriptions of one connection.
    pub max_subscriptions: u32,
    /// Maximum connections of the daemon.
    pub max_connections: u32,
    /// Maximum entries of one page.
    pub max_page: u32,
    /// Maximum results of one search.
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

/// Answer of the method `daemon.status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonStatus {
    /// Version of the daemon's binary.
    pub version: String,
    /// Id of this start of the daemon.
    pub instance_id: InstanceId,
    /// Process id of the daemon.
    pub pid: u32,
    /// Start time of the daemon.
    pub started_at: Timestamp,
    /// Addresses that the daemon listens on.
    pub addresses: Vec<String>,
    /// Path of the data root.
    pub data_root: String,
    /// Path of the log file; absent when the daemon logs to its terminal or the service manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_file: Option<String>,
    /// Path of the user's configuration folder; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_dir: Option<String>,
    /// The reason why this configuration folder applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_origin: Option<ConfigFolder>,
    /// Start mode: `on_demand`, `service` or `foreground`.
    pub mode: String,
    /// Seconds without a client after which the daemon exits; absent when it never exits by
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_exit_seconds: Option<u64>,
    /// Declared roots and the state of their indexes.
    pub index: crate::index::IndexStatus,
    /// Number of sessions with an active run.
    pub running_sessions: u64,
}

/// Answer of the method `daemon.stats`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonStats {
    /// Seconds since the daemon started.
    pub uptime_seconds: u64,
    /// Resident memory in bytes; 0 where it cannot be read.
    pub resident_bytes: u64,
    /// Part of the resident memory that is not backed by files, in bytes.
    pub anonymous_bytes: u64,
    /// Number of open connections.
    pub connections: u64,
    /// Number of active subscriptions.
    pub subscriptions: u64,
    /// Calls received since the start.
    pub calls: u64,
    /// Calls that returned an error.
    pub call_errors: u64,
    /// Number of sessions in the log.
    pub sessions: u64,
    /// Number of active runs.
    pub running: u64,
    /// Records appended since the start.
    pub records_appended: u64,
    /// Records waiting for their commit.
    pub log_queue: u64,
    /// Size of the log's database, in bytes.
    pub log_bytes: u64,
    /// Number of files in all indexes.
    pub index_files: u64,
    /// Number of chunks in all indexes.
    pub index_chunks: u64,
    /// Files waiting to be indexed.
    pub index_pending: u64,
}
