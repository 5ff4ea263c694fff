//! The knowledge store: entries that are files, named by their keywords.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// What can be asked of the store. The same operations are methods (`memory.search`), tools (`memory_search`) and the actions
/// of the tool `memory`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum MemoryOp {
    /// Finds entries by their keywords and text.
    Search(MemorySearchParams),
    /// The entries, by name.
    List(MemoryListParams),
    /// The keywords there are, with how many entries each has.
    Keywords(MemoryKeywordsParams),
    /// An entry's text.
    Load(MemoryRef),
    /// Makes an entry, or replaces it.
    Save(MemoryWriteParams),
    /// Adds to an entry, or makes it.
    Append(MemoryWriteParams),
    /// Deletes an entry.
    Delete(MemoryRef),
}

/// Parameters of `memory.search`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemorySearchParams {
    /// What is looked for.
    pub query: String,
    /// Results a page: 10 by default, at most 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// From an earlier page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Parameters of `memory.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryListParams {
    /// Entries a page: 50 by default, at most 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// From an earlier page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Parameters of `memory.keywords`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryKeywordsParams {
    /// Keywords: 200 by default, at most 500; those with most entries first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Names an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryRef {
    /// Its keywords, in any order, or its name.
    pub keywords: String,
}

/// Parameters of `memory.save` and `memory.append`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryWriteParams {
    /// The entry's keywords, in any order: 1 to 8 words. They are its only name.
    pub keywords: String,
    /// Text, at most 256 KiB with what the entry holds already.
    pub content: String,
}

/// An entry without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryEntry {
    /// Its sorted keywords, joined by `_`: the name of its file without `.md`.
    pub name: String,
    /// The same as a list.
    pub keywords: Vec<String>,
    /// Bytes of its text.
    pub bytes: u64,
    /// When it was last written.
    pub modified: Timestamp,
    /// True when it cannot be changed or deleted through Cairn: its name begins with `fix-`.
    pub fixed: bool,
    /// The part of its text that a search found, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

/// An entry with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryText {
    /// Its name.
    pub name: String,
    /// Its text.
    pub content: String,
    /// True when it cannot be changed or deleted.
    pub fixed: bool,
}

/// A keyword.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryKeyword {
    /// The word.
    pub keyword: String,
    /// Entries that bear it.
    pub entries: usize,
}

/// What a change of the store did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryChange {
    /// The entry's name.
    pub name: String,
    /// Bytes of its text now; 0 when it was deleted.
    pub bytes: u64,
    /// In a sentence.
    pub message: String,
}
