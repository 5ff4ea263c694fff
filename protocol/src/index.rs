//! The index of declared roots.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::RootId;

/// Parameters of the method `index.addRoot`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddRootParams {
    /// Absolute path of a folder.
    pub path: String,
    /// Retry key, and name for `index.progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Parameters that name a root by its id or its absolute path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RootRef {
    /// Root id or absolute path.
    pub root: String,
    /// Retry key, and name for `index.progress` where work follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Parameters of the method `index.status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IndexStatusParams {
    /// Root id or absolute path; all roots when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// Receipt of an index command; the work is reported by `index.progress` and `index.status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IndexReceipt {
    /// Id of the root.
    pub root: RootId,
    /// Canonical path of the root.
    pub path: String,
    /// Id of the request, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Answer of the method `index.status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IndexStatus {
    /// One entry for each root.
    pub roots: Vec<RootStatus>,
}

/// State of the index of one root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RootStatus {
    /// Id of the root.
    pub root: RootId,
    /// Canonical path of the root.
    pub path: String,
    /// Current state of the index.
    pub state: IndexState,
    /// True when text, vectors and symbols are all up to date with the last scan.
    pub complete: bool,
    /// Counter that grows by one with each committed batch of changes.
    pub clock: u64,
    /// Number of indexed files.
    pub files: u64,
    /// Bytes of text in the indexed files.
    pub bytes: u64,
    /// Number of indexed chunks.
    pub chunks: u64,
    /// Number of chunks with a vector.
    pub vectors: u64,
    /// Number of files whose symbols are indexed.
    pub symbol_files: u64,
    /// Number of indexed definitions.
    pub symbols: u64,
    /// Files waiting to be indexed.
    pub pending: u64,
    /// Number of skipped files by reason: `binary`, `too_large`, `generated`, `unreadable`,
    /// `invalid_name`, …
    pub skipped: BTreeMap<String, u64>,
    /// Indexed files by language.
    pub languages: BTreeMap<String, u64>,
    /// Detection of changes: immediate (`watching`), by sweeps only (`polling`) or none (`off`).
    pub watch: String,
    /// Name of the embedding model.
    pub embedder: String,
    /// Error of the last pass, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// State of the index of a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IndexState {
    /// The index is walking the root and indexing text.
    Indexing,
    /// Lexical search is complete; vectors or symbols are being added.
    Enriching,
    /// The index is up to date.
    Ready,
    /// The last pass failed; see `error`.
    Failed,
}

/// Payload of the live notification `index.progress`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IndexProgress {
    /// Id of the request, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Path of the root.
    pub path: String,
    /// Number of files indexed so far.
    pub files_indexed: u64,
    /// Number of chunks so far.
    pub chunks: u64,
    /// Current state of the index.
    pub state: IndexState,
    /// True when everything is up to date, or the pass failed.
    pub done: bool,
    /// Index that sends the notification, inside the daemon: a root has two while one is rebuilt.
    #[serde(skip)]
    pub index: String,
}
