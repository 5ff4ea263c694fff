//! Traces: a session's log as a thing to list, read and take away.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{envelope::Envelope, id::SessionId, time::Timestamp};

/// Parameters of `trace.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TraceGetParams {
    /// The session's id.
    pub trace_id: SessionId,
    /// Records after this one.
    #[serde(default)]
    pub after: u64,
    /// Records wanted, at most 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Answer of `trace.get`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TracePage {
    /// The records.
    pub data: Vec<Envelope>,
    /// Pass as `after` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<u64>,
}

/// Parameters of `trace.export`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TraceExportParams {
    /// The session's id (also taken as `sessionId`).
    #[serde(alias = "sessionId")]
    pub trace_id: SessionId,
    /// Where to go on, from `nextCursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// One part of an export: JSONL text. The parts in order are the whole file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceExportPart {
    /// Lines, each one JSON object: first a header, then the records, then what records refer to by its hash.
    pub jsonl: String,
    /// Cursor of the next part; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Parameters of `trace.import`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TraceImportParams {
    /// A whole export, or a part of one that ends after a whole line: the first begins with the header, each further one with
    /// the line after the last that is here.
    pub jsonl: String,
}

/// A line of an export after its records: a part of a large text that records refer to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TraceBlobLine {
    /// SHA-256 of the whole text, in hex.
    pub blob: String,
    /// The session.
    pub session_id: SessionId,
    /// Where this part begins, in bytes.
    pub offset: u64,
    /// Bytes of the whole text.
    pub size: u64,
    /// The part.
    pub text: String,
}

/// First line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceHeader {
    /// Always `cairn-trace`.
    pub format: String,
    /// Version of the form: 1.
    pub version: u32,
    /// The session.
    pub session: crate::session::Session,
    /// When it was exported.
    pub exported_at: Timestamp,
    /// Texts that belong to the session by name: its summary, parts of its system text, how its latest run was started.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub artifacts: std::collections::BTreeMap<String, String>,
}

/// Parameters of `trace.blob`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlobParams {
    /// SHA-256, hex.
    pub sha256: String,
    /// First byte.
    #[serde(default)]
    pub offset: u64,
    /// Bytes wanted, at most 256 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Part of a blob; blobs are UTF-8 JSON and parts end between characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlobPart {
    /// The text.
    pub text: String,
    /// Bytes of the whole.
    pub size: u64,
    /// Offset of the next part; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
}

/// Parameters of `audit.query`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuditQueryParams {
    /// Only this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Only this tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Entries after this one.
    #[serde(default)]
    pub after: u64,
    /// Entries wanted, at most 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// One entry of the audit: written before the action, completed after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// Position.
    pub id: u64,
    /// When it was asked for.
    pub ts: Timestamp,
    /// The session; its digits are all 0 for a direct call that concerns none.
    pub session_id: SessionId,
    /// The tool, or the method of a direct call.
    pub tool: String,
    /// SHA-256 (hex) of the arguments' JSON.
    pub args_digest: String,
    /// `allow` or `deny`.
    pub decision: String,
    /// The rule that decided.
    pub rule: String,
    /// Milliseconds it took; absent when it was denied or cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
    /// `ok`, or the reason of the failure; absent when it was denied or cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Exit code, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Whether the output was cut.
    pub truncated: bool,
    /// The command line and its folder, for a shell; secrets are taken out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// Parameters of `trace.replay`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReplayParams {
    /// The session's id.
    pub trace_id: SessionId,
    /// The folder to replay it in; the session's own root when omitted. It must be a declared root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// Answer of `trace.replay`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayReport {
    /// What was replayed.
    pub trace_id: SessionId,
    /// The session in which it was.
    pub replay: SessionId,
    /// Whether everything was the same.
    pub identical: bool,
    /// Steps that were compared.
    pub compared: u64,
    /// The first step that was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<ReplayDifference>,
}

impl Default for ReplayReport {
    fn default() -> Self {
        let (trace_id, replay) = (SessionId::new(), SessionId::new());
        Self { trace_id, replay, identical: false, compared: 0, first: None }
    }
}

/// A step that came out differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayDifference {
    /// The record it is about; 0 when it is about none.
    pub seq: u64,
    /// Which step.
    pub what: String,
    /// Where in it, as a JSON pointer.
    pub path: String,
    /// What the record has there.
    pub recorded: String,
    /// What is there now.
    pub now: String,
}
