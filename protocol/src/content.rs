//! Reading files and folders.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most lines of one span.
pub const MAX_SPAN_LINES: u32 = 2_000;
/// Most bytes of one span.
pub const MAX_SPAN_BYTES: usize = 256 * 1024;
/// Most entries of one listing.
pub const MAX_DIR_ENTRIES: usize = 5_000;

/// Parameters of `content.getSpan`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpanParams {
    /// Absolute, or relative to `root` (to the session's root in a command).
    pub path: String,
    /// Root id or root path for a relative `path`; may be left out when one root is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// First line, from 1.
    #[serde(alias = "startLine")]
    pub start: u32,
    /// Last line.
    #[serde(alias = "endLine")]
    pub end: u32,
    /// Lines before and after, at most 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// The hash a search gave: the answer then says whether the file changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
}

/// A range of lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// Path relative to its root.
    pub path: String,
    /// First line returned.
    pub start_line: u32,
    /// Last line returned; less than `startLine` when the file has no such line.
    pub end_line: u32,
    /// Lines of the file, when it was read to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u32>,
    /// The lines; invalid UTF-8 replaced.
    pub text: String,
    /// True when a limit cut the range: 2,000 lines or 256 KiB.
    pub truncated: bool,
    /// SHA-256 (hex) of the file now; left out for files over 8 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
    /// Whether the file differs from the `contentHash` that was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
}

/// Parameters of `fs.listDir`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListDirParams {
    /// Absolute, or relative to `root`.
    pub path: String,
    /// Levels below it, 1 to 16.
    #[serde(default = "one")]
    pub depth: u32,
    /// Root id or root path for a relative `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

fn one() -> u32 {
    1
}

/// A bounded listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DirListing {
    /// The folder, relative to its root (`.` for the root itself).
    pub path: String,
    /// What is in it, ignored files left out, by path.
    pub entries: Vec<DirEntry>,
    /// True when the limit of 5,000 entries cut it.
    pub truncated: bool,
    /// Whether rules hide paths of what was asked for, which are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restricted: bool,
}

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DirEntry {
    /// Path relative to the root.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// Bytes, for files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A file.
    File,
    /// A folder.
    Dir,
    /// A symbolic link, not followed.
    Symlink,
    /// A socket, device or pipe.
    Other,
}
