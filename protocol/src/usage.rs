//! Disk usage of the daemon, and the removal of old sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    id::{RootId, SessionId},
    time::Timestamp,
};

/// Parameters of the method `storage.usage`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UsageParams {
    /// Number of sessions to list, largest first, at most 1,000; 10 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u32>,
}

/// Parts of the daemon's data, with their sizes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskUsage {
    /// The log of sessions.
    pub log: LogUsage,
    /// The indexes, largest first.
    pub indexes: Vec<IndexUsage>,
    /// The frozen indexes that several roots share, largest first; not part of `indexes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_indexes: Vec<SharedIndexUsage>,
    /// Sessions that the limits of `retention` remove.
    pub expired: ExpiredUsage,
}

/// Parts of the log, with their sizes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogUsage {
    /// Bytes of the database and its write-ahead log on disk.
    pub file_bytes: u64,
    /// Bytes of the database that are not used.
    pub free_bytes: u64,
    /// Number of sessions in the log.
    pub sessions: u64,
    /// Number of records of all sessions.
    pub records: u64,
    /// Bytes of these records, of packed ones compressed. Records that a fork has in common with
    /// its origin count once.
    pub record_bytes: u64,
    /// Bytes of the packed records among them, compressed.
    pub packed_bytes: u64,
    /// Bytes of packed records before their compression.
    pub unpacked_bytes: u64,
    /// Bytes of blobs: large results, and contents of files from before changes.
    pub blob_bytes: u64,
    /// Bytes of artifacts: the state of explores, and system texts.
    pub artifact_bytes: u64,
    /// Number of rows of the audit.
    pub audit_rows: u64,
    /// The largest sessions, largest first.
    pub largest: Vec<SessionUsage>,
}

/// Disk usage of one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionUsage {
    /// Id of the session.
    pub session_id: SessionId,
    /// Title of the session.
    pub title: String,
    /// Root of the session, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Time of the session's last record.
    pub updated_at: Timestamp,
    /// Bytes of its own records and of its blobs. Records that a fork has in common with its origin
    /// count for the origin.
    pub bytes: u64,
}

/// Disk usage of one index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IndexUsage {
    /// Id of the root.
    pub root: RootId,
    /// Path of the root.
    pub path: String,
    /// Bytes of the index on disk.
    pub bytes: u64,
}

/// A frozen index that several roots share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharedIndexUsage {
    /// Ids of the declared roots whose indexes are upon it.
    pub roots: Vec<RootId>,
    /// Bytes of its folder on disk.
    pub bytes: u64,
}

/// Sessions that the limits of `retention` remove.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExpiredUsage {
    /// Number of the sessions, at most 1,000.
    pub sessions: u64,
    /// Bytes of the sessions.
    pub bytes: u64,
    /// Time from which the daemon removes such sessions by itself: a week after it first found one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_from: Option<Timestamp>,
}

/// Parameters of the method `storage.collect`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CollectParams {
    /// True to change nothing and return what would be removed.
    #[serde(default)]
    pub dry_run: bool,
}

/// Result of the method `storage.collect`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Collected {
    /// The removed sessions, least recently used first.
    pub removed: Vec<SessionUsage>,
    /// Number of sessions whose records were packed.
    pub packed: u64,
    /// Bytes of the log's files before.
    pub bytes_before: u64,
    /// Bytes of the log's files after.
    pub bytes_after: u64,
}
