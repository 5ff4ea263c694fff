//! Traces: listing, reading, exporting and importing a session's log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{envelope::Envelope, id::SessionId, time::Timestamp};

/// Parameters of the method `trace.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TraceGetParams {
    /// Id of the session.
    pub trace_id: SessionId,
    /// Sequence number after which records are returned.
    #[serde(default)]
    pub after: u64,
    /// Maximum number of records, at most 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Answer of the method `trace.get`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TracePage {
    /// Records of the page.
    pub data: Vec<Envelope>,
    /// Value of `after` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<u64>,
}

/// Parameters of the method `trace.export`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TraceExportParams {
    /// Id of the session (also accepted as `sessionId`).
    #[serde(alias = "sessionId")]
    pub trace_id: SessionId,
    /// Cursor from the `nextCursor` of the previous part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// One part of an export as JSONL text; all parts in order form the complete file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceExportPart {
    /// Lines with one JSON object each: a header, then the records, then the blobs that they refer
    /// to by hash.
    pub jsonl: String,
    /// Cursor of the next part; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Parameters of the method `trace.import`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TraceImportParams {
    /// A complete export, or a part of one that ends after a complete line. The first part starts
    /// with the header, each further one with the line after the last imported one.
    pub jsonl: String,
}

/// Line of an export after its records: one part of a blob that the records refer to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TraceBlobLine {
    /// SHA-256 (hex) of the complete text.
    pub blob: String,
    /// Id of the session.
    pub session_id: SessionId,
    /// Offset of this part in bytes.
    pub offset: u64,
    /// Size of the complete text in bytes.
    pub size: u64,
    /// Text of this part.
    pub text: String,
}

/// First line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceHeader {
    /// Name of the format, always `cairn-trace`.
    pub format: String,
    /// Version of the format, currently 1.
    pub version: u32,
    /// Session that was exported.
    pub session: crate::session::Session,
    /// Time of the export.
    pub exported_at: Timestamp,
    /// Named texts of the session: its summary, parts of its system text, and the parameters of
    /// its latest run.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub artifacts: std::collections::BTreeMap<String, String>,
}

/// Parameters of the method `trace.blob`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlobParams {
    /// SHA-256 of the blob, in hex.
    pub sha256: String,
    /// Offset of the first byte.
    #[serde(default)]
    pub offset: u64,
    /// Maximum number of bytes, at most 256 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Part of a blob. Blobs are UTF-8 JSON, and parts end between characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlobPart {
    /// Text of this part.
    pub text: String,
    /// Size of the complete blob in bytes.
    pub size: u64,
    /// Offset of the next part; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
}

/// Parameters of the method `audit.query`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuditQueryParams {
    /// Returns only entries of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Returns only entries of this tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Id after which entries are returned.
    #[serde(default)]
    pub after: u64,
    /// Maximum number of entries, at most 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// One entry of the audit, written before the action and completed after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// Position in the audit.
    pub id: u64,
    /// Time of the request.
    pub ts: Timestamp,
    /// Id of the session; all digits are 0 for a direct call outside any session.
    pub session_id: SessionId,
    /// Name of the tool, or the method of a direct call.
    pub tool: String,
    /// SHA-256 (hex) of the arguments as JSON.
    pub args_digest: String,
    /// Decision of the gate, `allow` or `deny`.
    pub decision: String,
    /// The rule that led to the decision.
    pub rule: String,
    /// Duration in milliseconds; absent when the call was denied or interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
    /// `ok`, or the reason of the failure; absent when the call was denied or interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Exit code of the command, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// True if the output was cut.
    pub truncated: bool,
    /// Command line and folder of a shell call, or the code that a call runs, with secrets
    /// removed; else the paths of the call as it names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// Parameters of the method `trace.replay`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReplayParams {
    /// Id of the session to replay.
    pub trace_id: SessionId,
    /// Folder to replay in, which must be a declared root; the session's own root when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// Answer of the method `trace.replay`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayReport {
    /// Id of the session that was replayed.
    pub trace_id: SessionId,
    /// Id of the session in which it was replayed.
    pub replay: SessionId,
    /// True if all compared steps were identical.
    pub identical: bool,
    /// Number of compared steps.
    pub compared: u64,
    /// The first step that differed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<ReplayDifference>,
    /// Files of an explore's root that are not as they were when it was recorded, at most 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<ChangedFile>,
    /// Number of all such files.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changed_file_count: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A file whose content differs from the recorded one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedFile {
    /// Path relative to the root.
    pub path: String,
    /// `added`, `modified` or `deleted` since the recording.
    pub status: String,
}

impl Default for ReplayReport {
    fn default() -> Self {
        let (trace_id, replay) = (SessionId::new(), SessionId::new());
        Self {
            trace_id,
            replay,
            identical: false,
            compared: 0,
            first: None,
            changed_files: Vec::new(),
            changed_file_count: 0,
        }
    }
}

/// A step whose result differed in the replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayDifference {
    /// Sequence number of the record concerned; 0 when none is.
    pub seq: u64,
    /// Kind of the step.
    pub what: String,
    /// Location in the step, as a JSON pointer.
    pub path: String,
    /// The file that the differing value is about, relative to the root, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Value in the recorded trace.
    pub recorded: String,
    /// Value in the replay.
    pub now: String,
}
