//! The index of declared roots.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::RootId;

/// Parameters of `index.addRoot`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddRootParams {
    /// Absolute path of a folder.
    pub path: String,
    /// Retry key and name for `index.progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Parameters that name a root by its id or its absolute path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RootRef {
    /// Root id or absolute path.
    pub root: String,
    /// Retry key and name for `index.progress`, where work follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Parameters of `index.status`.
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
    /// The root.
    pub root: RootId,
    /// Its canonical path.
    pub path: String,
    /// The request, when it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Answer of `index.status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IndexStatus {
    /// One for each root.
    pub roots: Vec<RootStatus>,
}

/// State of one root's index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RootStatus {
    /// The root.
    pub root: RootId,
    /// Its canonical path.
    pub path: String,
    /// What it does now.
    pub state: IndexState,
    /// True when lexical, vectors and symbols are all up to date with the last scan.
    pub complete: bool,
    /// Grows by one with each committed batch of changes.
    pub clock: u64,
    /// Indexed files.
    pub files: u64,
    /// Bytes of their text.
    pub bytes: u64,
    /// Chunks.
    pub chunks: u64,
    /// Chunks that have a vector.
    pub vectors: u64,
    /// Files whose symbols are known.
    pub symbol_files: u64,
    /// Definitions.
    pub symbols: u64,
    /// Files waiting to be indexed.
    pub pending: u64,
    /// Files left out, by reason: `binary`, `too_large`, `generated`, `unreadable`, `invalid_name`, …
    pub skipped: BTreeMap<String, u64>,
    /// Indexed files by language.
    pub languages: BTreeMap<String, u64>,
    /// Whether changes are noticed at once (`watching`), by sweeps only (`polling`), or not (`off`).
    pub watch: String,
    /// Model of the vectors.
    pub embedder: String,
    /// The last error, when the last pass had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a root's index does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IndexState {
    /// Walking and indexing text.
    Indexing,
    /// Lexical search is complete; vectors or symbols are being added.
    Enriching,
    /// Up to date.
    Ready,
    /// The last pass failed; see `error`.
    Failed,
}

/// Live notification `index.progress`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IndexProgress {
    /// The request, when it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Path of the root.
    pub path: String,
    /// Files indexed so far.
    pub files_indexed: u64,
    /// Chunks so far.
    pub chunks: u64,
    /// What it does now.
    pub state: IndexState,
    /// True when everything is up to date, or the pass failed.
    pub done: bool,
    /// Which of a root's indexes tells it, inside the daemon: while one is made anew there are two.
    #[serde(skip)]
    pub index: String,
}
