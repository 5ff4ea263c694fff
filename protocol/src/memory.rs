//! The knowledge store: entries that are files, named by their keywords.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// An operation of the store. The same operations are methods (`memory.search`), tools
/// (`memory_search`) and actions of the tool `memory`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum MemoryOp {
    /// Finds entries by their keywords and text.
    Search(MemorySearchParams),
    /// Lists the entries by name.
    List(MemoryListParams),
    /// Lists the keywords, with the number of entries of each.
    Keywords(MemoryKeywordsParams),
    /// Returns the text of an entry.
    Load(MemoryRef),
    /// Creates or replaces an entry.
    Save(MemoryWriteParams),
    /// Appends to an entry, or creates it.
    Append(MemoryWriteParams),
    /// Deletes an existing entry.
    Delete(MemoryRef),
}

/// Arguments of the tool `memory_search`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemorySearchParams {
    /// Text to search for.
    pub query: String,
    /// Results per page: 10 by default, at most 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Cursor from an earlier page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Arguments of the tool `memory_list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryListParams {
    /// Entries per page: 50 by default, at most 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Cursor from an earlier page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Arguments of the tool `memory_keywords`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryKeywordsParams {
    /// Maximum number of keywords: 200 by default, at most 500; the most frequent first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Arguments that name an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryRef {
    /// Keywords of the entry in any order, or its name.
    pub keywords: String,
}

/// Arguments of the tools `memory_save` and `memory_append`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryWriteParams {
    /// Keywords of the entry, in any order: 1 to 8 words. They are its only name.
    pub keywords: String,
    /// Text to write; at most 256 KiB, including the existing text of the entry.
    pub content: String,
}

/// Parameters of the method `memory.search`.
///
/// Only a method can name a project: a tool works in the project of its session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectMemorySearchParams {
    /// Folder of the project, absolute; without it only general entries are searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Text to search for.
    pub query: String,
    /// Results per page: 10 by default, at most 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Cursor from an earlier page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Parameters of the method `memory.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectMemoryListParams {
    /// Folder of the project, absolute; without it only general entries are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Entries per page: 50 by default, at most 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Cursor from an earlier page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Parameters of the method `memory.keywords`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectMemoryKeywordsParams {
    /// Folder of the project, absolute; without it only general entries are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Maximum number of keywords: 200 by default, at most 500; the most frequent first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Parameters of `memory.load` and `memory.delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectMemoryRef {
    /// Folder of the project, absolute; without it the entry is a general one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Keywords of the entry in any order, or its name.
    pub keywords: String,
}

/// Parameters of `memory.save` and `memory.append`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectMemoryWriteParams {
    /// Folder of the project, absolute; without it the entry is a general one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Keywords of the entry, in any order: 1 to 8 words. They are its only name.
    pub keywords: String,
    /// Text to write; at most 256 KiB, including the existing text of the entry.
    pub content: String,
}

/// An entry without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryEntry {
    /// Sorted keywords joined by `_`: the name of the entry's file without `.md`.
    pub name: String,
    /// Keywords of the entry as a list.
    pub keywords: Vec<String>,
    /// Size of the text in bytes.
    pub bytes: u64,
    /// Time of the last write.
    pub modified: Timestamp,
    /// True when the entry cannot be changed or deleted through Cairn: its name begins with
    /// `fix-`.
    pub fixed: bool,
    /// True for a general entry, which every project reads and no tool changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub general: bool,
    /// Part of the text that matched the search, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

/// An entry with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryText {
    /// Name of the entry.
    pub name: String,
    /// Text of the entry.
    pub content: String,
    /// True when the entry cannot be changed or deleted.
    pub fixed: bool,
    /// True for a general entry, which every project reads and no tool changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub general: bool,
}

/// A keyword and its frequency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryKeyword {
    /// The keyword as a word.
    pub keyword: String,
    /// Number of entries with the keyword.
    pub entries: usize,
}

/// Result of a change to the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryChange {
    /// Name of the changed entry.
    pub name: String,
    /// Size of the text in bytes after the change; 0 when the entry was deleted.
    pub bytes: u64,
    /// Message in one sentence for a person.
    pub message: String,
}
